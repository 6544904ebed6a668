"""A card per device: how it stands, what was asked of it, and its last hour as a chart. A fixed number of queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, Q
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.charts import Chart, Series, line_chart, percent_text
from portal.console.device_acts import Act, acts_offered
from portal.console.selectors import DeviceRow, device_rows, live_attempts
from portal.console.trends import buckets
from tts.models import (
    Device,
    DeviceCommand,
    DeviceCommandState,
    DeviceEvent,
    DeviceEventKind,
    DeviceSample,
    Resolution,
)
from tts.services.commands import OPEN

STRIKES_WITHIN: Final = timedelta(minutes=10)
HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
# How long a command that has ended stays on its device's card.
OUTCOME_SHOWN: Final = timedelta(minutes=10)
COMMANDS_ON_A_CARD: Final = 3
DEVICES_PER_PAGE: Final = 24


@dataclass(frozen=True)
class CommandRow:
    """An operator's wish and what came of it."""

    id: int
    kind_label: str
    engine: str
    state: str
    state_label: str
    tone: str
    reason: str
    result: str
    by: str
    epoch: int
    created_at: datetime
    finished_at: datetime | None

    @property
    def is_open(self) -> bool:
        return self.state in OPEN


@dataclass(frozen=True)
class DeviceCard:
    row: DeviceRow
    strikes: int
    commands: list[CommandRow]
    acts: list[Act]
    chart: Chart


COMMAND_TONES: Final = {
    DeviceCommandState.WAITING: "wait",
    DeviceCommandState.RUNNING: "live",
    DeviceCommandState.DONE: "ok",
    DeviceCommandState.STALE: "warn",
    DeviceCommandState.FAILED: "bad",
}


def command_row(command: DeviceCommand) -> CommandRow:
    state = DeviceCommandState(command.state)
    return CommandRow(
        id=command.pk,
        kind_label=command.get_kind_display(),
        engine=command.engine,
        state=command.state,
        state_label=str(state.label),
        tone=COMMAND_TONES[state],
        reason=command.reason,
        result=command.result,
        by=command.requested_by.email if command.requested_by else "",
        epoch=command.expected_epoch,
        created_at=command.created_at,
        finished_at=command.finished_at,
    )


def device_count() -> int:
    return Device.objects.count()


def device_cards(
    *, now: datetime, device_ids: Iterable[int] | None = None, page: int = 1
) -> list[DeviceCard]:
    """The cards of one page of devices by node and name, or of these devices. Eight queries."""
    if device_ids is None:
        first = (page - 1) * DEVICES_PER_PAGE
        ordered = Device.objects.order_by("node_name", "name").values_list("pk", flat=True)
        device_ids = list(ordered[first : first + DEVICES_PER_PAGE])
    rows = device_rows(attempts=live_attempts(), now=now, device_ids=device_ids)
    ids = [row.id for row in rows]
    strikes = _strikes(ids, now)
    commands = _commands(ids, now)
    minutes = _minutes(ids, now)
    return [
        DeviceCard(
            row=row,
            strikes=strikes.get(row.id, 0),
            commands=commands.get(row.id, []),
            acts=acts_offered(row),
            chart=hour_chart(row, minutes.get(row.id, {}), now=now),
        )
        for row in rows
    ]


def _strikes(ids: Sequence[int], now: datetime) -> dict[int, int]:
    return dict(
        DeviceEvent.objects.filter(
            device_id__in=ids, kind=DeviceEventKind.STRIKE, created_at__gte=now - STRIKES_WITHIN
        )
        .order_by()
        .values_list("device_id")
        .annotate(count=Count("pk"))
    )


def _commands(ids: Sequence[int], now: datetime) -> dict[int, list[CommandRow]]:
    found: dict[int, list[CommandRow]] = {}
    lately = Q(state__in=OPEN) | Q(finished_at__gte=now - OUTCOME_SHOWN)
    commands = DeviceCommand.objects.filter(
        lately, device_id__in=ids, created_at__gte=now - timedelta(days=7)
    ).select_related("requested_by")
    for command in commands.order_by("-pk"):
        rows = found.setdefault(command.device_id, [])
        if len(rows) < COMMANDS_ON_A_CARD:
            rows.append(command_row(command))
    return found


Minutes = dict[datetime, tuple[int | None, float | None]]


def _minutes(ids: Sequence[int], now: datetime) -> dict[int, Minutes]:
    """Memory and utilisation by minute over the last hour, by device."""
    found: dict[int, Minutes] = {}
    for device_id, taken_at, memory, utilisation in DeviceSample.objects.filter(
        device_id__in=ids, resolution=Resolution.MINUTE, taken_at__gte=now - HOUR - MINUTE
    ).values_list("device_id", "taken_at", "memory_used_bytes", "utilisation_percent"):
        found.setdefault(device_id, {})[taken_at] = (memory, utilisation)
    return found


def hour_chart(row: DeviceRow, minutes: Minutes, *, now: datetime) -> Chart:
    """Memory and utilisation of the last hour, both in percent. The minute that is not over has no figure yet."""
    moments = buckets(now=now, span=HOUR, step=MINUTE)
    nothing = (None, None)
    used = [minutes.get(moment, nothing)[0] for moment in moments]
    total = row.memory_total_bytes
    memory = [None if value is None or not total else 100 * value / total for value in used]
    utilisation = [minutes.get(moment, nothing)[1] for moment in moments]
    return line_chart(
        chart_id=f"device-{row.id}-hour",
        title=_hour_title(row),
        unit=_("last hour, by minute"),
        moments=moments,
        series=[
            Series(_("memory"), "accent", memory),
            Series(_("utilisation"), "live", utilisation),
        ],
        value_text=percent_text,
        top=100,
        csv_address=f"{reverse('console_device', args=[row.id])}?csv=device-{row.id}-hour",
    )


def _hour_title(row: DeviceRow) -> str:
    said = []
    if row.memory_used_bytes is not None and row.memory_total_bytes:
        said.append(
            gettext("memory %(percent)s")
            % {"percent": percent_text(100 * row.memory_used_bytes / row.memory_total_bytes)}
        )
    if row.utilisation_percent is not None:
        said.append(gettext("utilisation %(percent)s") % {"percent": percent_text(row.utilisation_percent)})
    if not said:
        return gettext("It tells no figures")
    return gettext("Now: %(figures)s") % {"figures": ", ".join(said)}
