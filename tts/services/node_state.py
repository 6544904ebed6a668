"""What a node's agent notes about its devices beside their lives: memory that is short, engines that are wanted.

Guarded by the epoch, like everything in tts.services.devices.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypedDict

from django.db import transaction
from django.db.models.functions import Now

from tts.engine.capabilities import Capabilities
from tts.engine.catalogue import ENGINES
from tts.models import Attempt, Device, DeviceEventKind, DeviceSlot
from tts.services.device_events import record_event
from tts.states import AttemptState, DeviceState

MEMORY_LOW = "memory_low"
NOT_FOUND = "not_found"


def note_memory(*, device_id: int, epoch: int, low: bool) -> None:
    """Say that a starting device waits for memory that other programs hold, or that it no longer does."""
    device = Device.objects.filter(pk=device_id, epoch=epoch)
    if low:
        device.filter(state=DeviceState.STARTING).exclude(state_reason=MEMORY_LOW).update(
            state_reason=MEMORY_LOW
        )
    else:
        device.filter(state_reason=MEMORY_LOW).update(state_reason="")


def stop_missing_devices(*, node_name: str, found: list[str]) -> int:
    """Stop the node's devices that its new agent no longer offers; returns how many. A quarantine stays."""
    missing = (
        Device.objects.filter(node_name=node_name)
        .exclude(name__in=found)
        .exclude(state__in=[DeviceState.STOPPED, DeviceState.QUARANTINED])
    )
    with transaction.atomic():
        stopped = missing.update(state=DeviceState.STOPPED, state_reason=NOT_FOUND)
        if stopped:
            DeviceSlot.objects.filter(device__node_name=node_name).exclude(device__name__in=found).update(
                ready=False
            )
    return stopped


def expire_leases(*, device_id: int, epoch: int, slot_number: int) -> int:
    """Give up what a worker spoke that has ended: the sweep takes it at its next look instead of ten seconds later.

    Call when the slot's worker is known to be dead and before the next one is started. Returns how many it were.
    """
    return Attempt.objects.filter(
        device_id=device_id, slot_number=slot_number, state=AttemptState.RUNNING, device__epoch=epoch
    ).update(leased_until=Now() - timedelta(seconds=1))


def want_engine(*, device_id: int, epoch: int, engine: str) -> bool:
    """Have the device's workers bring up another engine beside theirs and change over; False in a newer incarnation."""
    with transaction.atomic():
        wanted = Device.objects.filter(pk=device_id, epoch=epoch).update(wanted_engine=engine)
        if wanted:
            record_event(device_id=device_id, epoch=epoch, kind=DeviceEventKind.SWAP_STARTED, detail=engine)
    return wanted == 1


def give_up_engine(*, device_id: int, epoch: int, engine: str, before: str, detail: str) -> bool:
    """Stop wanting an engine that did not come up; the old one goes on serving. False when it is not wanted any more.

    `before`: what was wanted before it.
    """
    with transaction.atomic():
        given_up = Device.objects.filter(pk=device_id, epoch=epoch, wanted_engine=engine).update(
            wanted_engine=before
        )
        if given_up:
            record_event(device_id=device_id, epoch=epoch, kind=DeviceEventKind.SWAP_FAILED, detail=detail)
    return given_up == 1


class ToldCapabilities(TypedDict):
    """The columns of a device that say what its engine can do."""

    languages: list[str]
    capabilities: dict[str, Any]
    offers: list[str]


def capability_columns(capabilities: Capabilities | None) -> ToldCapabilities:
    """What is stored of an engine's capabilities; None: it has not said any, and is given everything."""
    if capabilities is None:
        return {"languages": [], "capabilities": {}, "offers": []}
    return {
        "languages": list(capabilities.languages),
        "capabilities": capabilities.as_json(),
        "offers": capabilities.offers(),
    }


def told_capabilities(*, device: Device, engine: str) -> ToldCapabilities:
    """What is known of an engine before it has loaded on this device: what it said here last, else the catalogue."""
    if device.engine == engine and device.offers:
        return {
            "languages": device.languages,
            "capabilities": device.capabilities,
            "offers": device.offers,
        }
    known = ENGINES.get(engine)
    return capability_columns(known.capabilities if known else None)


def take_engine(*, device_id: int, epoch: int, engine: str) -> bool:
    """Give a device without workers another engine: the next worker starts with it. False in a newer incarnation."""
    with transaction.atomic():
        device = Device.objects.filter(pk=device_id, epoch=epoch).first()
        if device is None:
            return False
        taken = Device.objects.filter(pk=device_id, epoch=epoch).update(
            engine=engine,
            wanted_engine=engine,
            engine_version="",
            **told_capabilities(device=device, engine=engine),
        )
        if taken:
            record_event(device_id=device_id, epoch=epoch, kind=DeviceEventKind.SWAPPED, detail=engine)
    return taken == 1
