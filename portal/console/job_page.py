"""One job as operators see it: who, when, every attempt with its error, the money, and what was done to it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from accounts.models import AuditEntry
from accounts.selectors.audit import audit_of
from billing.models import Hold, HoldState, LedgerTransaction
from billing.selectors.ledger import transactions_of_job
from portal.console.selectors import JobRow, between, rows_of, shown_jobs
from portal.lib.errors import NotFound
from tts.models import Attempt, Segment, SynthesisJob
from tts.services.fair_share import Place, place_of
from tts.states import JOB_LIVE

SEGMENTS_SHOWN = 200


@dataclass(frozen=True)
class AttemptRow:
    id: uuid.UUID
    attempt_number: int
    device_id: int
    device_name: str
    slot_number: int
    epoch: int
    bound_at: datetime
    wait_ms: int | None
    spoke_ms: int | None
    gpu_ms: int
    audio_ms: int
    charged_micros: int
    state: str
    state_label: str
    error_code: str
    error_detail: str


@dataclass(frozen=True)
class SegmentRow:
    """A piece of the job. `number` counts from 1; `part` is above 0 for the rest of one that let others pass."""

    number: int
    part: int
    characters: int
    state: str
    state_label: str
    attempts: list[AttemptRow]


@dataclass(frozen=True)
class MoneyRow:
    created_at: datetime
    kind_label: str
    amount_micros: int


@dataclass(frozen=True)
class JobPage:
    job: SynthesisJob
    row: JobRow
    currency: str
    place: Place | None
    segments: list[SegmentRow]
    more_segments: bool
    money: list[MoneyRow]
    captured_micros: int
    refundable_micros: int
    audit: list[AuditEntry]

    @property
    def is_live(self) -> bool:
        return self.job.state in JOB_LIVE


def read_job(job_id: uuid.UUID, *, now: datetime) -> JobPage:
    """Everything at one moment. Raises NotFound."""
    job = shown_jobs().select_related("price_version", "voice").filter(pk=job_id).first()
    if job is None:
        raise NotFound
    (row,) = rows_of([job], now=now)
    segments, more = _segments(job)
    transactions = transactions_of_job(job_id)
    hold = Hold.objects.filter(job_id=job_id).first()
    captured = hold.captured_micros if hold is not None else 0
    left = captured - hold.refunded_micros if hold is not None else 0
    closed = hold is not None and hold.state == HoldState.CLOSED
    return JobPage(
        job=job,
        row=row,
        currency=job.price_version.currency,
        place=place_of(job),
        segments=segments,
        more_segments=more,
        money=[_money(transaction) for transaction in transactions],
        captured_micros=captured,
        refundable_micros=left if closed else 0,
        audit=audit_of(object_kind="job", object_id=job_id),
    )


def _money(transaction: LedgerTransaction) -> MoneyRow:
    """A movement as its largest entry says it; what the workspace has less is negative."""
    available = sum(
        entry.amount_micros for entry in transaction.entries.all() if entry.account in ("available", "held")
    )
    moved = available or max((entry.amount_micros for entry in transaction.entries.all()), default=0)
    return MoneyRow(transaction.created_at, transaction.get_kind_display(), moved)


def _segments(job: SynthesisJob) -> tuple[list[SegmentRow], bool]:
    segments = list(
        Segment.objects.filter(job=job).defer("text").order_by("index", "part")[: SEGMENTS_SHOWN + 1]
    )
    attempts: dict[int, list[AttemptRow]] = {}
    shown = segments[:SEGMENTS_SHOWN]
    for attempt in (
        Attempt.objects.filter(segment__in=[segment.pk for segment in shown])
        .select_related("device")
        .order_by("attempt_number")
    ):
        attempts.setdefault(attempt.segment_id, []).append(_attempt(attempt, job))
    rows = [
        SegmentRow(
            number=segment.index + 1,
            part=segment.part,
            characters=segment.characters,
            state=segment.state,
            state_label=segment.get_state_display(),
            attempts=attempts.get(segment.pk, []),
        )
        for segment in shown
    ]
    return rows, len(segments) > SEGMENTS_SHOWN


def _attempt(attempt: Attempt, job: SynthesisJob) -> AttemptRow:
    return AttemptRow(
        id=attempt.pk,
        attempt_number=attempt.attempt_number,
        device_id=attempt.device_id,
        device_name=attempt.device.name,
        slot_number=attempt.slot_number,
        epoch=attempt.epoch,
        bound_at=attempt.bound_at,
        wait_ms=between(job.created_at, attempt.started_at),
        spoke_ms=between(attempt.started_at, attempt.finished_at),
        gpu_ms=attempt.gpu_ms,
        audio_ms=attempt.audio_ms,
        charged_micros=attempt.charged_micros,
        state=attempt.state,
        state_label=attempt.get_state_display(),
        error_code=attempt.error_code,
        error_detail=attempt.error_detail,
    )
