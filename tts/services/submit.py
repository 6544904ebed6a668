"""Taking a job in: one transaction that holds the money and stores the work, or changes nothing at all."""

from __future__ import annotations

import json
import re
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.db import IntegrityError
from django.utils.crypto import salted_hmac

from accounts.errors import WorkspaceSuspended
from accounts.models import ApiKey, User, Workspace
from tts.audio.formats import DEFAULT_FORMAT
from tts.errors import (
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
    JobTooLong,
    SpeakerWithoutVoice,
    TextBlocked,
)
from tts.models import SynthesisJob, Voice
from tts.services.attempts import SEEDS
from tts.services.blame import is_any_blocked
from tts.services.instructions import INSTRUCT, PLAIN, check_is_taken, check_wording
from tts.services.pricing_limit import count_priced
from tts.services.quoting import SCRIPT, Quote, quote
from tts.services.renditions import checked_rate
from tts.services.stored import check_storage
from tts.services.storing import store_job
from tts.text.instructions import clean_free_instruction
from tts.text.limits import max_job_characters

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
    # Of the workspace's pronunciations: None for the newest, 0 for none.
    pronunciation_version: int | None = None

    def fingerprint(self) -> str:
        """Tells a repeated request from another one under the same key (`request_digest`)."""
        return request_digest(asdict(self))


def request_digest(request: Mapping[str, Any]) -> str:
    """The digest of a request: 64 hexadecimal digits.

    Keyed, as it stays when the job is deleted: that of a short text tells the text to whoever tries all of them.
    """
    canonical = json.dumps(request, default=str, sort_keys=True, ensure_ascii=True)
    return salted_hmac("tts.services.submit", canonical, algorithm="sha256").hexdigest()


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
    draft: Voice | None = None,
) -> Submission:
    """Store a job with its segments and hold its price; the pool starts on it at once.

    With a seed, what the workspace has had spoken in the same way is used again (tts.services.phrases): it costs
    nothing, and a job without anything else has succeeded when this returns, or, if it is long, soon afterwards.

    The same key with the same request returns the job that it made (`created` False). Locks the credit account.
    `draft` as in tts.services.quoting.quote.

    Raises:
        IdempotencyKeyReused, IdempotencyKeyInvalid, QueueFull, InsufficientCredit, BudgetReached, VoiceNotFound,
        PronunciationVersionUnknown, PronunciationTooLong, WorkspaceSuspended, ModeNotSupported,
        FreeInstructionNotSupported, InstructionMissing, InstructionsConflict,
        InstructionTooLong, SpeakerWithoutVoice, TextBlocked, JobTooLong, DailyCharactersReached, StorageFull,
        NotOffered, FormatUnknown, SampleRateNotSupported, TooManyCharactersPriced, VoiceChanged, and the refusals of
        tts.text.
        Nothing was changed then.
    """
    if workspace.suspended_at is not None:
        raise WorkspaceSuspended
    check_key(idempotency_key)
    fingerprint = request.fingerprint()
    if earlier := earlier_job(workspace, idempotency_key, fingerprint):
        return Submission(job=earlier, created=False)
    request = _checked_wishes(request)
    priced = quote_request(workspace=workspace, user=user, request=request, draft=draft)
    if missing := priced.speakers_without_voice:
        raise SpeakerWithoutVoice(speakers=missing)
    check_wording(
        mode=request.mode, instruction=request.instruction, instruction_text=request.instruction_text
    )
    check_length(workspace, priced)
    check_storage(workspace, adds_ms=priced.estimate_audio_ms)
    if is_any_blocked(part.text for part in priced.plan):
        raise TextBlocked
    job = _build_job(workspace, user, api_key, request, priced)
    job.idempotency_key = idempotency_key
    job.request_sha256 = fingerprint
    job.client_address = client_address
    job.request_id = request_id
    try:
        store_job(job, priced)
    except IntegrityError:
        # Another request with the same key was faster: its job is the answer.
        if earlier := earlier_job(workspace, idempotency_key, fingerprint):
            return Submission(job=earlier, created=False)
        raise
    return Submission(job=job, created=True)


def _checked_wishes(request: JobRequest) -> JobRequest:
    """The request with its instruction as it is stored. Raises what `submit_job` says of formats."""
    checked_rate(request.response_format, request.sample_rate_hz)
    return replace(request, instruction_text=clean_free_instruction(request.instruction_text))


def quote_request(
    *, workspace: Workspace, user: User | None, request: JobRequest, draft: Voice | None = None
) -> Quote:
    """What a request would cost and take, refused as its job would be; nothing is stored. One that has not chosen an
    instruction yet, where there are any, or a voice for each speaker, has its price all the same.

    Raises:
        VoiceNotFound, NotOffered, PronunciationVersionUnknown, PronunciationTooLong, ModeNotSupported,
        FreeInstructionNotSupported, InstructionsConflict, InstructionTooLong, TooManyCharactersPriced, and the refusals
        of tts.text.
    """
    # What is longer is refused by its length, and looked at no further.
    looked_at = min(len(request.text), max_job_characters(request.job_class))
    count_priced(workspace_id=workspace.pk, characters=looked_at)
    instruction_text = clean_free_instruction(request.instruction_text)
    check_wording(mode=PLAIN, instruction=request.instruction, instruction_text=instruction_text)
    priced = quote(
        workspace=workspace,
        user=user,
        voice_id=request.voice_id,
        text=request.text,
        language=request.language,
        job_class=request.job_class,
        speed=request.speed,
        mode=request.mode,
        cast=request.cast,
        instruction=request.instruction,
        instruction_text=instruction_text,
        seed=request.seed,
        pronunciation_version=request.pronunciation_version,
        draft=draft,
    )
    check_is_taken(
        mode=request.mode,
        instruction=request.instruction,
        instruction_text=instruction_text,
        needs=priced.needs,
    )
    return priced


def check_key(idempotency_key: str | None) -> None:
    """Raises IdempotencyKeyInvalid."""
    if idempotency_key is not None and not KEY_PATTERN.fullmatch(idempotency_key):
        raise IdempotencyKeyInvalid


def check_length(workspace: Workspace, priced: Quote) -> None:
    """Raises JobTooLong."""
    longest = workspace.longest_job_characters_limit
    if longest is not None and priced.characters > longest:
        raise JobTooLong(characters=priced.characters, limit=longest)


def earlier_job(workspace: Workspace, idempotency_key: str | None, fingerprint: str) -> SynthesisJob | None:
    """The job that this key made before. Raises IdempotencyKeyReused where that was another request."""
    if idempotency_key is None:
        return None
    job = SynthesisJob.objects.filter(workspace=workspace, idempotency_key=idempotency_key).first()
    if job is not None and job.request_sha256 != fingerprint:
        raise IdempotencyKeyReused
    return job


def is_key_used(workspace: Workspace, idempotency_key: str | None) -> bool:
    """Whether this key made a job before, with whatever request."""
    return (
        idempotency_key is not None
        and SynthesisJob.objects.filter(workspace=workspace, idempotency_key=idempotency_key).exists()
    )


def _mode_of(request: JobRequest) -> str:
    is_instructed = bool(request.instruction or request.instruction_text)
    return INSTRUCT if is_instructed and request.mode != SCRIPT else request.mode


def _build_job(
    workspace: Workspace, user: User | None, api_key: ApiKey | None, request: JobRequest, priced: Quote
) -> SynthesisJob:
    return SynthesisJob(
        workspace=workspace,
        voice=priced.voice,
        voice_version=priced.voice.version,
        created_by=user,
        api_key=api_key,
        job_class=request.job_class,
        mode=_mode_of(request),
        instruction=request.instruction,
        instruction_text=request.instruction_text,
        text=priced.text,
        pronunciation_version=priced.pronunciation_version,
        cast={speaker.name: str(speaker.voice.pk) for speaker in priced.speakers if speaker.voice},
        chapters=[asdict(chapter) for chapter in priced.chapters],
        language=request.language,
        seed=secrets.randbelow(SEEDS) if request.seed is None else request.seed,
        speed=request.speed,
        response_format=request.response_format,
        sample_rate_hz=request.sample_rate_hz,
        loudness_lufs=workspace.loudness_lufs if request.loudness_lufs is None else request.loudness_lufs,
        characters=priced.characters,
        price_version=priced.price,
    )
