"""What a node's agent and its workers write about devices.

Guarded by the epoch: an older incarnation changes nothing.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from tts.models import Device, DeviceKind, DeviceSlot
from tts.services.health import DRAINED
from tts.states import DeviceState

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FoundDevice:
    """A device as the agent found it on its host."""

    name: str
    kind: DeviceKind
    model_name: str
    engine: str
    slots: int
    memory_total_bytes: int | None


@transaction.atomic
def register_device(*, node_name: str, found: FoundDevice) -> Device:
    """Store the device as a new incarnation (epoch + 1), starting, with its slots empty; returns it."""
    device, _created = Device.objects.select_for_update(no_key=True).get_or_create(
        name=found.name, defaults={"node_name": node_name, "kind": found.kind}
    )
    # A quarantined device stays so until it is released, a drained one until it is resumed: a restart of its
    # host proves nothing.
    state, reason = DeviceState.STARTING, ""
    if device.state == DeviceState.QUARANTINED:
        state, reason = DeviceState.QUARANTINED, device.state_reason
    elif device.drained_at is not None:
        state, reason = DeviceState.STOPPED, DRAINED
    Device.objects.filter(pk=device.pk).update(
        node_name=node_name,
        kind=found.kind,
        model_name=found.model_name,
        engine=found.engine,
        slots=found.slots,
        memory_total_bytes=found.memory_total_bytes,
        epoch=F("epoch") + 1,
        state=state,
        state_reason=reason,
        heartbeat_at=Now(),
    )
    DeviceSlot.objects.bulk_create(
        [DeviceSlot(device=device, number=number) for number in range(found.slots)], ignore_conflicts=True
    )
    DeviceSlot.objects.filter(device=device).update(
        ready=False, worker_name="", worker_pid=None, engine_pid=None
    )
    DeviceSlot.objects.filter(device=device, number__gte=found.slots).delete()
    device.refresh_from_db()
    return device


def heartbeat_device(*, device_id: int, epoch: int, memory_used_bytes: int | None) -> bool:
    """The agent lives. False when a newer incarnation has taken the device over."""
    beaten = Device.objects.filter(pk=device_id, epoch=epoch).update(
        heartbeat_at=Now(), memory_used_bytes=memory_used_bytes
    )
    # An agent that was held up (a paused host) finds its device stopped by the sweep: its slots bring it back.
    silenced = Device.objects.filter(
        pk=device_id, epoch=epoch, state=DeviceState.STOPPED, state_reason="agent_silent"
    )
    silenced.filter(drained_at__isnull=True).update(state=DeviceState.STARTING, state_reason="")
    silenced.filter(drained_at__isnull=False).update(state=DeviceState.DRAINING, state_reason="")
    return beaten == 1


def slot_ready(
    *,
    device_id: int,
    epoch: int,
    slot_number: int,
    worker_name: str,
    worker_pid: int,
    engine_pid: int,
    engine_version: str,
) -> bool:
    """A worker's engine is warm: the slot takes work from now on. False when a newer incarnation has it."""
    with transaction.atomic():
        marked = DeviceSlot.objects.filter(
            device_id=device_id, number=slot_number, device__epoch=epoch
        ).update(
            ready=True,
            worker_name=worker_name,
            worker_pid=worker_pid,
            engine_pid=engine_pid,
            heartbeat_at=Now(),
        )
        if marked:
            Device.objects.filter(pk=device_id, epoch=epoch, state=DeviceState.STARTING).update(
                state=DeviceState.READY, state_reason="", engine_version=engine_version
            )
    return marked == 1


def slot_heartbeat(*, device_id: int, epoch: int, slot_number: int, ready: bool) -> bool:
    """A worker lives; brings its slot back when the sweep had taken it out. False when a newer incarnation has it."""
    beaten = DeviceSlot.objects.filter(device_id=device_id, number=slot_number, device__epoch=epoch).update(
        heartbeat_at=Now(), ready=ready
    )
    if beaten and ready:
        Device.objects.filter(pk=device_id, epoch=epoch, state=DeviceState.STARTING).update(
            state=DeviceState.READY
        )
    return beaten == 1


def slot_not_ready(*, device_id: int, epoch: int, slot_number: int, restarted: bool = False) -> None:
    """The slot takes no work: its engine restarts or its worker ends. The last slot takes the device with it."""
    with transaction.atomic():
        DeviceSlot.objects.filter(device_id=device_id, number=slot_number, device__epoch=epoch).update(
            ready=False, engine_pid=None
        )
        if restarted:
            Device.objects.filter(pk=device_id, epoch=epoch).update(restarts=F("restarts") + 1)
        if not DeviceSlot.objects.filter(device_id=device_id, ready=True).exists():
            Device.objects.filter(
                Q(state=DeviceState.READY) | Q(state=DeviceState.BUSY), pk=device_id, epoch=epoch
            ).update(state=DeviceState.STARTING)


def stop_device(*, device_id: int, epoch: int, reason: str) -> None:
    """The agent goes: the device takes no more work."""
    with transaction.atomic():
        Device.objects.filter(pk=device_id, epoch=epoch).exclude(state=DeviceState.QUARANTINED).update(
            state=DeviceState.STOPPED, state_reason=reason
        )
        DeviceSlot.objects.filter(device_id=device_id, device__epoch=epoch).update(ready=False)
