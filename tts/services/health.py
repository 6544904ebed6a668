"""Whether a device may work: strikes, quarantine and release, drain and resume.

Every change is guarded by the epoch and made by compare-and-set. Locks the device before its slots.
Workers see the new state at their next beat (tts.services.devices.slot_heartbeat) and act on it.
"""

from __future__ import annotations

import os
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from tts.models import Attempt, Device, DeviceSlot
from tts.models.operations import DeviceEvent, DeviceEventKind
from tts.services.attempts import Fenced, lose_attempt
from tts.services.bind import bind_idle_slots
from tts.services.device_events import record_event
from tts.states import ATTEMPT_LIVE, AttemptState, DeviceState

__all__ = [
    "drain_device",
    "finish_drains",
    "quarantine_device",
    "release_device",
    "resume_device",
    "strike",
    "take_back",
]

# Three deaths, hangs or exhaustions of memory within ten minutes are no coincidence. The settings exist for
# operators whose cards are known to be flaky, and for tests that kill engines at random.
STRIKES = int(os.environ.get("VOICEPOOL_STRIKES", "3"))
STRIKE_WINDOW_S = float(os.environ.get("VOICEPOOL_STRIKE_WINDOW_S", "600"))
DRAINED = "drained"
TAKEN_BACK = "taken_back"


def strike(
    *, device_id: int, epoch: int, slot_number: int | None, detail: str, attempt_id: UUID | None
) -> bool:
    """Note that the device lost its engine during an attempt. True when that was the third strike in ten minutes:
    then the device is quarantined. Strikes before its last release do not count."""
    with transaction.atomic():
        device = Device.objects.select_for_update(no_key=True).filter(pk=device_id, epoch=epoch).first()
        if device is None:
            return False
        record_event(
            device_id=device_id,
            epoch=epoch,
            kind=DeviceEventKind.STRIKE,
            detail=detail,
            slot_number=slot_number,
            attempt_id=attempt_id,
        )
        released = (
            DeviceEvent.objects.filter(device_id=device_id, kind=DeviceEventKind.RELEASED)
            .order_by("id")
            .last()
        )
        recent = DeviceEvent.objects.filter(
            device_id=device_id,
            kind=DeviceEventKind.STRIKE,
            created_at__gte=Now() - timedelta(seconds=STRIKE_WINDOW_S),
            id__gt=released.pk if released else 0,
        ).count()
        if recent < STRIKES:
            return False
        return quarantine_device(
            device_id=device_id, epoch=epoch, reason=f"{recent} strikes in {STRIKE_WINDOW_S / 60:g} minutes"
        )


def quarantine_device(*, device_id: int, epoch: int, reason: str) -> bool:
    """Take the device out until somebody releases it; False when it is out already or in another incarnation.

    What it has not started is taken back; what it speaks ends by itself or by the watchdogs.
    """
    with transaction.atomic():
        taken = (
            Device.objects.filter(pk=device_id, epoch=epoch)
            .exclude(state=DeviceState.QUARANTINED)
            .update(state=DeviceState.QUARANTINED, state_reason=reason[:200])
        )
        if not taken:
            return False
        # Nobody's slots: a worker has to pass its test sentence before it may call one its own again.
        DeviceSlot.objects.filter(device_id=device_id).update(ready=False, worker_name="")
        record_event(device_id=device_id, epoch=epoch, kind=DeviceEventKind.QUARANTINED, detail=reason)
        transaction.on_commit(lambda: take_back(device_id=device_id), robust=True)
    return True


def release_device(*, device_id: int, epoch: int, reason: str) -> bool:
    """Let a quarantined device prove itself: its workers bring up a fresh engine, which takes work only after its
    test sentence. A drained one stays out until the resume. False when it is not quarantined in this incarnation."""
    with transaction.atomic():
        quarantined = Device.objects.filter(pk=device_id, epoch=epoch, state=DeviceState.QUARANTINED)
        released = quarantined.filter(drained_at__isnull=True).update(
            state=DeviceState.STARTING, state_reason=""
        ) or quarantined.update(state=DeviceState.STOPPED, state_reason=DRAINED)
        if released:
            record_event(device_id=device_id, epoch=epoch, kind=DeviceEventKind.RELEASED, detail=reason)
    return released == 1


def drain_device(*, device_id: int, epoch: int) -> bool:
    """Give the device nothing more. What it has not started is taken back at once; when it has ended what it
    speaks it is stopped as drained. Outlives restarts, until `resume_device`. A quarantined device keeps its state.

    False when it is drained already or in another incarnation.
    """
    with transaction.atomic():
        device = (
            Device.objects.select_for_update(no_key=True)
            .filter(pk=device_id, epoch=epoch, drained_at__isnull=True)
            .first()
        )
        if device is None:
            return False
        Device.objects.filter(pk=device_id).update(drained_at=Now())
        if device.state != DeviceState.QUARANTINED:
            Device.objects.filter(pk=device_id).update(state=DeviceState.DRAINING, state_reason="")
        DeviceSlot.objects.filter(device_id=device_id).update(ready=False)
        transaction.on_commit(lambda: _take_back_and_finish(device_id), robust=True)
    return True


def resume_device(*, device_id: int, epoch: int) -> bool:
    """Let a drained device work again; False when it is not drained or in another incarnation.

    A device whose quarantine is not over stays in it.
    """
    with transaction.atomic():
        resumed = Device.objects.filter(pk=device_id, epoch=epoch, drained_at__isnull=False).update(
            drained_at=None
        )
        if not resumed:
            return False
        Device.objects.filter(
            Q(state=DeviceState.DRAINING) | Q(state=DeviceState.STOPPED, state_reason=DRAINED),
            pk=device_id,
        ).update(state=DeviceState.STARTING, state_reason="")
        record_event(device_id=device_id, epoch=epoch, kind=DeviceEventKind.RESUMED)
    return True


def finish_drains(*, device_id: int | None = None) -> int:
    """Stop the draining devices (all, or this one) that speak nothing any more; returns how many."""
    draining = Device.objects.filter(state=DeviceState.DRAINING)
    if device_id is not None:
        draining = draining.filter(pk=device_id)
    done = 0
    for device in draining.exclude(pk__in=Attempt.objects.filter(state__in=ATTEMPT_LIVE).values("device_id")):
        with transaction.atomic():
            # Nothing is bound to a draining device, so what speaks nothing now will not speak later.
            stopped = Device.objects.filter(
                pk=device.pk, epoch=device.epoch, state=DeviceState.DRAINING
            ).update(state=DeviceState.STOPPED, state_reason=DRAINED)
            if stopped:
                record_event(device_id=device.pk, epoch=device.epoch, kind=DeviceEventKind.DRAINED)
        done += stopped
    return done


def take_back(*, device_id: int, slot_number: int | None = None) -> int:
    """Give what is bound to this device (or slot) and not started yet back to the queue; returns how much it was.

    What a worker claims in the meantime is its own. Other devices are given the work at once.
    """
    waiting = Attempt.objects.filter(device_id=device_id, state=AttemptState.BOUND)
    if slot_number is not None:
        waiting = waiting.filter(slot_number=slot_number)
    taken = 0
    for attempt in waiting.select_related("segment__voice", "job__voice", "job__price_version"):
        # A lease that is over is the sweep's reason to take an attempt away; a claim begins a new one.
        ended = Attempt.objects.filter(pk=attempt.pk, state=AttemptState.BOUND).update(
            leased_until=Now() - timedelta(seconds=1)
        )
        if not ended:
            continue
        try:
            lose_attempt(attempt=attempt, error_code=TAKEN_BACK)
        except Fenced:
            continue
        taken += 1
    if taken:
        bind_idle_slots()
    return taken


def _take_back_and_finish(device_id: int) -> None:
    take_back(device_id=device_id)
    finish_drains(device_id=device_id)
