"""How a job ends: exactly once, with its hold settled, its live segments closed and its audio published."""

from __future__ import annotations

import logging
import tempfile
import uuid
from functools import partial
from typing import BinaryIO, cast

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from billing.models import Hold
from billing.services import holds
from billing.services.refunds import refund_job
from tts import storage
from tts.audio.assembly import write_joined
from tts.models import Attempt, Segment, SynthesisJob
from tts.selectors.timeline import pauses_ms
from tts.services import job_facts, wakeups
from tts.services.aside import ASIDE_FROM_MS, ASIDE_WITHIN, is_long, put_aside
from tts.services.labels import label_of
from tts.states import JOB_ENDED, JOB_LIVE, SEGMENT_LIVE, AttemptState, JobState, SegmentState

logger = logging.getLogger(__name__)
PEAK_COUNT = 240
# What of a segment goes with its text: a digest of a short text tells it to who tries all of them.
ERASED = {"text": "", "speaker": "", "phrase": "", "spoken_by": ""}


def end_job(
    *,
    job_id: uuid.UUID,
    state: JobState,
    error_code: str = "",
    audio_key: str = "",
    peaks: list[int] | None = None,
    refund: bool = False,
) -> bool:
    """Bring a live job to its end; False when it had ended before. Call inside a transaction.

    Locks the credit account, then the job. Segments that wait are closed; one that is being spoken is left to its
    worker, which finds itself fenced. `refund` gives back what earlier segments of the job had cost.
    """
    held = _release(job_id)
    ended = job_facts.move_to_end(
        job_id=job_id, state=state, error_code=error_code, audio_key=audio_key, peaks=peaks or []
    )
    if ended is None:
        return False
    refunded = refund and held and refund_job(job_id=job_id)
    if refunded:
        SynthesisJob.objects.filter(pk=job_id).update(charged_micros=0)
    job_facts.note_end(ended, charged_micros=0 if refunded else ended.charged_micros)
    # A job that succeeded has nothing left to close, unless it was deleted while it was spoken.
    if (
        state != JobState.SUCCEEDED
        or SynthesisJob.objects.filter(pk=job_id, deleted_at__isnull=False).exists()
    ):
        _close_what_is_left(job_id)
    logger.info("job_ended", extra={"job_id": job_id, "state": state, "error_code": error_code})
    return True


def _release(job_id: uuid.UUID) -> bool:
    """Close the job's hold; False where it has none: nothing of it was to be spoken."""
    try:
        holds.release(job_id=job_id)
    except Hold.DoesNotExist:
        if not SynthesisJob.objects.filter(pk=job_id, reused_count=F("segment_count")).exists():
            raise
        return False
    return True


def _close_what_is_left(job_id: uuid.UUID) -> None:
    Segment.objects.filter(job_id=job_id, state__in=SEGMENT_LIVE).update(state=SegmentState.CANCELED)
    # A segment that was being spoken when its job was deleted kept its text for a worker; nobody needs it now.
    Segment.objects.filter(job_id=job_id, job__deleted_at__isnull=False).update(**ERASED)
    Attempt.objects.filter(job_id=job_id, state=AttemptState.BOUND).update(
        state=AttemptState.CANCELED, finished_at=Now()
    )
    if Attempt.objects.filter(job_id=job_id, state=AttemptState.RUNNING).exists():
        transaction.on_commit(lambda: wakeups.flag_cancel(job_id=job_id), robust=True)


def end_job_if_complete(*, job_id: uuid.UUID) -> bool:
    """End a job that has no live segment left; False when it is not time, or was done before, or is done aside.

    All segments spoken: they are put together and the job succeeded; a long one aside (tts.services.aside). Else it
    was canceled.

    The file is made outside of any transaction and published by compare-and-set: when two processes do it at once,
    one wins and the other deletes its file.
    """
    # Asked after every segment: of a book, thousands of times.
    if Segment.objects.filter(job_id=job_id, state__in=SEGMENT_LIVE).exists():
        return False
    job = SynthesisJob.objects.filter(pk=job_id, state__in=JOB_LIVE).defer("text").first()
    if job is None:
        return False
    segments = list(Segment.objects.filter(job_id=job_id).order_by("index", "part"))
    if any(segment.state != SegmentState.SUCCEEDED for segment in segments):
        return _end_incomplete(job)
    if is_long(job.audio_ms):
        put_aside(job_id, lambda: _end_whole(job, segments))
        return False
    return _end_whole(job, segments)


def _end_whole(job: SynthesisJob, segments: list[Segment]) -> bool:
    """Put a job together all of whose segments were spoken, and publish it."""
    try:
        audio_key, peaks = assemble(job, segments)
    except (FileNotFoundError, IsADirectoryError):
        # Deleted meanwhile: then the job has ended, and this changes nothing. Else the file is lost, and a job
        # that can never be put together must not come up at every sweep.
        return _fail_without_audio(job)
    with transaction.atomic():
        won = end_job(job_id=job.pk, state=JobState.SUCCEEDED, audio_key=audio_key, peaks=peaks)
    if not won:
        storage.delete(audio_key)
        return False
    wakeups.wake_job(job_id=job.pk)
    return True


def _end_incomplete(job: SynthesisJob) -> bool:
    """End a job some of whose segments were never spoken: by the customer's wish, else by our fault."""
    canceled = job.cancel_requested_at is not None
    with transaction.atomic():
        ended = end_job(
            job_id=job.pk,
            state=JobState.CANCELED if canceled else JobState.FAILED,
            error_code="" if canceled else "engine_failed",
            refund=not canceled,
        )
    if ended:
        wakeups.wake_job(job_id=job.pk)
    return ended


def _fail_without_audio(job: SynthesisJob) -> bool:
    """End a live job whose segments' audio cannot be found; what it had cost is given back."""
    with transaction.atomic():
        ended = end_job(job_id=job.pk, state=JobState.FAILED, error_code="audio_lost", refund=True)
    if ended:
        logger.error("job_audio_lost", extra={"job_id": job.pk})
        wakeups.wake_job(job_id=job.pk)
    return ended


def keep_what_was_spoken(*, job_id: uuid.UUID) -> bool:
    """Put together what an ended job of several segments had spoken from its beginning on, and publish it.

    It was paid for. Ends with the segment that was stopped; False when there is nothing, or the job was deleted, or
    it is done aside.
    """
    job = SynthesisJob.objects.filter(
        pk=job_id, state__in=JOB_ENDED, audio_key="", deleted_at__isnull=True
    ).first()
    if job is None:
        return False
    spoken: list[Segment] = []
    for segment in Segment.objects.filter(job_id=job_id).order_by("index", "part"):
        whole = segment.state == SegmentState.SUCCEEDED
        if not whole:
            stopped = (
                Attempt.objects.filter(segment=segment)
                .exclude(audio_key="")
                .order_by("attempt_number")
                .last()
            )
            segment.audio_key = stopped.audio_key if stopped else ""
        if segment.audio_key:
            spoken.append(segment)
        if not whole:
            break
    if not spoken:
        return False
    if is_long(job.audio_ms):
        put_aside(job_id, lambda: _keep(job, spoken))
        return False
    return _keep(job, spoken)


def _keep(job: SynthesisJob, spoken: list[Segment]) -> bool:
    audio_key, peaks = assemble(job, spoken)
    kept = SynthesisJob.objects.filter(pk=job.pk, audio_key="", deleted_at__isnull=True).update(
        audio_key=audio_key, peaks=peaks
    )
    if not kept:
        storage.delete(audio_key)
    return kept == 1


def assemble(job: SynthesisJob, segments: list[Segment]) -> tuple[str, list[int]]:
    """Join the segments' audio into one stored file; returns its key and the waveform's peaks.

    Raises FileNotFoundError or IsADirectoryError (a segment without a key) where a segment's audio is not there.
    """
    key = storage.job_audio_key(workspace_id=job.workspace_id, job_id=job.pk)
    with tempfile.NamedTemporaryFile(prefix="assembly-") as joined:
        peaks = write_joined(
            cast(BinaryIO, joined),
            [partial(storage.open_audio, segment.audio_key) for segment in segments],
            pauses_ms=pauses_ms(job, segments),
            label=label_of(job.pk),
            peak_count=PEAK_COUNT,
        )
        joined.flush()
        storage.save_file(key, joined.name)
    return key, peaks


def jobs_to_end() -> list[uuid.UUID]:
    """Live jobs without a live segment: their worker died between its last settle and the end.

    A long one is left to its worker for a while, which puts it together.
    """
    since = Now() - ASIDE_WITHIN
    just_spoken = Exists(Attempt.objects.filter(job=OuterRef("pk"), finished_at__gt=since))
    return list(
        SynthesisJob.objects.filter(state__in=JOB_LIVE)
        .filter(Q(audio_ms__lt=ASIDE_FROM_MS) | (Q(created_at__lt=since) & ~just_spoken))
        .exclude(segments__state__in=SEGMENT_LIVE)
        .values_list("pk", flat=True)[:100]
    )
