"""What a node's agent writes about its devices. Workers write about their slots (tts.services.slots).

Guarded by the epoch: an older incarnation changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from tts.models import Device, DeviceKind, DeviceSlot
from tts.models.operations import DeviceEventKind
from tts.services.device_events import record_event
from tts.services.health import DRAINED
from tts.services.node_state import told_capabilities
from tts.services.slots import slot_heartbeat, slot_not_ready, slot_ready
from tts.states import DeviceState

__all__ = [
    "FoundDevice",
    "heartbeat_device",
    "register_device",
    "slot_heartbeat",
    "slot_not_ready",
    "slot_ready",
    "stop_device",
]


@dataclass(frozen=True)
class FoundDevice:
    """A device as the agent found it on its host."""

    name: str
    kind: DeviceKind
    model_name: str
    engine: str
    slots: int
    memory_total_bytes: int | None
    installed_engines: Sequence[Mapping[str, str]] = ()


@transaction.atomic
def register_device(*, node_name: str, found: FoundDevice) -> Device:
    """Store the device as a new incarnation (epoch + 1), starting, with its slots empty; returns it."""
    device, _created = Device.objects.select_for_update(no_key=True).get_or_create(
        name=found.name, defaults={"node_name": node_name, "kind": found.kind}
    )
    engine = device.wanted_engine or found.engine
    told = told_capabilities(device=device, engine=engine)
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
        # An operator's swap outlives restarts of the host.
        engine=engine,
        **told,
        installed_engines=[dict(one) for one in found.installed_engines],
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
        ready=False, worker_name="", worker_pid=None, engine_pid=None, engine="", recycling_since=None
    )
    DeviceSlot.objects.filter(device=device, number__gte=found.slots).delete()
    device.refresh_from_db()
    record_event(
        device_id=device.pk,
        epoch=device.epoch,
        kind=DeviceEventKind.REGISTERED,
        detail=f"{node_name}, {engine}",
    )
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


def stop_device(*, device_id: int, epoch: int, reason: str) -> None:
    """The agent goes: the device takes no more work."""
    with transaction.atomic():
        stopped = (
            Device.objects.filter(pk=device_id, epoch=epoch)
            .exclude(state__in=[DeviceState.QUARANTINED, DeviceState.STOPPED])
            .update(state=DeviceState.STOPPED, state_reason=reason)
        )
        if stopped:
            record_event(device_id=device_id, epoch=epoch, kind=DeviceEventKind.STOPPED, detail=reason)
        DeviceSlot.objects.filter(device_id=device_id, device__epoch=epoch).update(ready=False)
