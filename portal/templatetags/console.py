"""What the console's templates draw: times to the second, in the server's zone until localtime.js rewrites them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from django import template
from django.template import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from accounts.models import AuditEntry
from portal.charts import number_text, percent_text
from portal.console.audit_words import act_label, asked_label, change_words
from portal.console.device_reasons import reason_text
from portal.console.pages import Place, places
from portal.templatetags.tables import table_head

register = template.Library()
# Every table of the console has one.
register.inclusion_tag("partials/table_head.html")(table_head)

LONG_NAME = re.compile(r"(GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{27}")
SHORT_NAME = len("GPU-01234567")
# Pages of what has none of its own.
OBJECT_PAGES = {
    "price": "console_prices",
    "model": "console_models",
    "plan": "console_plans",
    "books": "console_money",
    "voucher_batch": "console_vouchers",
}
MODE_LABELS: dict[str, str | Promise] = {"plain": _("plain")}


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


@register.filter
def asked_words(act: str) -> str:
    """What an act is called that waits for a second operator."""
    return asked_label(act)


@register.filter
def at(cells: list[str], place: int) -> str:
    """The cell at a place, counted from 0."""
    return cells[place]


@register.filter
def short_device(name: str) -> str:
    """`GPU-c866a56b` for NVML's long name; the whole name stands on the device's own page."""
    return name[:SHORT_NAME] if LONG_NAME.fullmatch(name) else name


@register.filter
def percent(value: float | None) -> str:
    return "–" if value is None else percent_text(value)


@register.filter
def watts(power_mw: int) -> str:
    return f"{number_text(round(power_mw / 1000))} W"


@register.filter
def device_reason(reason: str) -> str:
    """Why a device is in its state, in words."""
    return reason_text(reason)


@register.filter
def mode_label(mode: str) -> str:
    """How a job is spoken, in words; a mode that is not known by its code."""
    return str(MODE_LABELS.get(mode, mode))


@register.simple_tag(takes_context=True)
def console_places(context: Context) -> list[Place]:
    return places(context["request"])


@register.simple_tag
def audit_act(entry: AuditEntry) -> SafeString:
    """What was done, and under it its stable code."""
    return format_html(
        '<span>{} <code class="console-table__below">{}</code></span>', act_label(entry.act), entry.act
    )


@register.simple_tag
def audit_change(entry: AuditEntry, values: dict[str, Any]) -> SafeString | str:
    """`State: Ready, epoch: 3`, a line each."""
    changes = change_words(values, object_kind=entry.object_kind)
    lines = format_html_join(
        "", '<span class="console-table__below"><span class="muted">{}:</span> {}</span> ', changes
    )
    return format_html('<span class="console-name-line">{}</span>', lines) if changes else "–"


@register.simple_tag
def audit_object(entry: AuditEntry) -> SafeString | str:
    """The object's name, leading to its page where it has one."""
    name = entry.object_name or entry.object_id
    if entry.object_kind == "device" and entry.object_id.isdecimal():
        address = reverse("console_device", args=[entry.object_id])
    elif entry.object_kind == "job":
        address = reverse("console_job", args=[entry.object_id])
    elif entry.object_kind == "workspace":
        address = reverse("console_customer", args=[entry.object_id])
    elif entry.object_kind in OBJECT_PAGES:
        address = reverse(OBJECT_PAGES[entry.object_kind])
    else:
        return name
    return format_html('<a class="console-name-line" id="audit-{}" href="{}">{}</a>', entry.pk, address, name)
