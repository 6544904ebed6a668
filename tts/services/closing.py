"""Closing an attempt: segment, attempt and slot move on together, and what was consumed is written down.

The fence is the segment's attempt number: whoever holds an older one changes nothing.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from billing.models import UsageRecord
from billing.services.usage import record_usage
from tts.audio.speech_check import SpeechCheck
from tts.models import Attempt, Segment, SynthesisJob, Voice
from tts.models.device import device_class_of
from tts.states import AttemptState, SegmentState


class Fenced(Exception):
    """The attempt is no longer the live one of its segment: somebody else has it, or the job has ended."""


@dataclass(frozen=True)
class Work:
    """All that a worker needs to speak an attempt. `voice` is the segment's own, else the job's."""

    attempt: Attempt
    segment: Segment
    job: SynthesisJob
    voice: Voice

    @classmethod
    def of(cls, attempt: Attempt) -> Work:
        """The work of an attempt, read by its relations."""
        segment, job = attempt.segment, attempt.job
        return cls(attempt=attempt, segment=segment, job=job, voice=segment.voice or job.voice)


@dataclass(frozen=True)
class Outcome:
    """What the engine measured: whole milliseconds of device time and of audio, and where the audio was stored."""

    gpu_ms: int
    audio_ms: int
    audio_key: str = ""
    first_chunk_gpu_ms: int | None = None
    peaks: list[int] | None = None
    seed: int | None = None
    discarded_gpu_ms: int = 0
    engine: str = ""
    engine_version: str = ""
    check: SpeechCheck | None = None
    """What was found in it; None where nothing was looked at."""


@dataclass(frozen=True)
class Closed:
    """An attempt's end as it was written. `started_at` None: no worker ever claimed it."""

    started_at: datetime | None
    finished_at: datetime
    device_name: str
    device_class: str


@dataclass(frozen=True)
class Charge:
    """What an attempt was charged: the price of its device time at its rate, and what was taken for it."""

    price_version_id: int
    gpu_second_micros: int
    rated_micros: int
    charged_micros: int


# One statement: while it is being settled, a device may be waiting for its next segment.
_CLOSE = """
WITH moved AS (
    UPDATE tts_segment SET state = %(segment_state)s, gpu_ms = %(kept_gpu_ms)s, audio_ms = %(kept_audio_ms)s,
        audio_key = %(kept_audio_key)s, spoken_by = %(spoken_by)s
    WHERE id = %(segment)s AND attempt_number = %(number)s AND state IN ('bound', 'running')
    RETURNING id
), ended AS (
    UPDATE tts_attempt a SET state = %(attempt_state)s, finished_at = statement_timestamp(), gpu_ms = %(gpu_ms)s,
        audio_ms = %(audio_ms)s, audio_key = %(audio_key)s, first_chunk_gpu_ms = %(first_chunk_gpu_ms)s,
        started_at = COALESCE(a.started_at, %(started_at)s), charged_micros = %(charged)s,
        seed = %(seed)s, discarded_gpu_ms = %(discarded_gpu_ms)s, speech_check = %(speech_check)s::jsonb,
        engine = %(engine)s, engine_version = %(engine_version)s,
        error_code = %(error_code)s, error_detail = %(error_detail)s
    FROM moved
    WHERE a.id = %(attempt)s AND a.state IN ('bound', 'running')
        AND (NOT %(expired)s OR a.leased_until < statement_timestamp())
    RETURNING a.id, a.started_at, a.finished_at, a.device_id, a.slot_number
), freed AS (
    UPDATE tts_deviceslot s SET attempt_id = NULL FROM ended
    WHERE s.device_id = ended.device_id AND s.number = ended.slot_number AND s.attempt_id = ended.id
)
SELECT ended.started_at, ended.finished_at, d.name, d.kind, d.model_name
FROM ended JOIN tts_device d ON d.id = ended.device_id
"""


def close(
    work: Work,
    outcome: Outcome,
    *,
    segment_state: SegmentState,
    attempt_state: AttemptState,
    charged: int,
    error_code: str = "",
    error_detail: str = "",
    expired: bool = False,
) -> Closed:
    """Move segment and attempt on and free the slot. Call inside a transaction.

    `expired`: only if the lease has run out. Raises Fenced when the attempt is not the live one of its segment; the
    caller's transaction must not be committed then.
    """
    done = segment_state == SegmentState.SUCCEEDED
    with connection.cursor() as cursor:
        cursor.execute(
            _CLOSE,
            {
                "segment": work.segment.pk,
                "number": work.attempt.attempt_number,
                "segment_state": segment_state.value,
                "kept_gpu_ms": outcome.gpu_ms if done else 0,
                "kept_audio_ms": outcome.audio_ms if done else 0,
                "kept_audio_key": outcome.audio_key if done else "",
                "spoken_by": _spoken_by(work, outcome) if done else "",
                "attempt": work.attempt.pk,
                "attempt_state": attempt_state.value,
                "gpu_ms": outcome.gpu_ms,
                "audio_ms": outcome.audio_ms,
                "audio_key": outcome.audio_key,
                "first_chunk_gpu_ms": outcome.first_chunk_gpu_ms,
                "seed": outcome.seed,
                "discarded_gpu_ms": outcome.discarded_gpu_ms,
                "engine": outcome.engine,
                "engine_version": outcome.engine_version,
                "charged": charged,
                "error_code": error_code,
                "error_detail": error_detail[:500],
                "speech_check": json.dumps(outcome.check.as_dict()) if outcome.check else None,
                # A crash of the database may have forgotten the claim; what was spoken is paid and on the receipt.
                "started_at": None if expired else work.attempt.started_at,
                "expired": expired,
            },
        )
        row = cursor.fetchone()
    if row is None:
        raise Fenced
    started_at, finished_at, name, kind, model_name = row
    return Closed(started_at, finished_at, name, device_class_of(kind=kind, model_name=model_name))


def asked_seed(work: Work) -> int:
    """The seed that the segment is to be spoken with: its own, else the job's."""
    return work.job.seed if work.segment.seed is None else work.segment.seed


def maker_name(engine: str, engine_version: str) -> str:
    """How `Segment.spoken_by` names who spoke it."""
    return f"{engine} {engine_version}"


def _spoken_by(work: Work, outcome: Outcome) -> str:
    """Who spoke it, where the audio may stand for the same phrase another time; else ""."""
    good = outcome.check is not None and not outcome.check.findings
    if not (work.segment.phrase and good and outcome.engine and outcome.seed == asked_seed(work)):
        return ""
    return maker_name(outcome.engine, outcome.engine_version)


def locked_job(job_id: uuid.UUID) -> SynthesisJob:
    """The job, locked until the transaction ends, without its text: of a book, that would be read anew with every
    segment."""
    return SynthesisJob.objects.select_for_update(no_key=True).defer("text", "peaks").get(pk=job_id)


def closed_attempt(attempt_id: uuid.UUID) -> Closed:
    """How an attempt ended that was closed before."""
    attempt = Attempt.objects.select_related("device").get(pk=attempt_id)
    if attempt.finished_at is None:
        raise ValueError("the attempt is still live")
    device = attempt.device
    return Closed(attempt.started_at, attempt.finished_at, device.name, device.device_class)


def record(
    work: Work, outcome: Outcome, closed: Closed, *, charge: Charge | None, characters: int | None = None
) -> None:
    """Write down what the attempt consumed; one that no worker ever claimed consumed nothing.

    `charge` None: it is our fault, or nobody's, and costs nothing. `characters`: of the part that was spoken, where
    that is not all of the segment.

    Raises Fenced when that was done before.
    """
    if closed.started_at is None:
        return
    stored = record_usage(
        UsageRecord(
            attempt_id=work.attempt.pk,
            job_id=work.job.pk,
            workspace_id=work.job.workspace_id,
            voice_id=work.voice.pk,
            user_id=work.job.created_by_id,
            api_key_id=work.job.api_key_id,
            device_name=closed.device_name,
            device_class=closed.device_class,
            job_class=work.job.job_class,
            billable=charge is not None,
            gpu_ms=outcome.gpu_ms,
            audio_ms=outcome.audio_ms,
            characters=work.segment.characters if characters is None else characters,
            price_version_id=charge.price_version_id if charge else None,
            gpu_second_micros=charge.gpu_second_micros if charge else 0,
            rated_micros=charge.rated_micros if charge else 0,
            charged_micros=charge.charged_micros if charge else 0,
            started_at=closed.started_at,
            finished_at=closed.finished_at,
        )
    )
    if not stored:
        raise Fenced
