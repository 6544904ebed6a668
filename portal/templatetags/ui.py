"""What templates draw: icons, badges, waveforms, and numbers written for people."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.conf import settings
from django.forms import BoundField
from django.forms.utils import flatatt
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from portal.lib import display

register = template.Library()

# Printable ASCII only: Chinese puts its full stop against the address, with no space between.
WEB_ADDRESS = re.compile(r"https?://[!-~]+")

# What a state looks like: a tone, which is a colour and a shape. The word comes from the state's own label.
TONES = {
    "queued": "wait",
    "bound": "wait",
    "starting": "wait",
    "running": "live",
    "busy": "live",
    "succeeded": "ok",
    "ready": "ok",
    "pass": "ok",
    "draining": "warn",
    "open": "wait",
    "confirmed": "ok",
    "declined": "idle",
    "usable": "warn",
    "usable_with_warnings": "warn",
    "warning": "warn",
    "failed": "bad",
    "lost": "bad",
    "quarantined": "bad",
    "rejected": "bad",
    "canceled": "idle",
    "stopped": "idle",
    "deleted": "idle",
}
TONE_ICONS = {
    "ok": "state_ok",
    "live": "state_live",
    "wait": "state_wait",
    "warn": "state_warn",
    "bad": "state_bad",
    "idle": "state_idle",
}
# Month and day as each language writes them in running text; Django's own short forms are American or cramped.
_DATE_FORMATS = {"zh-hans": "Y年n月j日", "en": "j M Y"}
_MOMENT_FORMATS = {"zh-hans": "Y年n月j日 H:i", "en": "j M Y, H:i"}
_CLOCK_FORMATS = {"en": "H:i:s"}


@cache
def _icon_paths(name: str) -> str:
    path = settings.BASE_DIR / "templates" / "icons" / f"{name}.svg"
    drawing: str = path.read_text(encoding="utf-8").strip()
    return drawing


@register.simple_tag
def icon(name: str, size: str = "", label: str = "") -> SafeString:
    """The drawing templates/icons/<name>.svg; hidden from screen readers unless it has a `label`."""
    names = f"icon icon--{size}" if size else "icon"
    meaning = format_html('role="img" aria-label="{}"', label) if label else mark_safe('aria-hidden="true"')
    # The drawings are our own files; nothing of a user's is in them.
    drawing = mark_safe(_icon_paths(name))  # noqa: S308
    return format_html('<svg class="{}" viewBox="0 0 24 24" {}>{}</svg>', names, meaning, drawing)


@register.simple_tag
def badge(state: str, label: str) -> SafeString:
    """A word with a shape and a colour. `state` is a state's value or a tone: ok, live, wait, warn, bad, idle."""
    tone = TONES.get(state, state)
    shape = icon(TONE_ICONS[tone], "small") if tone in TONE_ICONS else ""
    look = "" if tone in ("idle", "wait") else f" badge--{tone}"
    return format_html(
        '<span class="badge{}{}">{}{}</span>', look, "" if shape else " badge--plain", shape, label
    )


@register.simple_tag
def waveform(peaks: Iterable[int]) -> SafeString:
    """Bars from heights of 0 to 100 as one SVG path that stretches to its box."""
    heights = [min(100, max(2, int(peak))) for peak in peaks]
    # Each bar is 2 units wide in a step of 3, around the middle line; silence still shows a hairline.
    bars = (f"M{index * 3} {50 - height / 2:g}h2v{height:g}h-2z" for index, height in enumerate(heights))
    return format_html(
        '<svg class="wave" viewBox="0 0 {} 100" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<path d="{}"/></svg>',
        max(1, len(heights) * 3 - 1),
        "".join(bars),
    )


@register.filter
def money(amount_micros: int | None, currency: str) -> str:
    return "" if amount_micros is None else display.money_text(amount_micros, currency)


@register.filter
def money_exact(amount_micros: int | None, currency: str) -> str:
    return "" if amount_micros is None else display.money_exact(amount_micros, currency)


@register.filter
def money_change(amount_micros: int, currency: str) -> str:
    """What a movement did to an account, with its sign; a dash for nothing."""
    if not amount_micros:
        return "–"
    return ("+" if amount_micros > 0 else "") + display.money_exact(amount_micros, currency)


@register.filter
def balance(amount_micros: int | None, currency: str) -> str:
    return "" if amount_micros is None else display.balance_text(amount_micros, currency)


@register.filter
def seconds(duration_ms: int | None) -> str:
    return "" if duration_ms is None else display.seconds_text(duration_ms)


@register.filter
def minutes(duration_ms: int | None) -> str:
    return "" if duration_ms is None else display.minutes_text(duration_ms)


@register.filter
def clock(duration_ms: int | None) -> str:
    return "" if duration_ms is None else display.clock_text(duration_ms)


@register.filter
def wait(duration_ms: int | None) -> str:
    return "" if duration_ms is None else display.wait_text(duration_ms)


@register.filter
def filesize(size_bytes: int | None) -> str:
    return "" if size_bytes is None else display.bytes_text(size_bytes)


@register.filter
def count(number: int | None) -> str:
    """A whole number with thousands set apart."""
    return "" if number is None else display.count_text(number)


def _time_element(moment_at: datetime | None, formats: dict[str, str], kind: str) -> SafeString | str:
    if moment_at is None:
        return ""
    local = timezone.localtime(moment_at)
    text = date_format(local, formats.get(get_language() or "", formats["en"]))
    zone = "" if kind == "date" else f" {local.tzname()}"
    exact = local.isoformat(timespec="seconds")
    return format_html('<time datetime="{}" data-local="{}">{}{}</time>', exact, kind, text, zone)


@register.filter
def moment(moment_at: datetime | None) -> SafeString | str:
    """A date and time; localtime.js rewrites it in the reader's own time zone."""
    return _time_element(moment_at, _MOMENT_FORMATS, "moment")


@register.filter
def time_of_day(moment_at: datetime | None) -> SafeString | str:
    """A time to the second, of a day that stands nearby; localtime.js rewrites it as it does the date."""
    return _time_element(moment_at, _CLOCK_FORMATS, "clock")


@register.filter
def day(moment_at: datetime | None) -> SafeString | str:
    """The date alone."""
    return _time_element(moment_at, _DATE_FORMATS, "date")


@register.filter
def control(field: BoundField, extra_class: str = "") -> SafeString:
    """A form's field as our input, select, textarea or check box, tied to its hint and its errors."""
    widget = field.field.widget
    input_type = getattr(widget, "input_type", "")
    names = {"select": "select", "checkbox": "", "radio": "", "file": "input"}
    base = names.get(input_type, "input" if input_type else "textarea")
    described = [f"{field.auto_id}-hint"] if field.help_text else []
    attributes: dict[str, Any] = {"class": f"{base} {extra_class}".strip()}
    if field.errors:
        described.append(f"{field.auto_id}-error")
    if described:
        attributes["aria-describedby"] = " ".join(described)
    return field.as_widget(attrs=attributes)


@register.simple_tag
def attributes(**values: Any) -> SafeString:
    """HTML attributes from keyword arguments, empty ones left out; `data_x_y` becomes `data-x-y`."""
    return flatatt(
        {name.replace("_", "-"): value for name, value in values.items() if value not in (None, "", False)}
    )


@register.filter
def error_base(status: int | str) -> str:
    """What an error page stands on: the full frame, or, when the fault is ours, nothing that needs a database."""
    return "base.html" if isinstance(status, int) and status < 500 else "bare.html"


@register.filter
def error_heading(status: int | str) -> str:
    """A few words above the message."""
    headings = {
        401: _("Please sign in"),
        402: _("The balance is too low"),
        403: _("This is not for you"),
        404: _("Nothing here"),
        409: _("This was changed meanwhile"),
        413: _("This is too large"),
        429: _("Too much at once"),
        500: _("Something broke on our side"),
        503: _("Not right now"),
    }
    return (
        str(headings.get(status, _("That did not work")))
        if isinstance(status, int)
        else str(_("That did not work"))
    )


@register.filter
def links(text: str) -> SafeString:
    """The text, escaped, with its web addresses to press. Mail addresses stay words, unlike with urlize."""
    parts = []
    end = 0
    for found in WEB_ADDRESS.finditer(text):
        parts += [text[end : found.start()], format_html('<a href="{0}">{0}</a>', found[0])]
        end = found.end()
    return format_html_join("", "{}", ((part,) for part in [*parts, text[end:]]))
