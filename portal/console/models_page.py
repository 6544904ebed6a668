"""Which model runs where, how it does, and what is on trial. Three queries, however many devices there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Prefetch

from tts.engine.catalogue import ENGINES
from tts.models import Device, DeviceSlot, ModelShare
from tts.models.model_share import WHOLE
from tts.selectors.engines import stored_capabilities
from tts.states import DEVICE_HEARTBEAT_SECONDS, DeviceState

SPAN = timedelta(hours=1)

# An attempt is counted for the model that its device has, from the moment on that the device had it.
_OUTCOMES = """
SELECT d.engine, COUNT(*) FILTER (WHERE a.state = 'succeeded'), COUNT(*) FILTER (WHERE a.state IN ('failed', 'lost')),
    percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (
        ORDER BY EXTRACT(EPOCH FROM a.first_chunk_at - a.started_at) * 1000
    ) FILTER (WHERE a.first_chunk_at IS NOT NULL AND a.state = 'succeeded'),
    SUM(a.gpu_ms) FILTER (WHERE a.state = 'succeeded')::float8
        / NULLIF(SUM(a.audio_ms) FILTER (WHERE a.state = 'succeeded'), 0)
FROM tts_attempt a JOIN tts_device d ON d.id = a.device_id
WHERE a.bound_at >= %(since)s AND a.finished_at IS NOT NULL AND a.started_at >= COALESCE((
    SELECT MAX(e.created_at) FROM tts_deviceevent e WHERE e.device_id = d.id AND e.kind = 'swapped'
), '-infinity')
GROUP BY d.engine
"""


@dataclass(frozen=True)
class Outcomes:
    """The last hour's attempts of a model: `first_sound_*_ms` from the start to the first piece of audio; `real_time`
    is device time over audio. None where nothing was spoken."""

    succeeded: int = 0
    failed: int = 0
    first_sound_p50_ms: int | None = None
    first_sound_p95_ms: int | None = None
    real_time: float | None = None

    @property
    def failed_percent(self) -> float | None:
        ended = self.succeeded + self.failed
        return 100 * self.failed / ended if ended else None


@dataclass(frozen=True)
class ModelDevice:
    """A device with the model. `swap_to` is what it changes over to, `swapped` of `slots` have done so."""

    id: int
    name: str
    kind_label: str
    version: str
    state: str
    state_label: str
    silent: bool
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    swap_to: str
    swapped: int
    slots: int


@dataclass(frozen=True)
class ModelRow:
    """A model. `share_percent` None: it is one of the pool's own."""

    engine: str
    name: str
    share_percent: float | None
    outcomes: Outcomes
    devices: list[ModelDevice] = field(default_factory=list)
    languages: str = ""
    modes: tuple[str, ...] = ()


def model_rows(*, now: datetime) -> list[ModelRow]:
    """A row for each model that a device has or that is on trial, the pool's own first, then by name."""
    slots = Prefetch("slot_rows", queryset=DeviceSlot.objects.order_by("number"))
    devices = list(Device.objects.exclude(engine="").order_by("node_name", "name").prefetch_related(slots))
    shares = dict(ModelShare.objects.values_list("engine", "share"))
    outcomes = _outcomes(since=now - SPAN)
    names = {*shares, *(device.engine for device in devices)}
    rows = [_row(name, devices, shares, outcomes, now) for name in names]
    return sorted(rows, key=lambda row: (row.share_percent is not None, row.engine))


def _row(
    engine: str,
    devices: list[Device],
    shares: Mapping[str, int],
    outcomes: Mapping[str, Outcomes],
    now: datetime,
) -> ModelRow:
    own = [device for device in devices if device.engine == engine]
    can = next((found for one in own if (found := stored_capabilities(one.capabilities))), None)
    return ModelRow(
        engine=engine,
        name=ENGINES[engine].name if engine in ENGINES else engine,
        share_percent=shares[engine] * 100 / WHOLE if engine in shares else None,
        outcomes=outcomes.get(engine, Outcomes()),
        devices=[_device(device, now) for device in own],
        languages=", ".join(can.languages[:12]) if can else "",
        modes=can.modes if can else (),
    )


def _device(device: Device, now: datetime) -> ModelDevice:
    swap_to = device.wanted_engine if device.wanted_engine != device.engine else ""
    slots = list(device.slot_rows.all())
    at_rest = device.state == DeviceState.STOPPED
    heard = device.heartbeat_at is not None and now - device.heartbeat_at <= timedelta(
        seconds=DEVICE_HEARTBEAT_SECONDS
    )
    return ModelDevice(
        id=device.pk,
        name=device.name,
        kind_label=str(device.get_kind_display()),
        version=device.engine_version,
        state=device.state,
        state_label=str(device.get_state_display()),
        silent=not at_rest and not heard,
        memory_used_bytes=device.memory_used_bytes,
        memory_total_bytes=device.memory_total_bytes,
        swap_to=swap_to,
        swapped=sum(slot.engine == swap_to for slot in slots) if swap_to else 0,
        slots=len(slots),
    )


def _outcomes(*, since: datetime) -> dict[str, Outcomes]:
    with connection.cursor() as cursor:
        cursor.execute(_OUTCOMES, {"since": since})
        return {engine: _outcome(*values) for engine, *values in cursor.fetchall()}


def _outcome(succeeded: int, failed: int, first_sound: list[Any] | None, real_time: float | None) -> Outcomes:
    median, late = (round(one) for one in first_sound) if first_sound else (None, None)
    return Outcomes(succeeded, failed, median, late, real_time)
