"""One device: its card, its timeline, what it spoke, its week and what its day's time went to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.charts import Chart, Series, line_chart, number_text, percent_text
from portal.console.device_cards import CommandRow, DeviceCard, command_row, device_cards
from portal.console.trends import buckets
from portal.lib.display import bytes_text
from portal.lib.errors import NotFound
from portal.logs.selectors import AttemptLine, attempt_line, with_all
from tts.models import (
    Attempt,
    Device,
    DeviceEvent,
    DeviceEventKind,
    DeviceSample,
    Resolution,
)
from tts.selectors.telemetry import series

WEEK: Final = timedelta(days=7)
STEP: Final = timedelta(hours=1)
DAY: Final = timedelta(hours=24)
ROWS_SHOWN: Final = 25
COMMANDS_SHOWN: Final = 20
BYTES_PER_GB: Final = 1_000_000_000
MW_PER_W: Final = 1_000

EVENT_TONES: Final = {
    DeviceEventKind.READY: "ok",
    DeviceEventKind.RESUMED: "ok",
    DeviceEventKind.RELEASED: "ok",
    DeviceEventKind.CANARY_PASSED: "ok",
    DeviceEventKind.SWAPPED: "ok",
    DeviceEventKind.RESTARTED: "warn",
    DeviceEventKind.OUT_OF_MEMORY: "bad",
    DeviceEventKind.STRIKE: "bad",
    DeviceEventKind.HARDWARE_FAULT: "bad",
    DeviceEventKind.UNKILLABLE: "bad",
    DeviceEventKind.QUARANTINED: "bad",
    DeviceEventKind.CANARY_FAILED: "bad",
    DeviceEventKind.SWAP_FAILED: "bad",
}

# What an attempt took lies within the day as far as the day goes. What runs counts until now.
_TIME_ACCOUNT = """
SELECT COALESCE(SUM(took) FILTER (WHERE billable), 0)::bigint,
    COALESCE(SUM(took) FILTER (WHERE NOT billable), 0)::bigint
FROM (
    SELECT COALESCE(u.billable, a.state IN ('bound', 'running')) AS billable,
        GREATEST(0, EXTRACT(EPOCH FROM LEAST(COALESCE(a.finished_at, %(now)s), %(now)s)
            - GREATEST(a.started_at, %(since)s)) * 1000) AS took
    FROM tts_attempt a LEFT JOIN billing_usagerecord u ON u.attempt_id = a.id
    WHERE a.device_id = %(device)s AND a.started_at IS NOT NULL
        AND a.bound_at > %(since)s::timestamptz - interval '2 hours'
) AS spoken
"""


@dataclass(frozen=True)
class EventRow:
    id: int
    created_at: datetime
    kind_label: str
    tone: str
    detail: str
    epoch: int
    slot_number: int | None
    attempt_id: object | None


@dataclass(frozen=True)
class TimeAccount:
    """The slots' time of the last 24 hours in ms. `there_ms`: of which the device left figures."""

    billed_ms: int
    unbilled_ms: int
    idle_ms: int
    there_ms: int


@dataclass(frozen=True)
class DevicePage:
    card: DeviceCard
    events: list[EventRow]
    attempts: list[AttemptLine]
    commands: list[CommandRow]
    account: TimeAccount
    charts: list[Chart]


def read_device(device_id: int, *, now: datetime) -> DevicePage:
    """Everything at one moment. Raises NotFound."""
    device = Device.objects.filter(pk=device_id).first()
    if device is None:
        raise NotFound
    (card,) = device_cards(now=now, device_ids=[device_id])
    attempts = with_all(Attempt.objects.filter(device=device)).order_by("-bound_at")[:ROWS_SHOWN]
    commands = device.commands.select_related("requested_by").order_by("-created_at")[:COMMANDS_SHOWN]
    return DevicePage(
        card=card,
        events=_events(device),
        attempts=[attempt_line(attempt) for attempt in attempts],
        commands=[command_row(command) for command in commands],
        account=time_account(device, now=now),
        charts=week_charts(device, now=now),
    )


def device_row_of(device_id: int, *, now: datetime) -> DeviceCard:
    """The device's card alone. Raises NotFound."""
    cards = device_cards(now=now, device_ids=[device_id])
    if not cards:
        raise NotFound
    return cards[0]


def device_of(device_id: int) -> Device:
    """Raises NotFound."""
    device = Device.objects.filter(pk=device_id).first()
    if device is None:
        raise NotFound
    return device


def _events(device: Device) -> list[EventRow]:
    return [
        EventRow(
            id=event.pk,
            created_at=event.created_at,
            kind_label=event.get_kind_display(),
            tone=EVENT_TONES.get(DeviceEventKind(event.kind), "idle"),
            detail=event.detail,
            epoch=event.epoch,
            slot_number=event.slot_number,
            attempt_id=event.attempt_id,
        )
        for event in DeviceEvent.objects.filter(device=device).order_by("-created_at")[:ROWS_SHOWN]
    ]


def time_account(device: Device, *, now: datetime) -> TimeAccount:
    since = now - DAY
    with connection.cursor() as cursor:
        cursor.execute(_TIME_ACCOUNT, {"now": now, "since": since, "device": device.pk})
        billed_ms, unbilled_ms = cursor.fetchone()
    minutes = DeviceSample.objects.filter(
        device=device, resolution=Resolution.MINUTE, taken_at__gte=since
    ).count()
    # The minute that is not over yet has no figure; a device that left none was there while it spoke.
    there_ms = max(minutes * 60_000 * device.slots, billed_ms + unbilled_ms)
    return TimeAccount(billed_ms, unbilled_ms, there_ms - billed_ms - unbilled_ms, there_ms)


def week_charts(device: Device, *, now: datetime) -> list[Chart]:
    """Memory, utilisation, temperature and power by hour over seven days."""
    moments = buckets(now=now, span=WEEK, step=STEP)
    points = {
        point.taken_at: point for point in series(device=device, since=moments[0], resolution=Resolution.HOUR)
    }

    def told(field: str, *, divisor: int = 1) -> list[float | None]:
        values = (getattr(points.get(moment), field, None) for moment in moments)
        return [None if value is None else value / divisor for value in values]

    total = device.memory_total_bytes
    unit = gettext("gigabytes of %(total)s") % {"total": bytes_text(total)} if total else gettext("gigabytes")
    memory = [
        Series(_("highest of the hour"), "warn", told("memory_used_max_bytes", divisor=BYTES_PER_GB)),
        Series(_("mean of the hour"), "accent", told("memory_used_bytes", divisor=BYTES_PER_GB)),
    ]
    figures = (
        ("memory", unit, memory, "GB"),
        ("utilisation", _("per cent, mean of the hour"), [_line("utilisation_percent", told)], "%"),
        ("temperature", _("degrees Celsius, mean of the hour"), [_line("temperature_c", told)], "°C"),
        ("power", _("watts, mean of the hour"), [_line("power_mw", told, divisor=MW_PER_W)], "W"),
    )
    return [_week_chart(device, moments, name, unit, lines, sign) for name, unit, lines, sign in figures]


WEEK_TITLES: Final[dict[str, str | Promise]] = {
    "memory": _("Memory: %(highest)s at most in seven days"),
    "utilisation": _("Utilisation: %(mean)s on average over seven days"),
    "temperature": _("Temperature: %(highest)s at most in seven days"),
    "power": _("Power: %(mean)s on average over seven days"),
}
_LINES: Final[dict[str, tuple[str | Promise, str]]] = {
    "utilisation_percent": (_("utilisation"), "live"),
    "temperature_c": (_("temperature"), "warn"),
    "power_mw": (_("power"), "accent"),
}


def _line(field: str, told: Callable[..., list[float | None]], *, divisor: int = 1) -> Series:
    label, tone = _LINES[field]
    return Series(label, tone, told(field, divisor=divisor))


def _week_chart(
    device: Device,
    moments: list[datetime],
    name: str,
    unit: str | Promise,
    lines: list[Series],
    sign: str,
) -> Chart:
    def value_text(value: float) -> str:
        return percent_text(value) if sign == "%" else f"{number_text(value)} {sign}"

    known = [value for line in lines for value in line.values if value is not None]
    chart_id = f"week-{name}"
    title = gettext("No figures of the last seven days")
    if known:
        title = str(WEEK_TITLES[name]) % {
            "highest": value_text(max(known)),
            "mean": value_text(sum(known) / len(known)),
        }
    return line_chart(
        chart_id=chart_id,
        title=title,
        unit=unit,
        moments=moments,
        series=lines,
        value_text=value_text,
        top=100 if sign == "%" else None,
        csv_address=f"{reverse('console_device', args=[device.pk])}?csv={chart_id}",
        day_axis=True,
    )
