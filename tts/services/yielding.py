"""Letting urgent work pass: a batch segment stops between two sentences and hands the rest back.

The segment's row keeps the rest, so that it stays first in its queue and its attempt numbers go on; what was spoken
becomes a row of its own before it. The rest is the next `part` of the same index.
"""

from __future__ import annotations

from django.db import connection, transaction
from django.db.models import F

from billing.services import holds
from tts.models import Attempt, Segment, SynthesisJob
from tts.services import wakeups
from tts.services.attempts import charge, stop_attempt
from tts.services.closing import Outcome, Work, close, locked_job, record
from tts.states import AttemptState, JobClass, SegmentState
from tts.text.annotations import counted_characters
from tts.text.segmentation import segment as cut_into_segments

# One piece of batch work between two looks for urgent work: about 5 s of speech, half a second of a GPU.
PIECE_MS = 5_000


_URGENT = """
SELECT EXISTS (
    SELECT 1 FROM tts_fairshareclass urgent, tts_fairshareclass batch, tts_fairsharequeue q
    WHERE urgent.job_class = %s AND batch.job_class = %s AND urgent.start_tag <= batch.start_tag
        AND q.job_class = urgent.job_class AND q.queued > 0 AND q.workspace_running < q.running_limit
)
"""


def pieces_of(text: str, *, job_class: str) -> list[str]:
    """What the engine is given in one go: batch work sentence by sentence, everything else whole. Joined, the text."""
    if job_class != JobClass.BATCH:
        return [text]
    return cut_into_segments(text, preferred_ms=PIECE_MS, first_ms=PIECE_MS) or [text]


def may_stop_before(pieces: list[str], index: int) -> bool:
    """Whether the rest from there on would be cut in the same way again: then the audio is the same, stopped or not."""
    return (
        0 < index < len(pieces)
        and pieces_of("".join(pieces[index:]), job_class=JobClass.BATCH) == pieces[index:]
    )


def urgent_work_waits() -> bool:
    """Whether an interactive segment waits that would be chosen before batch work, if a slot were free now."""
    with connection.cursor() as cursor:
        cursor.execute(_URGENT, [JobClass.INTERACTIVE, JobClass.BATCH])
        waits: bool = cursor.fetchone()[0]
    return waits


def yield_attempt(*, work: Work, outcome: Outcome, spoken: str, rest: str) -> None:
    """Settle an attempt that stopped after `spoken`: that part is charged and done, `rest` waits to be spoken.

    A job that was canceled meanwhile ends instead, and pays for what was spoken.

    Raises Fenced, having changed nothing, when the attempt is not the live one any more.
    """
    whole = work.segment
    if spoken + rest != whole.text or not spoken or not rest:
        raise ValueError("what was spoken and the rest are the segment's text")
    share = len(spoken) / len(whole.text)
    spoken_estimate = max(1, min(whole.estimate_gpu_ms - 1, round(whole.estimate_gpu_ms * share)))
    with transaction.atomic():
        holds.lock_account(workspace_id=work.job.workspace_id)
        job = locked_job(work.job.pk)
        if job.cancel_requested_at is not None:
            # Canceled between the last word and now: there is nothing to go on with.
            stop_attempt(work=work, outcome=outcome, error_code="canceled")
            return
        charged = charge(work, outcome)
        _leave_rest(work, outcome, rest, spoken_estimate)
        closed = close(
            work,
            outcome,
            segment_state=SegmentState.QUEUED,
            attempt_state=AttemptState.SUCCEEDED,
            charged=charged.charged_micros,
        )
        _keep_spoken(work, outcome, spoken, spoken_estimate)
        record(work, outcome, closed, charge=charged, characters=counted_characters(spoken))
        SynthesisJob.objects.filter(pk=work.job.pk).update(
            segment_count=F("segment_count") + 1,
            segments_done=F("segments_done") + 1,
            gpu_ms=F("gpu_ms") + outcome.gpu_ms,
            audio_ms=F("audio_ms") + outcome.audio_ms,
            charged_micros=F("charged_micros") + charged.charged_micros,
        )
    wakeups.wake_job(job_id=work.job.pk)


def _leave_rest(work: Work, outcome: Outcome, rest: str, spoken_estimate: int) -> None:
    """Make the segment its rest, before it is queued: then it is counted as what it is."""
    whole = work.segment
    Segment.objects.filter(pk=whole.pk, attempt_number=work.attempt.attempt_number).update(
        part=F("part") + 1,
        text=rest,
        characters=counted_characters(rest),
        estimate_gpu_ms=max(1, whole.estimate_gpu_ms - spoken_estimate),
        held_gpu_ms=max(1, whole.held_gpu_ms - outcome.gpu_ms),
        # Neither part is the phrase that was asked for.
        phrase="",
    )


def _keep_spoken(work: Work, outcome: Outcome, spoken: str, spoken_estimate: int) -> None:
    """What was spoken, as a segment before the rest; the attempt is that one's."""
    whole = work.segment
    done = Segment.objects.create(
        job_id=work.job.pk,
        workspace_id=whole.workspace_id,
        job_class=whole.job_class,
        index=whole.index,
        part=whole.part,
        needs=whole.needs,
        engine=whole.engine,
        text=spoken,
        voice_id=whole.voice_id,
        voice_version=whole.voice_version,
        speaker=whole.speaker,
        chapter=whole.chapter,
        characters=counted_characters(spoken),
        seed=whole.seed,
        state=SegmentState.SUCCEEDED,
        attempt_number=work.attempt.attempt_number,
        estimate_gpu_ms=spoken_estimate,
        held_gpu_ms=outcome.gpu_ms,
        gpu_ms=outcome.gpu_ms,
        audio_ms=outcome.audio_ms,
        audio_key=outcome.audio_key,
    )
    Attempt.objects.filter(pk=work.attempt.pk).update(segment=done)
