"""Giving a segment to a slot: the attempt is written first, the wire is told after the commit.

The decision itself is one call of the database function `tts_bind` (rule: tts.services.fair_share).
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass

import redis
from django.db import connection, transaction

from portal.lib.queues import slot_queue
from tts.models import DeviceSlot
from tts.states import BIND_SECONDS, DEVICE_HEARTBEAT_SECONDS

logger = logging.getLogger(__name__)
ATTEMPT_TASK = "tts.tasks.speak_attempt"
# RQ's own limit on a job. The worker's watchdogs end a segment long before; RQ only needs a finite number (with an
# endless one its cleanup queues a running job again after 420 s).
RQ_TIMEOUT_S = 900


@dataclass(frozen=True)
class Binding:
    """An attempt that was written, and the slot whose queue carries its id."""

    attempt_id: uuid.UUID
    device_id: int
    slot_number: int


def bind_idle_slots() -> int:
    """Give every idle slot a segment while there are any; returns how many were bound.

    Locks slots, the fair-share rows and segments. What others are changing just now is passed over.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attempt_id, device_id, slot_number FROM tts_bind_idle(%s, %s)",
            [BIND_SECONDS, DEVICE_HEARTBEAT_SECONDS],
        )
        bindings = [Binding(*row) for row in cursor.fetchall()]
    for binding in bindings:
        _enqueue_on_commit(binding)
    return len(bindings)


def bind_next(*, slot: DeviceSlot) -> Binding | None:
    """Bind the next segment to this slot and put the attempt's id on its queue; None when there is nothing to do.

    Safe to call from anywhere at any time: a slot that is not idle, not ready or of a device that takes no work is
    left as it is.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT tts_bind(%s, %s, %s)", [slot.pk, BIND_SECONDS, DEVICE_HEARTBEAT_SECONDS])
        attempt_id: uuid.UUID | None = cursor.fetchone()[0]
    if attempt_id is None:
        return None
    binding = Binding(attempt_id, slot.device_id, slot.number)
    _enqueue_on_commit(binding)
    return binding


def hand_over(*, device_id: int, slot_number: int, attempt_id: uuid.UUID) -> Binding | None:
    """Bind the next segment to a slot whose attempt has been spoken but is not settled yet; its id goes on the slot's
    queue (without the wire: tts.services.claiming).

    None, and nothing changed, where nothing waits or the slot is not this attempt's any more.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tts_hand_over(%s, %s, %s, %s, %s)",
            [device_id, slot_number, attempt_id, BIND_SECONDS, DEVICE_HEARTBEAT_SECONDS],
        )
        next_id: uuid.UUID | None = cursor.fetchone()[0]
    if next_id is None:
        return None
    binding = Binding(next_id, device_id, slot_number)
    _enqueue_on_commit(binding)
    return binding


def true_up_shares() -> None:
    """Put what ended attempts really took in place of what was reckoned with. The next decision would do it too, and
    a device would wait for that. Locks the classes and, one after the other, the queues of what has ended."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tts_true_up_ahead()")


def _enqueue_on_commit(binding: Binding) -> None:
    transaction.on_commit(lambda: enqueue(binding), robust=True)


def enqueue(binding: Binding) -> None:
    """Put the attempt's id on its slot's queue. Losing it is repaired by the sweep: RQ is the wire, not the truth."""
    queue = slot_queue(device_id=binding.device_id, slot_number=binding.slot_number)
    try:
        queue.enqueue(
            ATTEMPT_TASK,
            str(binding.attempt_id),
            job_id=f"attempt-{binding.attempt_id}",
            job_timeout=RQ_TIMEOUT_S,
            result_ttl=0,
            failure_ttl=86_400,
        )
    except redis.RedisError as error:
        logger.warning(
            "enqueue_failed", extra={"attempt_id": binding.attempt_id, "error": type(error).__name__}
        )


def release_slot(*, device_id: int, slot_number: int, attempt_id: uuid.UUID) -> None:
    """Free the slot, if it still holds this attempt."""
    DeviceSlot.objects.filter(device_id=device_id, number=slot_number, attempt_id=attempt_id).update(
        attempt_id=None
    )
