"""The sweep, once a second: finds what was lost and puts it right.

Every step may run twice, and on two hosts at once.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from django.db import DatabaseError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from billing.services.stale_holds import release_stale_holds
from tts.models import Attempt, Device, DeviceSlot, Segment, SynthesisJob
from tts.services.attempts import Fenced, expired_attempts, lose_attempt
from tts.services.bind import bind_idle_slots
from tts.services.blame import forget_ended_blocks
from tts.services.endings import end_job_if_complete, jobs_to_end
from tts.services.health import finish_drains
from tts.services.jobs import delete_job_files
from tts.services.left_recordings import remove_left_recordings
from tts.services.new_folders import remove_folders_without_rows
from tts.services.orphans import return_orphans
from tts.services.partial_audio import publish_partial_audio
from tts.states import ATTEMPT_LIVE, DEVICE_HEARTBEAT_SECONDS, JOB_ENDED, DeviceState

logger = logging.getLogger(__name__)

# What is left behind by a job's end or its deletion is looked for this long after it, every second; after that, and
# after a time without a clock, by `sweep_thoroughly`.
LATELY = timedelta(hours=1)
JUST_NOW = timedelta(minutes=5)


def sweep() -> Counter[str]:
    """Repair everything that is due, and return what was done, by kind. Nothing in it waits for a device."""
    steps: dict[str, Callable[[], int]] = {
        "devices_stopped": stop_silent_devices,
        "attempts_lost": lose_expired_attempts,
        "segments_returned": return_orphans,
        "slots_freed": free_stale_slots,
        "drains_finished": finish_drains,
        "jobs_ended": lambda: sum(end_job_if_complete(job_id=job_id) for job_id in jobs_to_end()),
        "partial_audio_published": publish_partial_audio,
        "holds_released": release_holds_of_ended_jobs,
        "files_removed": remove_files_of_deleted_jobs,
        "bound": bind_idle_slots,
    }
    return _take(steps)


def sweep_thoroughly() -> Counter[str]:
    """Look once more for what the sweep looks for among the latest jobs alone, now among all of them; and for files
    that processes which died left of rows that were never stored, or are gone.

    For once an hour, and whenever a clock begins to lead.
    """
    return _take(
        {
            "holds_released": lambda: release_holds_of_ended_jobs(within=None),
            "files_removed": lambda: remove_files_of_deleted_jobs(within=None),
            "folders_removed": remove_folders_without_rows,
            "recordings_removed": remove_left_recordings,
            "blocks_forgotten": forget_ended_blocks,
        }
    )


def _take(steps: dict[str, Callable[[], int]]) -> Counter[str]:
    done: Counter[str] = Counter()
    for name, step in steps.items():
        try:
            done[name] = step()
        except DatabaseError:
            raise  # none of the other steps could do more
        except Exception:
            # One broken row or file must not keep the other repairs from being made.
            logger.exception("sweep_step_failed", extra={"step": name})
    done = +done
    if set(done) - {"bound"}:
        logger.info("sweep_repaired", extra=dict(done))
    return done


def lose_expired_attempts() -> int:
    """Attempts whose worker is gone give their segments back."""
    lost = 0
    for attempt in expired_attempts():
        with contextlib.suppress(Fenced):
            lose_attempt(attempt=attempt)
            lost += 1
    return lost


def stop_silent_devices() -> int:
    """Devices whose agent is not heard from take no more work until it is back."""
    silent = Q(heartbeat_at__isnull=True) | Q(
        heartbeat_at__lt=Now() - timedelta(seconds=DEVICE_HEARTBEAT_SECONDS)
    )
    with transaction.atomic():
        stopped = Device.objects.filter(
            silent,
            state__in=[DeviceState.STARTING, DeviceState.READY, DeviceState.BUSY, DeviceState.DRAINING],
        ).update(state=DeviceState.STOPPED, state_reason="agent_silent")
        DeviceSlot.objects.filter(device__state=DeviceState.STOPPED, ready=True).update(ready=False)
    return stopped


def free_stale_slots() -> int:
    """Slots that point at an attempt which has ended: the one who ended it died before freeing them."""
    live = Attempt.objects.filter(pk=OuterRef("attempt_id"), state__in=ATTEMPT_LIVE)
    stale = DeviceSlot.objects.filter(~Exists(live), attempt_id__isnull=False)
    # One by one, and by the attempt: a slot that was freed and bound anew meanwhile is none of these any more.
    return sum(
        DeviceSlot.objects.filter(pk=slot_id, attempt_id=attempt_id).update(attempt_id=None)
        for slot_id, attempt_id in list(stale.values_list("pk", "attempt_id"))
    )


def release_holds_of_ended_jobs(*, within: timedelta | None = JUST_NOW) -> int:
    """Release what is still held for jobs that ended within that time (None: ever); returns how many holds it was."""
    ended = SynthesisJob.objects.filter(state__in=JOB_ENDED)
    if within is not None:
        ended = ended.filter(finished_at__gt=Now() - within)
    return release_stale_holds(ended_job_ids=ended.values("pk"))


def remove_files_of_deleted_jobs(*, within: timedelta | None = LATELY) -> int:
    """Audio that a worker stored after its job was deleted, or that whoever deleted it left behind, of jobs that were
    deleted or ended within that time (None: of all). Returns how many jobs had any."""
    spoken = Attempt.objects.filter(job=OuterRef("pk")).exclude(audio_key="")
    # What was used again has no attempt: its files are known by the segments alone.
    reused = Segment.objects.filter(job=OuterRef("pk"), reused=True).exclude(audio_key="")
    has_files = Q(Exists(spoken)) | ~Q(audio_key="") | Q(Exists(reused), reused_count__gt=0)
    jobs = list(_deleted_jobs(within).filter(has_files).values_list("pk", flat=True)[:100])
    for job_id in jobs:
        delete_job_files(job_id=job_id)
    return len(jobs)


def _deleted_jobs(within: timedelta | None) -> QuerySet[SynthesisJob]:
    deleted = SynthesisJob.objects.filter(deleted_at__isnull=False, state__in=JOB_ENDED)
    if within is None:
        return deleted
    # Two indexes, one for each: when it was deleted, and when what was spoken ended.
    return deleted.filter(Q(deleted_at__gt=Now() - within) | Q(finished_at__gt=Now() - within))
