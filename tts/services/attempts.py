"""An attempt's life: claimed, leased, settled once. Every change is fenced by the attempt's number.

Lock order everywhere: credit account → hold → grants → job → segment → attempt → device → device slot.
"""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, Value
from django.db.models.functions import Coalesce, Now

from billing.errors import HoldNotOpen
from billing.pricing import price_gpu_ms
from billing.selectors.prices import rate_for
from billing.services import holds
from billing.services.ledger import AlreadyPosted
from tts import storage
from tts.audio.speech_check import SpeechCheck
from tts.models import Attempt, Segment, SynthesisJob
from tts.services import wakeups
from tts.services.bind import release_slot
from tts.services.closing import (
    Charge,
    Fenced,
    Outcome,
    Work,
    asked_seed,
    close,
    closed_attempt,
    locked_job,
    record,
)
from tts.services.endings import end_job, end_job_if_complete, keep_what_was_spoken
from tts.states import (
    ATTEMPT_LIVE,
    JOB_ENDED,
    JOB_LIVE,
    LEASE_SECONDS,
    MAX_ATTEMPTS,
    AttemptState,
    JobState,
    SegmentState,
)

__all__ = [
    "Fenced",
    "Outcome",
    "Work",
    "abandon_attempt",
    "begin_job",
    "charge",
    "expire_lease",
    "expired_attempts",
    "fail_attempt",
    "finish_attempt",
    "lose_attempt",
    "may_be_tried_again",
    "must_stop",
    "note_first_chunk",
    "renew_lease",
    "seed_of",
    "stop_attempt",
]
logger = logging.getLogger(__name__)

# What an attempt's `error_code` says whose speech was found bad (tts.audio.speech_check).
SPEECH_REJECTED = "speech_rejected"
# Seeds have 31 bits. Engines take the next ones for tries of their own: a step further is none of theirs.
SEEDS = 2**31
SEED_STEP = 1000


def begin_job(*, work: Work) -> None:
    """The job runs, from its first claimed segment on; its watchers are told."""
    SynthesisJob.objects.filter(
        pk=work.job.pk, state=JobState.QUEUED, cancel_requested_at__isnull=True
    ).update(state=JobState.RUNNING, started_at=Coalesce("started_at", Value(work.attempt.started_at)))
    wakeups.wake_job(job_id=work.job.pk)


def renew_lease(*, attempt_id: uuid.UUID) -> bool:
    """Extend a running attempt's lease by the database's clock; False when it was taken away."""
    renewed = Attempt.objects.filter(pk=attempt_id, state=AttemptState.RUNNING).update(
        leased_until=Now() + timedelta(seconds=LEASE_SECONDS)
    )
    return renewed == 1


def must_stop(*, attempt_id: uuid.UUID) -> bool:
    """Whether a running attempt's job was canceled or has ended: what Redis may have forgotten to tell its worker."""
    over = Q(job__cancel_requested_at__isnull=False) | Q(job__state__in=JOB_ENDED)
    return Attempt.objects.filter(over, pk=attempt_id, state=AttemptState.RUNNING).exists()


def note_first_chunk(*, attempt: Attempt) -> None:
    """Remember when the first audio was there."""
    Attempt.objects.filter(pk=attempt.pk, first_chunk_at__isnull=True).update(first_chunk_at=Now())
    SynthesisJob.objects.filter(pk=attempt.job_id, first_audio_at__isnull=True).update(first_audio_at=Now())


def finish_attempt(*, work: Work, outcome: Outcome) -> None:
    """Settle a spoken attempt: charge it, publish its audio, and end the job when it was the last one.

    Raises Fenced, having changed nothing, when the attempt is not the live one any more.
    """
    with transaction.atomic():
        # Nobody but this attempt could have cut the one segment in two.
        charged = charge(work, outcome, last=work.job.segment_count == 1)
        job = locked_job(work.job.pk)
        closed = close(
            work,
            outcome,
            segment_state=SegmentState.SUCCEEDED,
            attempt_state=AttemptState.SUCCEEDED,
            charged=charged.charged_micros,
        )
        record(work, outcome, closed, charge=charged)
        _add_to_job(work, outcome, charged=charged.charged_micros, segments_done=1)
        if job.segment_count == 1:
            # The one segment's file is the job's file; longer ones are put together after the commit.
            end_job(job_id=job.pk, state=JobState.SUCCEEDED, audio_key=outcome.audio_key, peaks=outcome.peaks)
    if work.job.segment_count > 1:
        end_job_if_complete(job_id=work.job.pk)
    wakeups.wake_job(job_id=work.job.pk)


def stop_attempt(*, work: Work, outcome: Outcome, error_code: str) -> None:
    """Settle an attempt that was ended early by the customer's wish or money: what was used is paid.

    `error_code` is "canceled" or "budget_exhausted". What was spoken until then is kept as the job's audio. Raises
    Fenced, having changed nothing, when the attempt is not the live one any more.
    """
    canceled = error_code == "canceled"
    with transaction.atomic():
        charged = charge(work, outcome)
        job = locked_job(work.job.pk)
        closed = close(
            work,
            outcome,
            segment_state=SegmentState.CANCELED if canceled else SegmentState.FAILED,
            attempt_state=AttemptState.CANCELED if canceled else AttemptState.FAILED,
            charged=charged.charged_micros,
            error_code=error_code,
        )
        record(work, outcome, closed, charge=charged)
        _add_to_job(work, outcome, charged=charged.charged_micros, segments_done=0)
        kept = outcome.audio_key if job.segment_count == 1 else ""
        # A canceled job ends with its last attempt, so that each of them is paid for what it used.
        if not canceled or not _has_attempts_in_hand(job):
            end_job(
                job_id=job.pk,
                state=JobState.CANCELED if canceled else JobState.FAILED,
                error_code="" if canceled else error_code,
                audio_key=kept,
                peaks=outcome.peaks if kept else None,
            )
    if work.job.segment_count > 1:
        keep_what_was_spoken(job_id=work.job.pk)
    wakeups.wake_job(job_id=work.job.pk)


def fail_attempt(
    *,
    work: Work,
    error_code: str,
    error_detail: str,
    gpu_ms: int,
    blame_user: bool,
    expired: bool = False,
    give_up_as: str = "",
    rejected: Outcome | None = None,
) -> None:
    """Settle an attempt that failed. The platform's fault costs nothing and is tried again; a user's ends the job.

    `expired`: its worker is gone, and it is settled only if its lease has run out. `give_up_as`: it is not tried
    again, and the job fails with this code, at our cost. `rejected`: of speech that was found bad. Raises Fenced,
    having changed nothing, when the attempt is not the live one any more.
    """
    outcome = rejected or Outcome(gpu_ms=gpu_ms, audio_ms=0)
    with transaction.atomic():
        # The end of the job may release the hold: the account comes first in the order of locks.
        holds.lock_account(workspace_id=work.job.workspace_id)
        job = locked_job(work.job.pk)
        tries = Attempt.objects.filter(segment_id=work.segment.pk, started_at__isnull=False).count()
        canceled = job.cancel_requested_at is not None
        again = not blame_user and not give_up_as and not canceled and tries < MAX_ATTEMPTS
        closed = close(
            work,
            outcome,
            segment_state=SegmentState.QUEUED if again else SegmentState.FAILED,
            attempt_state=AttemptState.LOST if expired else AttemptState.FAILED,
            charged=0,
            error_code=error_code,
            error_detail=error_detail,
            expired=expired,
        )
        record(work, outcome, closed, charge=None)
        if canceled and not _has_attempts_in_hand(job):
            end_job(job_id=job.pk, state=JobState.CANCELED)
        elif not canceled and not again:
            end_job(
                job_id=job.pk,
                state=JobState.FAILED,
                error_code=error_code if blame_user else give_up_as or "engine_failed",
                refund=not blame_user,
            )
    logger.warning(
        "attempt_failed",
        extra={
            "attempt_id": work.attempt.pk,
            "job_id": work.job.pk,
            "error_code": error_code,
            "detail": error_detail,
            "again": again,
        },
    )
    wakeups.wake_job(job_id=work.job.pk)


def may_be_tried_again(work: Work, check: SpeechCheck | None = None) -> bool:
    """Whether a fault of the platform in this attempt would be followed by another. `check`: of speech that was found
    bad; a likeness that is missing is tried for once more alone."""
    if check is not None and check.is_another_speaker and _found_bad(work):
        return False
    tries = Attempt.objects.filter(segment_id=work.segment.pk, started_at__isnull=False).count()
    return tries < MAX_ATTEMPTS


def seed_of(work: Work) -> int:
    """The seed to speak by: the one that was asked for, or another one for each time that the speech was found bad."""
    if work.attempt.attempt_number == 1:
        return asked_seed(work)
    return (asked_seed(work) + SEED_STEP * _found_bad(work)) % SEEDS


def _found_bad(work: Work) -> int:
    """How often the segment's speech was found bad before."""
    return Attempt.objects.filter(segment_id=work.segment.pk, error_code=SPEECH_REJECTED).count()


def abandon_attempt(*, attempt: Attempt, gpu_ms: int = 0) -> None:
    """Close an attempt that lost its segment (fenced), free its slot and remove what was stored for it.

    Where the segment is still its own (a claim that a crash forgot, a job that was canceled a moment ago), its lease is
    ended instead: the sweep settles it, and the segment goes on. Never charges; harmless when it is closed.
    """
    mine = Segment.objects.filter(
        pk=OuterRef("segment_id"),
        attempt_number=OuterRef("attempt_number"),
        state__in=[SegmentState.BOUND, SegmentState.RUNNING],
        job__state__in=JOB_LIVE,
    )
    live = Attempt.objects.filter(pk=attempt.pk, state__in=ATTEMPT_LIVE)
    with transaction.atomic():
        if live.filter(Exists(mine)).update(leased_until=Now() - timedelta(seconds=1)):
            return
        closed = live.filter(~Exists(mine)).update(
            state=AttemptState.CANCELED, finished_at=Now(), gpu_ms=gpu_ms, error_code="fenced"
        )
        if closed:
            work = Work.of(attempt)
            record(work, Outcome(gpu_ms=gpu_ms, audio_ms=0), closed_attempt(attempt.pk), charge=None)
        release_slot(device_id=attempt.device_id, slot_number=attempt.slot_number, attempt_id=attempt.pk)
    _remove_unpublished_audio(attempt)


def expire_lease(*, attempt_id: uuid.UUID) -> None:
    """End the lease of an attempt that its worker cannot settle: the sweep hands its segment on at once."""
    Attempt.objects.filter(pk=attempt_id, state__in=ATTEMPT_LIVE).update(
        leased_until=Now() - timedelta(seconds=1)
    )


def expired_attempts() -> list[Attempt]:
    """Attempts whose worker is gone: the lease ran out, by the database's clock."""
    return list(
        Attempt.objects.select_related("segment__voice", "job__voice", "job__price_version")
        .filter(state__in=ATTEMPT_LIVE, leased_until__lt=Now())
        .order_by("leased_until")[:200]
    )


def lose_attempt(*, attempt: Attempt, error_code: str = "") -> None:
    """Settle an expired attempt. Nothing is charged; its segment goes to the next slot.

    `error_code` says why where it is known. Raises Fenced when its worker came back in the meantime.
    """
    work = Work.of(attempt)
    code = error_code or ("lost_on_the_wire" if attempt.state == AttemptState.BOUND else "worker_lost")
    overtaken = attempt.job.state not in JOB_LIVE or attempt.segment.attempt_number != attempt.attempt_number
    if overtaken:
        abandon_attempt(attempt=attempt)
    else:
        fail_attempt(work=work, error_code=code, error_detail="", gpu_ms=0, blame_user=False, expired=True)
        _remove_unpublished_audio(attempt)


def _remove_unpublished_audio(attempt: Attempt) -> None:
    """Its worker may have stored audio before it was fenced, or died, and settled nothing: no row will ever name it."""
    if Attempt.objects.filter(pk=attempt.pk, audio_key="").exists():
        storage.delete(
            storage.attempt_audio_key(
                workspace_id=attempt.workspace_id, job_id=attempt.job_id, attempt_id=attempt.pk
            )
        )


def _has_attempts_in_hand(job: SynthesisJob) -> bool:
    return Segment.objects.filter(job=job, state__in=[SegmentState.BOUND, SegmentState.RUNNING]).exists()


def _add_to_job(work: Work, outcome: Outcome, *, charged: int, segments_done: int) -> None:
    SynthesisJob.objects.filter(pk=work.job.pk).update(
        segments_done=F("segments_done") + segments_done,
        gpu_ms=F("gpu_ms") + outcome.gpu_ms,
        audio_ms=F("audio_ms") + outcome.audio_ms,
        charged_micros=F("charged_micros") + charged,
    )


def charge(work: Work, outcome: Outcome, *, last: bool = False) -> Charge:
    """Capture what the attempt used, at the rate of the device that spoke it. `last`: the job ends with it.

    A hold that is closed, or an attempt charged before, means we are too late: raises Fenced.
    """
    price = work.job.price_version
    device_class = work.attempt.device.device_class
    rate = rate_for(price=price, job_class=work.job.job_class, device_class=device_class)
    rated = price_gpu_ms(gpu_ms=outcome.gpu_ms, rate=rate)
    try:
        charged = holds.capture(
            job_id=work.job.pk, attempt_id=work.attempt.pk, amount_micros=rated, last=last
        )
    except (HoldNotOpen, AlreadyPosted) as error:
        raise Fenced from error
    return Charge(
        price_version_id=price.pk,
        gpu_second_micros=rate.gpu_second_micros,
        rated_micros=rated,
        charged_micros=charged,
    )
