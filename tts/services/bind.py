"""Giving a segment to a slot: the attempt is written first, the wire is told after the commit."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta

import redis
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from portal.lib.queues import slot_queue
from tts.models import Attempt, DeviceSlot, Segment
from tts.selectors.devices import ready_devices
from tts.services.fair_share import queue_in_order
from tts.states import BIND_SECONDS, JOB_LIVE, DeviceState, SegmentState

logger = logging.getLogger(__name__)
ATTEMPT_TASK = "tts.tasks.speak_attempt"
# RQ's own limit on a job. The worker's watchdogs end a segment long before; RQ only needs a finite number (with an
# endless one its cleanup queues a running job again after 420 s).
RQ_TIMEOUT_S = 900


class _SlotTaken(Exception):
    """The slot got work from somebody else in the meantime: the transaction is rolled back."""


def idle_slots() -> list[DeviceSlot]:
    """The slots that could take work now, one per worker, devices in turn."""
    return list(
        DeviceSlot.objects.filter(ready=True, attempt_id__isnull=True, device__in=ready_devices())
        .exclude(device__state__in=[DeviceState.DRAINING, DeviceState.QUARANTINED])
        .select_related("device")
        .order_by("number", "device_id")
    )


def bind_idle_slots() -> int:
    """Give every idle slot a segment while there are any; returns how many were bound."""
    bound = 0
    for slot in idle_slots():
        attempt = bind_next(slot=slot)
        if attempt is None:
            break
        bound += 1
    return bound


def bind_next(*, slot: DeviceSlot) -> Attempt | None:
    """Bind the next segment to this slot and put the attempt's id on its queue; None when there is nothing to do.

    Safe to call from anywhere at any time: the segment is taken with SKIP LOCKED, the slot by compare-and-set.
    """
    try:
        with transaction.atomic():
            attempt = _bind(slot)
            if attempt is not None:
                transaction.on_commit(lambda: enqueue(attempt), robust=True)
    except _SlotTaken:
        return None
    return attempt


def _bind(slot: DeviceSlot) -> Attempt | None:
    segment = (
        queue_in_order()
        .filter(job__state__in=JOB_LIVE, job__cancel_requested_at__isnull=True)
        .select_for_update(skip_locked=True, of=("self",))
        .first()
    )
    if segment is None:
        return None
    attempt = Attempt(
        segment=segment,
        job_id=segment.job_id,
        workspace_id=segment.workspace_id,
        attempt_number=segment.attempt_number + 1,
        device_id=slot.device_id,
        slot_number=slot.number,
        epoch=slot.device.epoch,
        leased_until=Now() + timedelta(seconds=BIND_SECONDS),
        bound_at=Now(),
    )
    Segment.objects.filter(pk=segment.pk, state=SegmentState.QUEUED).update(
        state=SegmentState.BOUND, attempt_number=F("attempt_number") + 1
    )
    attempt.save(force_insert=True)
    taken = DeviceSlot.objects.filter(
        pk=slot.pk, ready=True, attempt_id__isnull=True, device__epoch=slot.device.epoch
    ).update(attempt_id=attempt.pk)
    if taken != 1:
        raise _SlotTaken
    return attempt


def enqueue(attempt: Attempt) -> None:
    """Put the attempt's id on its slot's queue. Losing it is repaired by the sweep: RQ is the wire, not the truth."""
    queue = slot_queue(device_id=attempt.device_id, slot_number=attempt.slot_number)
    try:
        queue.enqueue(
            ATTEMPT_TASK,
            str(attempt.pk),
            job_id=f"attempt-{attempt.pk}",
            job_timeout=RQ_TIMEOUT_S,
            result_ttl=0,
            failure_ttl=86_400,
        )
    except redis.RedisError as error:
        logger.warning("enqueue_failed", extra={"attempt_id": attempt.pk, "error": type(error).__name__})


def release_slot(*, device_id: int, slot_number: int, attempt_id: uuid.UUID) -> None:
    """Free the slot, if it still holds this attempt."""
    DeviceSlot.objects.filter(device_id=device_id, number=slot_number, attempt_id=attempt_id).update(
        attempt_id=None
    )
