"""What the template of a chart draws: the moments of its axis, rewritten by localtime.js where they are instants."""

from __future__ import annotations

from datetime import date, datetime
from functools import lru_cache

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from portal.charts import Chart
from portal.templatetags.tables import Head

register = template.Library()

# A day of somebody's calendar: the same day for every reader, wherever they are.
_DAY_FORMATS = {"zh-hans": "n月j日", "en": "j M"}
_LONG_DAY_FORMATS = {"zh-hans": "Y年n月j日", "en": "j M Y"}


def _written(day: date, formats: dict[str, str]) -> str:
    language = get_language() or ""
    return _in_language(day, formats.get(language, formats["en"]), language)


@lru_cache(maxsize=4096)
def _in_language(day: date, form: str, language: str) -> str:
    """A chart of a quarter names each of its days a dozen times. Names of months are those of the active language."""
    return date_format(day, form)


@register.filter
def short_date(day: date) -> str:
    """`30 Nov`, for an axis."""
    return _written(day, _DAY_FORMATS)


@register.filter
def long_date(day: date) -> str:
    """`30 Nov 2026`."""
    return _written(day, _LONG_DAY_FORMATS)


@register.simple_tag
def axis_moment(moment: datetime | date, chart: Chart) -> SafeString | str:
    """A place of the horizontal axis: `12:00`, `11-30`, or the day of a calendar."""
    if not isinstance(moment, datetime):
        return short_date(moment)
    local = timezone.localtime(moment)
    form, kind = ("%m-%d", "day") if chart.day_axis else ("%H:%M", "minute")
    return format_html(
        '<time datetime="{}" data-local="{}">{}</time>',
        local.isoformat(timespec="milliseconds"),
        kind,
        local.strftime(form),
    )


@register.simple_tag
def plain_moment(moment: datetime | date, chart: Chart) -> str:
    """`12:00 UTC`, or with the day before it: in places where nothing can be rewritten."""
    if not isinstance(moment, datetime):
        return long_date(moment)
    local = timezone.localtime(moment)
    form = "%Y-%m-%d %H:%M" if chart.day_axis else "%H:%M"
    return f"{local.strftime(form)} {local.tzname()}"


@register.inclusion_tag("partials/table_head.html")
def chart_head(chart: Chart) -> dict[str, list[Head]]:
    """The head of the table of a chart's numbers."""
    return {"heads": [Head(_("Time")), *(Head(name, is_number=True) for name in chart.names)]}
