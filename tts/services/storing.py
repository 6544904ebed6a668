"""Storing a job with its segments: the money is held and the limits are kept in one transaction, or nothing changes."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, QuerySet, Sum, Window

from accounts.selectors.limits import queued_jobs_limit
from billing.services import holds
from portal.lib.clock import now
from tts.errors import AudioGone, DailyCharactersReached, QueueFull
from tts.models import Segment, SynthesisJob
from tts.services.aside import is_long
from tts.services.bind import bind_idle_slots
from tts.services.endings import end_job_if_complete
from tts.services.model_shares import drawn_engine
from tts.services.phrases import Reusable
from tts.services.pronunciations import keep_version
from tts.services.quotes import Quote, SegmentPlan
from tts.services.taking_over import taken_over
from tts.services.voice_pins import pin_versions
from tts.states import JOB_LIVE, SegmentState

logger = logging.getLogger(__name__)
# In which the characters of a plan's limit are counted.
DAY = timedelta(hours=24)


def store_job(
    job: SynthesisJob, priced: Quote, *, engine: str | None = None, required: Collection[int] = ()
) -> None:
    """Store a new job as it was priced; the pool starts on it at once. Locks the credit account.

    What is used again is its own from here on; what of it was deleted a moment ago is spoken, and held for. Where
    nothing is left to speak, the job holds no money, waits for nobody, and has ended when this returns (a long one:
    as soon as it is put together, tts.services.aside).

    `engine`: the model on trial that speaks it; None draws one, but for a job that uses anything again: what the pool's
    own models spoke. `required`: places in the plan that are used again or nothing is stored.

    Raises:
        AudioGone: the audio of one of `required` was deleted. Nothing was changed.
        VoiceChanged: a voice or the version of it that it was quoted with was deleted. Nothing was changed.
        QueueFull, DailyCharactersReached, InsufficientCredit, BudgetReached. Nothing was changed then.
        PronunciationVersionUnknown: it was forgotten since it was priced. Nothing was changed.
        IntegrityError: the workspace has a job with this Idempotency-Key. Nothing was changed.
    """
    with taken_over(workspace_id=job.workspace_id, job_id=job.pk, reused=priced.reused) as taken:
        if not taken.keys() >= set(required):
            raise AudioGone
        left = priced.with_reused(taken)
        _enter_amounts(job, left)
        # Before anything is locked: to put a book into words takes seconds.
        phrases = left.phrases(job.seed)
        with transaction.atomic():
            if engine is not None:
                job.engine = engine
            elif not taken:
                job.engine = drawn_engine(job_id=job.pk, needs={*priced.needs, *priced.instruction_needs})
            _store(job, left, phrases)
            transaction.on_commit(bind_idle_slots, robust=True)
    logger.info(
        "job_submitted",
        extra={
            "job_id": job.pk,
            "characters": job.characters,
            "segments": job.segment_count,
            "reused": job.reused_count,
        },
    )
    if left.is_all_reused:
        _end(job)


def _enter_amounts(job: SynthesisJob, priced: Quote) -> None:
    job.segment_count = len(priced.plan)
    job.segments_done = job.reused_count = len(priced.reused)
    job.reused_characters = priced.reused_characters
    job.audio_ms = sum(source.audio_ms for source in priced.reused.values())
    job.estimate_gpu_ms = priced.estimate_gpu_ms
    job.held_gpu_ms = priced.held_gpu_ms
    job.held_micros = priced.held_micros


def _end(job: SynthesisJob) -> None:
    """Put together what was all there. Where that fails, the sweep does it."""
    try:
        end_job_if_complete(job_id=job.pk)
    except OSError as error:
        logger.error("job_not_put_together", extra={"job_id": job.pk, "error": type(error).__name__})
    job.refresh_from_db()


def _store(job: SynthesisJob, priced: Quote, phrases: Sequence[str]) -> None:
    """Hold, job and segments. The hold comes first: its lock on the credit account makes the counts below exact."""
    if priced.is_all_reused:
        holds.lock_account(workspace_id=job.workspace_id)
        if is_long(job.audio_ms):
            # It lives until hours of sound are copied: nobody has any number of those made at once.
            _check_queue(job)
    else:
        holds.place_hold(
            workspace_id=job.workspace_id,
            job_id=job.pk,
            amount_micros=job.held_micros,
            minimum_micros=priced.price.minimum_charge_micros,
            user_id=job.created_by_id,
            api_key_id=job.api_key_id,
        )
        _check_queue(job)
    _check_characters_a_day(job)
    keep_version(job.workspace_id, job.pronunciation_version)
    pin_versions(part.voice for place, part in enumerate(priced.plan) if place not in priced.reused)
    job.save(force_insert=True)
    if 0 in priced.reused:
        # Its beginning can be heard from the first moment on.
        heard = {"first_audio_at": job.created_at}
        if priced.is_all_reused:
            heard["started_at"] = job.created_at
        SynthesisJob.objects.filter(pk=job.pk).update(**heard)
    segments, index = [], -1
    for place, part in enumerate(priced.plan):
        number = 0 if part.kept is None else part.kept.part
        # The parts of a segment that once let urgent work pass stay one segment.
        index += number == 0
        segment = _segment(job, part, priced.instruction_needs, source=priced.reused.get(place))
        segment.index, segment.part, segment.phrase = index, number, phrases[place]
        segments.append(segment)
    Segment.objects.bulk_create(segments)


def _segment(
    job: SynthesisJob, part: SegmentPlan, further_needs: set[str], *, source: Reusable | None
) -> Segment:
    segment = Segment(
        job=job,
        workspace_id=job.workspace_id,
        job_class=job.job_class,
        needs=sorted({*part.needs, *further_needs}),
        engine=job.engine,
        text=part.text,
        voice=None if part.voice == job.voice else part.voice,
        voice_version=part.voice.version,
        speaker=part.speaker,
        chapter=part.chapter,
        characters=part.characters,
        seed=part.seed,
        estimate_gpu_ms=part.estimate_gpu_ms,
        held_gpu_ms=part.held_gpu_ms,
    )
    if source is not None:
        segment.state = SegmentState.SUCCEEDED
        segment.reused = True
        segment.estimate_gpu_ms = segment.held_gpu_ms = 0
        segment.audio_key, segment.audio_ms = source.audio_key, source.audio_ms
        segment.spoken_by = source.spoken_by
    return segment


def _check_queue(job: SynthesisJob) -> None:
    """Of what waits for the pool, or is put together aside: a short job without anything to speak does neither."""
    limit = queued_jobs_limit(job.workspace)
    if SynthesisJob.objects.filter(workspace_id=job.workspace_id, state__in=JOB_LIVE).count() >= limit:
        raise QueueFull(limit=limit)


def _check_characters_a_day(job: SynthesisJob) -> None:
    """Of the last 24 hours, whatever the clock shows: no change of the time zone begins another day. What is used again
    does not count: nobody speaks it.

    Exact as the count before it is: whoever submits holds the credit account's lock.
    """
    limit = job.workspace.characters_per_day_limit
    if limit is None:
        return
    moment = now()
    counted = SynthesisJob.objects.filter(workspace_id=job.workspace_id, created_at__gt=moment - DAY)
    spoken = F("characters") - F("reused_characters")
    used = counted.aggregate(characters=Sum(spoken))["characters"] or 0
    too_many = used + job.characters - job.reused_characters - limit
    if too_many > 0 and job.characters > job.reused_characters:
        raise DailyCharactersReached(
            limit=limit,
            left=max(0, limit - used),
            retry_after_s=_seconds_until_over(counted, too_many, moment),
        )


def _seconds_until_over(counted: QuerySet[SynthesisJob], characters: int, moment: datetime) -> int | None:
    """When so many of the characters counted are a day old; None where there are not that many."""
    spoken = F("characters") - F("reused_characters")
    over_by_then = Window(Sum(spoken), order_by=["created_at", "pk"])
    enough = counted.annotate(over_by_then=over_by_then).filter(over_by_then__gte=characters)
    submitted_at = enough.order_by("created_at", "pk").values_list("created_at", flat=True).first()
    if submitted_at is None:
        return None
    return math.ceil((submitted_at + DAY - moment).total_seconds())
