"""Times as the console shows them: to the second, in the server's zone until localtime.js rewrites them."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


def _time_element(moment: datetime, *, form: str, kind: str) -> SafeString:
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" data-local="{}">{} {}</time>',
        local.isoformat(timespec="milliseconds"),
        kind,
        local.strftime(form),
        local.tzname(),
    )


@register.filter
def to_the_second(moment: datetime) -> SafeString:
    """`30 Nov 12:00:05`: enough to find a line in a log."""
    return _time_element(moment, form="%Y-%m-%d %H:%M:%S", kind="second")


@register.filter
def clock_time(moment: datetime) -> SafeString:
    """`12:00:05`."""
    return _time_element(moment, form="%H:%M:%S", kind="clock")
