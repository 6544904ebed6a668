"""What a worker writes about its slot, and what it learns by that of the device's state.

Guarded by the epoch: an older incarnation changes nothing. Locks the device before its slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from tts.engine.capabilities import Capabilities
from tts.models import Device, DeviceSlot
from tts.models.operations import DeviceEventKind
from tts.services.device_events import record_event
from tts.services.node_state import capability_columns
from tts.states import DeviceState

WORKING = (DeviceState.STARTING, DeviceState.READY, DeviceState.BUSY)
# A worker that recycles its engine has ended doing so within this time (loading and warming up are limited), or died.
RECYCLING_SECONDS = 600
# At most this part of the pool's slots recycles at once, though always one.
RECYCLING_SHARE = 10
# Any number that nothing else in the database locks by.
RECYCLING_LOCK = 7_205_311


@dataclass(frozen=True)
class SlotView:
    """How a worker finds its device at a beat. `owned`: whether the slot still counts this worker as its own; a
    quarantine takes it from all of them."""

    owned: bool
    state: str
    state_reason: str
    kind: str
    engine: str
    wanted_engine: str
    memory_free_bytes: int | None

    @property
    def may_work(self) -> bool:
        return self.state in WORKING

    @property
    def target_engine(self) -> str:
        """Which engine the slot's process should hold."""
        return self.wanted_engine or self.engine


def slot_ready(
    *,
    device_id: int,
    epoch: int,
    slot_number: int,
    worker_name: str,
    worker_pid: int,
    engine_pid: int,
    engine_version: str,
    engine: str = "",
    capabilities: Capabilities | None = None,
) -> bool:
    """A worker's engine is warm and has passed its test sentence: the slot takes work from now on.

    What the engine says that it can do is the device's from now on. On a device that takes none, the slot is the
    worker's and waits; a quarantined device's slots are nobody's. The last slot that has changed over to the engine
    that is wanted makes it the device's. False when a newer incarnation has the device.
    """
    with transaction.atomic():
        device = _locked(device_id, epoch)
        if device is None:
            return False
        if device.state == DeviceState.QUARANTINED:
            return True
        DeviceSlot.objects.filter(device_id=device_id, number=slot_number).update(
            ready=device.state in WORKING,
            worker_name=worker_name,
            worker_pid=worker_pid,
            engine_pid=engine_pid,
            heartbeat_at=Now(),
            engine=engine,
            recycling_since=None,
        )
        if capabilities is not None and engine == device.engine:
            Device.objects.filter(pk=device_id).update(**capability_columns(capabilities))
        if device.state == DeviceState.STARTING:
            Device.objects.filter(pk=device_id).update(
                state=DeviceState.READY, state_reason="", engine_version=engine_version
            )
            record_event(
                device_id=device_id,
                epoch=epoch,
                kind=DeviceEventKind.READY,
                detail=f"{engine} {engine_version}".strip(),
                slot_number=slot_number,
            )
        if engine and engine == device.wanted_engine:
            _finish_swap(device, engine_version=engine_version, capabilities=capabilities)
    return True


def slot_heartbeat(
    *, device_id: int, epoch: int, slot_number: int, worker_name: str, ready: bool
) -> SlotView | None:
    """A worker lives; brings its slot back when the sweep had taken it out. None when a newer incarnation has it.

    `ready`: whether the worker's engine is warm. The slot is ready only where the device takes work too, and the slot
    is still this worker's.
    """
    with transaction.atomic():
        device = _locked(device_id, epoch)
        if device is None:
            return None
        slot = DeviceSlot.objects.filter(device_id=device_id, number=slot_number)
        offered = ready and device.state in WORKING
        owned = slot.filter(worker_name=worker_name).update(heartbeat_at=Now(), ready=offered) == 1
        if not owned:
            slot.update(heartbeat_at=Now())
        if owned and offered and device.state == DeviceState.STARTING:
            Device.objects.filter(pk=device_id).update(state=DeviceState.READY, state_reason="")
    return SlotView(
        owned=owned,
        state=device.state,
        state_reason=device.state_reason,
        kind=device.kind,
        engine=device.engine,
        wanted_engine=device.wanted_engine,
        memory_free_bytes=device.memory_free_bytes,
    )


def slot_not_ready(
    *, device_id: int, epoch: int, slot_number: int, restarted: bool = False, reason: str = ""
) -> None:
    """The slot takes no work: its engine restarts or its worker ends. The last slot takes the device with it.

    `restarted` counts a restart that nobody had planned; its `reason` is told of in the device's timeline.
    """
    with transaction.atomic():
        if _locked(device_id, epoch) is None:
            return
        DeviceSlot.objects.filter(device_id=device_id, number=slot_number).update(
            ready=False, engine_pid=None
        )
        if restarted:
            Device.objects.filter(pk=device_id).update(restarts=F("restarts") + 1)
        if restarted and reason:
            record_event(
                device_id=device_id,
                epoch=epoch,
                kind=DeviceEventKind.RESTARTED,
                detail=reason,
                slot_number=slot_number,
            )
        if not DeviceSlot.objects.filter(device_id=device_id, ready=True).exists():
            Device.objects.filter(pk=device_id, state__in=[DeviceState.READY, DeviceState.BUSY]).update(
                state=DeviceState.STARTING
            )


def hold_slot_back(*, device_id: int, epoch: int, slot_number: int) -> None:
    """Nothing more is bound to the slot; what it speaks goes on, and the device's state stays."""
    DeviceSlot.objects.filter(device_id=device_id, number=slot_number, device__epoch=epoch).update(
        ready=False
    )


def begin_recycling(*, device_id: int, epoch: int, slot_number: int) -> bool:
    """Mark the slot as one whose engine is being recycled; False while as many as may do so do.

    Marks of workers that died over it expire.
    """
    cutoff = Now() - timedelta(seconds=RECYCLING_SECONDS)
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Two who count at once would both find room for one.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [RECYCLING_LOCK])
        in_pool = DeviceSlot.objects.filter(device__state__in=[*WORKING, DeviceState.DRAINING]).count()
        recycling = DeviceSlot.objects.filter(recycling_since__gte=cutoff).count()
        if recycling >= max(1, in_pool // RECYCLING_SHARE):
            return False
        marked = DeviceSlot.objects.filter(
            Q(recycling_since__isnull=True) | Q(recycling_since__lt=cutoff),
            device_id=device_id,
            number=slot_number,
            device__epoch=epoch,
        ).update(recycling_since=Now())
    return marked == 1


def end_recycling(*, device_id: int, epoch: int, slot_number: int, detail: str = "") -> None:
    """Take the mark away. With a `detail` (why, and how much memory it had) the recycling is counted and told of."""
    with transaction.atomic():
        if _locked(device_id, epoch) is None:
            return
        DeviceSlot.objects.filter(device_id=device_id, number=slot_number).update(recycling_since=None)
        if detail:
            Device.objects.filter(pk=device_id).update(recycles=F("recycles") + 1)
            record_event(
                device_id=device_id,
                epoch=epoch,
                kind=DeviceEventKind.RECYCLED,
                detail=detail,
                slot_number=slot_number,
            )


def swap_failed(*, device_id: int, epoch: int, slot_number: int, engine: str, detail: str) -> None:
    """The engine that was wanted could not be brought up: the device keeps the one that it has.

    Slots that had changed over already go back.
    """
    with transaction.atomic():
        kept = Device.objects.filter(pk=device_id, epoch=epoch, wanted_engine=engine).update(
            wanted_engine=F("engine")
        )
        if kept:
            record_event(
                device_id=device_id,
                epoch=epoch,
                kind=DeviceEventKind.SWAP_FAILED,
                detail=f"{engine}: {detail}",
                slot_number=slot_number,
            )


def _finish_swap(device: Device, *, engine_version: str, capabilities: Capabilities | None) -> None:
    """Make the wanted engine the device's, when every slot has it. The device is locked."""
    if DeviceSlot.objects.filter(device=device).exclude(engine=device.wanted_engine).exists():
        return
    if device.engine == device.wanted_engine:
        return
    Device.objects.filter(pk=device.pk).update(
        engine=device.wanted_engine, engine_version=engine_version, **capability_columns(capabilities)
    )
    record_event(
        device_id=device.pk,
        epoch=device.epoch,
        kind=DeviceEventKind.SWAPPED,
        detail=f"{device.engine} to {device.wanted_engine} {engine_version}",
    )


def _locked(device_id: int, epoch: int) -> Device | None:
    return Device.objects.select_for_update(no_key=True).filter(pk=device_id, epoch=epoch).first()
