"""What a workspace may see of its jobs. Every read of a job by a customer begins here."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, Q, QuerySet
from django.db.models.functions import Left

from accounts.models import Workspace
from accounts.tenancy import owned_by
from billing.models import UsageRecord
from billing.selectors.prices import rate_for
from tts.errors import JobNotFound
from tts.models import Attempt, Segment, SynthesisJob
from tts.states import AttemptState
from tts.text.limits import MAX_JOB_CHARACTERS

# Of a text in a list: all of what an urgent job may have.
LISTED_CHARACTERS = MAX_JOB_CHARACTERS
# Of a job's row, what a book makes long.
_LONG = ("text", "peaks")


@dataclass(frozen=True)
class ReceiptLine:
    attempt_id: uuid.UUID
    attempt_number: int
    segment_index: int
    device_name: str
    state: str
    started_at: datetime | None
    finished_at: datetime | None
    gpu_ms: int
    audio_ms: int
    characters: int
    charged_micros: int
    # What it was spoken with: the job's, or another one where a part had to be spoken again, which cost nothing.
    seed: int | None
    discarded_gpu_ms: int
    # The class of device that spoke and what its GPU-second cost; empty and None until the try has ended.
    device_class: str
    gpu_second_micros: int | None
    speech_check: dict[str, Any] | None
    """tts.audio.speech_check.SpeechCheck.as_dict(); None where nothing was looked at."""


@dataclass(frozen=True)
class Receipt:
    """What a job used and cost. The sum of the lines' `charged_micros` less what was refunded is `amount_micros`."""

    lines: list[ReceiptLine]
    characters: int
    gpu_ms: int
    audio_ms: int
    amount_micros: int
    held_micros: int
    currency: str
    price_version: int
    # The general price of the job's class; a class of device may have one of its own.
    gpu_second_micros: int
    seed: int
    # Spoken before and used again: no line names them, and they cost nothing.
    reused_segments: int
    reused_characters: int

    @property
    def other_seeds(self) -> list[int]:
        """Seeds with which parts were spoken again, because the job's own did not speak them right."""
        return sorted({line.seed for line in self.lines if line.seed is not None} - {self.seed})

    @property
    def discarded_gpu_ms(self) -> int:
        """Device time of what was spoken and not delivered: on nobody's bill."""
        return sum(line.discarded_gpu_ms for line in self.lines)

    @property
    def rates_differ(self) -> bool:
        """Whether any of it was charged at another price than the general one."""
        charged = {line.gpu_second_micros for line in self.lines if line.charged_micros}
        return bool(charged - {self.gpu_second_micros, None})

    @property
    def speech_score(self) -> int | None:
        """The lowest score of what was delivered; None while nothing was looked at."""
        return min((int(check["score"]) for check in self._delivered_checks()), default=None)

    @property
    def similarity(self) -> float | None:
        """The least likeness of what was delivered to the voice's reference; None where no engine could tell."""
        known = [check.get("similarity") for check in self._delivered_checks()]
        return min((float(each) for each in known if each is not None), default=None)

    def _delivered_checks(self) -> list[dict[str, Any]]:
        succeeded = [line.speech_check for line in self.lines if line.state == AttemptState.SUCCEEDED]
        return [check for check in succeeded if check]


def jobs_of(
    workspace: Workspace, *, search: str = "", state: str = "", voice_id: uuid.UUID | None = None
) -> QuerySet[SynthesisJob]:
    """The workspace's jobs, newest first. `search` looks for words in the text; `voice_id` for
    jobs in which this voice speaks, alone or among others."""
    jobs = owned_by(SynthesisJob.objects.filter(deleted_at__isnull=True), workspace).select_related(
        "voice", "price_version"
    )
    if search:
        jobs = jobs.filter(text__icontains=search)
    if state:
        jobs = jobs.filter(state=state)
    if voice_id:
        in_scripts = owned_by(Segment.objects.filter(voice_id=voice_id), workspace).values("job_id")
        jobs = jobs.filter(Q(voice_id=voice_id) | Q(pk__in=in_scripts))
    return jobs.order_by("-created_at", "-pk")


def beginnings_of(jobs: QuerySet[SynthesisJob]) -> QuerySet[SynthesisJob]:
    """The same jobs without what follows the first LISTED_CHARACTERS of their texts: a page of books would be tens of
    megabytes. Each goes through `with_beginning` before its text is read."""
    return jobs.defer("text").annotate(beginning=Left("text", LISTED_CHARACTERS))


def with_beginning(job: SynthesisJob) -> SynthesisJob:
    """A job of `beginnings_of`, whose `text` is that much of it. Not to be saved."""
    job.text = vars(job)["beginning"]
    return job


def lone_job_of(workspace: Workspace, job_id: uuid.UUID) -> SynthesisJob:
    """The job alone: for what need not know its segments, such as its audio, of which a player asks for part after
    part. What is long is read when it is asked for. Raises JobNotFound as `job_of` does."""
    job = jobs_of(workspace).select_related(None).defer(*_LONG).filter(pk=job_id).first()
    if job is None:
        raise JobNotFound
    job.workspace = workspace
    return job


def job_of(workspace: Workspace, job_id: uuid.UUID) -> SynthesisJob:
    """The job with its segments and attempts at hand. Raises JobNotFound for another workspace's id, or none."""
    attempts = Attempt.objects.select_related("device").order_by("attempt_number")
    jobs = (
        jobs_of(workspace)
        .select_related("revision_of")
        .defer(*(f"revision_of__{name}" for name in (*_LONG, "chapters", "cast")))
    )
    return _with_segments(jobs, job_id, Prefetch("attempts", queryset=attempts))


def spoken_job_of(workspace: Workspace, job_id: uuid.UUID) -> SynthesisJob:
    """The job with its segments at hand, without what each of them took: for what it is said again with.

    Raises JobNotFound as `job_of` does.
    """
    return _with_segments(jobs_of(workspace), job_id)


def _with_segments(jobs: QuerySet[SynthesisJob], job_id: uuid.UUID, *further: Prefetch[str]) -> SynthesisJob:
    segments = Segment.objects.select_related("voice").order_by("index", "part").prefetch_related(*further)
    job = jobs.filter(pk=job_id).prefetch_related(Prefetch("segments", queryset=segments)).first()
    if job is None:
        raise JobNotFound
    return job


def followed_job_of(workspace: Workspace, job_id: uuid.UUID) -> SynthesisJob:
    """The job with no more than whoever follows it needs; the rest is read when it is asked for.

    Raises JobNotFound for another workspace's id, or none.
    """
    jobs = owned_by(SynthesisJob.objects.filter(deleted_at__isnull=True), workspace)
    job = (
        jobs.filter(pk=job_id).only(
            "workspace_id", "state", "audio_key", "language", "speed", "chapters", "segment_count"
        )
    ).first()
    if job is None:
        raise JobNotFound
    job.workspace = workspace
    return job


def receipt_of(job: SynthesisJob) -> Receipt:
    """The job's receipt as it stands now; final once the job has ended."""
    rows = (
        Attempt.objects.filter(job=job)
        .select_related("device", "segment")
        .order_by("segment__index", "segment__part", "attempt_number")
    )
    records = UsageRecord.objects.filter(job_id=job.pk)
    rates = {
        attempt_id: (device_class, gpu_second_micros)
        for attempt_id, device_class, gpu_second_micros in records.values_list(
            "attempt_id", "device_class", "gpu_second_micros"
        )
    }
    lines = [
        ReceiptLine(
            attempt_id=row.pk,
            attempt_number=row.attempt_number,
            segment_index=row.segment.index,
            device_name=row.device.name,
            state=row.state,
            started_at=row.started_at,
            finished_at=row.finished_at,
            gpu_ms=row.gpu_ms,
            audio_ms=row.audio_ms,
            characters=row.segment.characters,
            charged_micros=row.charged_micros,
            seed=row.seed,
            discarded_gpu_ms=row.discarded_gpu_ms,
            device_class=rates[row.pk][0] if row.pk in rates else "",
            gpu_second_micros=rates[row.pk][1] if row.pk in rates else None,
            speech_check=row.speech_check,
        )
        for row in rows
    ]
    rate = rate_for(price=job.price_version, job_class=job.job_class)
    return Receipt(
        lines=lines,
        characters=job.characters,
        gpu_ms=job.gpu_ms,
        audio_ms=job.audio_ms,
        amount_micros=job.charged_micros,
        held_micros=job.held_micros,
        currency=rate.currency,
        price_version=job.price_version.number,
        gpu_second_micros=rate.gpu_second_micros,
        seed=job.seed,
        reused_segments=job.reused_count,
        reused_characters=job.reused_characters,
    )
