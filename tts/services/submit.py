"""Taking a job in: one transaction that holds the money and stores the work, or changes nothing at all."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import QuerySet, Sum, Window

from accounts.errors import WorkspaceSuspended
from accounts.models import ApiKey, User, Workspace
from accounts.selectors.limits import queued_jobs_limit
from billing.services.holds import place_hold
from portal.lib.clock import now
from tts.audio.formats import DEFAULT_FORMAT
from tts.errors import (
    DailyCharactersReached,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
    JobTooLong,
    QueueFull,
    SpeakerWithoutVoice,
    TextBlocked,
)
from tts.models import Segment, SynthesisJob
from tts.services.bind import bind_idle_slots
from tts.services.blame import is_any_blocked
from tts.services.instructions import (
    INSTRUCT,
    PLAIN,
    check_is_taken,
    check_wording,
    instruction_needs,
)
from tts.services.model_shares import drawn_engine
from tts.services.quoting import SCRIPT, Quote, quote
from tts.services.renditions import checked_rate
from tts.services.stored import check_storage
from tts.states import JOB_LIVE
from tts.text.instructions import clean_free_instruction

logger = logging.getLogger(__name__)
# In which the characters of a plan's limit are counted.
DAY = timedelta(hours=24)
KEY_PATTERN = re.compile(r"[\x21-\x7e]{1,200}")


@dataclass(frozen=True)
class JobRequest:
    """What a customer asks for. `seed` None draws one; the one drawn is on the receipt. `instruction` is a key of
    tts.text.instructions, for the mode "instruct"; `instruction_text` the same in own words. `sample_rate_hz` None is
    the format's own, `loudness_lufs` None the workspace's. `cast` names the voices of a script's speakers, for the mode
    "script"; all others are the job's."""

    voice_id: uuid.UUID
    text: str
    language: str = ""
    job_class: str = "interactive"
    mode: str = PLAIN
    instruction: str = ""
    instruction_text: str = ""
    seed: int | None = None
    speed: float = 1.0
    response_format: str = DEFAULT_FORMAT
    sample_rate_hz: int | None = None
    loudness_lufs: float | None = None
    cast: Mapping[str, uuid.UUID] = field(default_factory=dict)

    def fingerprint(self) -> str:
        """SHA-256 of the request: tells a repeated request from another one under the same key."""
        canonical = json.dumps(asdict(self), default=str, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True)
class Submission:
    job: SynthesisJob
    created: bool


def submit_job(
    *,
    workspace: Workspace,
    user: User | None,
    api_key: ApiKey | None,
    request: JobRequest,
    idempotency_key: str | None,
    client_address: str | None,
    request_id: str,
) -> Submission:
    """Store a job with its segments and hold its price; the pool starts on it at once.

    The same key with the same request returns the job that it made (`created` False). Locks the credit account.

    Raises:
        IdempotencyKeyReused, IdempotencyKeyInvalid, QueueFull, InsufficientCredit, BudgetReached, VoiceNotFound,
        WorkspaceSuspended, ModeNotSupported, FreeInstructionNotSupported, InstructionMissing, InstructionsConflict,
        InstructionTooLong, SpeakerWithoutVoice, TextBlocked, JobTooLong, DailyCharactersReached, StorageFull,
        NotOffered, FormatUnknown, SampleRateNotSupported, and the refusals of tts.text. Nothing was changed then.
    """
    if workspace.suspended_at is not None:
        raise WorkspaceSuspended
    if idempotency_key is not None and not KEY_PATTERN.fullmatch(idempotency_key):
        raise IdempotencyKeyInvalid
    fingerprint = request.fingerprint()
    if earlier := _earlier(workspace, idempotency_key, fingerprint):
        return Submission(job=earlier, created=False)
    request = _checked_wishes(request)
    priced = _quoted(workspace, request)
    _check_length(workspace, priced)
    check_storage(workspace, adds_ms=priced.estimate_audio_ms)
    if is_any_blocked(part.text for part in priced.plan):
        raise TextBlocked
    job = _build_job(workspace, user, api_key, request, priced)
    job.idempotency_key = idempotency_key
    job.request_sha256 = fingerprint
    job.client_address = client_address
    job.request_id = request_id
    try:
        with transaction.atomic():
            _store(job, priced)
            transaction.on_commit(bind_idle_slots, robust=True)
    except IntegrityError:
        # Another request with the same key was faster: its job is the answer.
        if earlier := _earlier(workspace, idempotency_key, fingerprint):
            return Submission(job=earlier, created=False)
        raise
    logger.info(
        "job_submitted", extra={"job_id": job.pk, "characters": job.characters, "segments": job.segment_count}
    )
    return Submission(job=job, created=True)


def _checked_wishes(request: JobRequest) -> JobRequest:
    """The request with its instruction as it is stored. Raises what `submit_job` says of instructions and formats."""
    wanted = replace(request, instruction_text=clean_free_instruction(request.instruction_text))
    check_wording(mode=wanted.mode, instruction=wanted.instruction, instruction_text=wanted.instruction_text)
    checked_rate(wanted.response_format, wanted.sample_rate_hz)
    return wanted


def _quoted(workspace: Workspace, request: JobRequest) -> Quote:
    priced = quote(
        workspace=workspace,
        voice_id=request.voice_id,
        text=request.text,
        language=request.language,
        job_class=request.job_class,
        speed=request.speed,
        mode=request.mode,
        cast=request.cast,
    )
    if missing := priced.speakers_without_voice:
        raise SpeakerWithoutVoice(speakers=missing)
    check_is_taken(
        instruction=request.instruction, instruction_text=request.instruction_text, needs=priced.needs
    )
    return priced


def _check_length(workspace: Workspace, priced: Quote) -> None:
    longest = workspace.longest_job_characters_limit
    if longest is not None and priced.characters > longest:
        raise JobTooLong(characters=priced.characters, limit=longest)


def _earlier(workspace: Workspace, idempotency_key: str | None, fingerprint: str) -> SynthesisJob | None:
    if idempotency_key is None:
        return None
    job = SynthesisJob.objects.filter(workspace=workspace, idempotency_key=idempotency_key).first()
    if job is not None and job.request_sha256 != fingerprint:
        raise IdempotencyKeyReused
    return job


def _mode_of(request: JobRequest) -> str:
    is_instructed = bool(request.instruction or request.instruction_text)
    return INSTRUCT if is_instructed and request.mode != SCRIPT else request.mode


def _build_job(
    workspace: Workspace, user: User | None, api_key: ApiKey | None, request: JobRequest, priced: Quote
) -> SynthesisJob:
    return SynthesisJob(
        workspace=workspace,
        voice=priced.voice,
        created_by=user,
        api_key=api_key,
        job_class=request.job_class,
        mode=_mode_of(request),
        instruction=request.instruction,
        instruction_text=request.instruction_text,
        text=priced.text,
        cast={speaker.name: str(speaker.voice.pk) for speaker in priced.speakers if speaker.voice},
        chapters=[asdict(chapter) for chapter in priced.chapters],
        language=request.language,
        # 31 bits: every engine's random generator takes that much.
        seed=secrets.randbelow(2**31) if request.seed is None else request.seed,
        speed=request.speed,
        response_format=request.response_format,
        sample_rate_hz=request.sample_rate_hz,
        loudness_lufs=workspace.loudness_lufs if request.loudness_lufs is None else request.loudness_lufs,
        characters=priced.characters,
        segment_count=len(priced.plan),
        price_version=priced.price,
        estimate_gpu_ms=priced.estimate_gpu_ms,
        held_gpu_ms=priced.held_gpu_ms,
        held_micros=priced.held_micros,
    )


def _store(job: SynthesisJob, priced: Quote) -> None:
    """Hold, job with the model that it draws, and segments. The hold comes first: its lock on the credit account makes
    the count below exact."""
    further = instruction_needs(instruction=job.instruction, instruction_text=job.instruction_text)
    job.engine = drawn_engine(job_id=job.pk, needs={*priced.needs, *further})
    place_hold(
        workspace_id=job.workspace_id,
        job_id=job.pk,
        amount_micros=priced.held_micros,
        minimum_micros=priced.price.minimum_charge_micros,
        user_id=job.created_by_id,
        api_key_id=job.api_key_id,
    )
    limit = queued_jobs_limit(job.workspace)
    if SynthesisJob.objects.filter(workspace_id=job.workspace_id, state__in=JOB_LIVE).count() >= limit:
        raise QueueFull(limit=limit)
    _check_characters_a_day(job)
    job.save(force_insert=True)
    Segment.objects.bulk_create(
        [
            Segment(
                job=job,
                workspace_id=job.workspace_id,
                job_class=job.job_class,
                index=index,
                needs=sorted({*part.needs, *further}),
                engine=job.engine,
                text=part.text,
                voice=None if part.voice == job.voice else part.voice,
                speaker=part.speaker,
                chapter=part.chapter,
                characters=part.characters,
                estimate_gpu_ms=part.estimate_gpu_ms,
                held_gpu_ms=part.held_gpu_ms,
            )
            for index, part in enumerate(priced.plan)
        ]
    )


def _check_characters_a_day(job: SynthesisJob) -> None:
    """Of the last 24 hours, whatever the clock shows: no change of the time zone begins another day.

    Exact as the count before it is: whoever submits holds the credit account's lock.
    """
    limit = job.workspace.characters_per_day_limit
    if limit is None:
        return
    moment = now()
    counted = SynthesisJob.objects.filter(workspace_id=job.workspace_id, created_at__gt=moment - DAY)
    used = counted.aggregate(characters=Sum("characters"))["characters"] or 0
    too_many = used + job.characters - limit
    if too_many > 0:
        raise DailyCharactersReached(
            limit=limit,
            left=max(0, limit - used),
            retry_after_s=_seconds_until_over(counted, too_many, moment),
        )


def _seconds_until_over(counted: QuerySet[SynthesisJob], characters: int, moment: datetime) -> int | None:
    """When so many of the characters counted are a day old; None where there are not that many."""
    over_by_then = Window(Sum("characters"), order_by=["created_at", "pk"])
    enough = counted.annotate(over_by_then=over_by_then).filter(over_by_then__gte=characters)
    submitted_at = enough.order_by("created_at", "pk").values_list("created_at", flat=True).first()
    if submitted_at is None:
        return None
    return math.ceil((submitted_at + DAY - moment).total_seconds())
