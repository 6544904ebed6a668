"""What operators read. Everything comes from PostgreSQL in a fixed number of queries, however much there is.

Only how many entries RQ holds for a slot is asked of Redis: what waits is written in PostgreSQL, and the two numbers
side by side show what the wire lost. Ages are by the database's clock, passed in as `now`.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import redis
from django.db.models import Count, Min, Prefetch, Q, QuerySet, Sum

from portal.lib.queues import redis_connection, slot_queue
from tts.models import Attempt, Device, DeviceSlot, Segment, SynthesisJob
from tts.selectors.engines import usable_engines
from tts.states import (
    ATTEMPT_LIVE,
    DEVICE_HEARTBEAT_SECONDS,
    AttemptState,
    DeviceState,
    JobClass,
    JobState,
    SegmentState,
)

JOBS_SHOWN = 100


def milliseconds(duration: timedelta | None) -> int | None:
    """Whole milliseconds, rounded half up; a clock that went backwards gives 0."""
    if duration is None:
        return None
    return max(0, (duration // timedelta(microseconds=1) + 500) // 1000)


def between(start: datetime | None, end: datetime | None) -> int | None:
    """Milliseconds from one moment to the next; None where one of them has not come yet."""
    return None if start is None or end is None else milliseconds(end - start)


@dataclass(frozen=True)
class CurrentWork:
    """The attempt in a slot's hands. `segment_number` counts from 1; `since_ms` from its start, or from its binding."""

    attempt_id: uuid.UUID
    attempt_number: int
    job_id: uuid.UUID
    workspace_name: str
    segment_number: int
    segment_count: int
    state: str
    since_ms: int


@dataclass(frozen=True)
class SlotRow:
    """One serial worker's place. `wire_length` is what RQ holds for it, None where Redis does not answer.

    `unclaimed_ms` is how long a bound attempt has waited for its worker; None where none does.
    """

    number: int
    ready: bool
    worker_name: str
    work: CurrentWork | None
    wire_length: int | None
    unclaimed_ms: int | None


@dataclass(frozen=True)
class DeviceRow:
    """A device as it stands. `engines` are those that its node can bring up, by name. `silent`: its agent has not been
    heard of for too long, whatever `state` says."""

    id: int
    name: str
    node_name: str
    model_name: str
    engine: str
    engine_version: str
    state: str
    state_label: str
    state_reason: str
    silent: bool
    heartbeat_age_ms: int | None
    restarts: int
    epoch: int
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    utilisation_percent: int | None
    temperature_c: int | None
    power_mw: int | None
    recycles: int
    drained: bool
    wanted_engine: str
    slots: list[SlotRow]
    kind: str = ""
    engines: Mapping[str, str] = field(default_factory=dict)

    @property
    def takes_work(self) -> bool:
        in_service = self.state in (DeviceState.READY, DeviceState.BUSY) and not self.silent
        return in_service and any(slot.ready for slot in self.slots)


@dataclass(frozen=True)
class QueueRow:
    """One class: what waits for a device and what is in a device's hands now."""

    job_class: str
    label: str
    queued_segments: int
    queued_jobs: int
    queued_gpu_ms: int
    oldest_wait_ms: int | None
    in_hand: int


@dataclass(frozen=True)
class JobRow:
    """One job as the log shows it: lengths and times, never what was said."""

    id: uuid.UUID
    created_at: datetime
    user_email: str
    key_prefix: str
    workspace_name: str
    address: str
    characters: int
    mode: str
    class_label: str
    wait_ms: int | None
    gpu_ms: int
    attempts: int
    device_names: list[str]
    state: str
    state_label: str
    error_code: str


@dataclass(frozen=True)
class FailureRow:
    """One code. Of jobs: what customers met. Of attempts: what the platform met, whether or not a retry mended it."""

    kind: str
    code: str
    last_hour: int
    last_day: int


def live_attempts() -> list[Attempt]:
    """What the pool has in hand: at most one attempt per slot, and what the sweep has yet to find."""
    return list(
        Attempt.objects.filter(state__in=ATTEMPT_LIVE)
        .select_related("segment", "job", "workspace")
        .defer("segment__text", "job__text", "job__peaks")
        .order_by("bound_at")
    )


def wire_lengths(slots: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int] | None:
    """How many entries RQ holds for each (device id, slot number), in one round trip; None while Redis is away."""
    wanted = list(slots)
    try:
        with redis_connection().pipeline(transaction=False) as pipeline:
            for device_id, number in wanted:
                pipeline.llen(slot_queue(device_id=device_id, slot_number=number).key)
            return dict(zip(wanted, pipeline.execute(), strict=True))
    except redis.RedisError:
        return None


def _current_work(attempt: Attempt, now: datetime) -> CurrentWork:
    return CurrentWork(
        attempt_id=attempt.pk,
        attempt_number=attempt.attempt_number,
        job_id=attempt.job_id,
        workspace_name=attempt.workspace.name,
        segment_number=attempt.segment.index + 1,
        segment_count=attempt.job.segment_count,
        state=attempt.state,
        since_ms=between(attempt.started_at or attempt.bound_at, now) or 0,
    )


def _slot_row(slot: DeviceSlot, attempt: Attempt | None, wire_length: int | None, now: datetime) -> SlotRow:
    unclaimed = attempt is not None and attempt.state == AttemptState.BOUND
    return SlotRow(
        number=slot.number,
        ready=slot.ready,
        worker_name=slot.worker_name,
        work=_current_work(attempt, now) if attempt is not None else None,
        wire_length=wire_length,
        unclaimed_ms=between(attempt.bound_at, now) if attempt is not None and unclaimed else None,
    )


def device_rows(
    *, attempts: Iterable[Attempt], now: datetime, device_ids: Iterable[int] | None = None
) -> list[DeviceRow]:
    """Devices (all, or these) by node and name, with their slots and what they do. Two queries, one round trip to
    Redis.
    """
    slots = Prefetch("slot_rows", queryset=DeviceSlot.objects.order_by("number"))
    wanted = Device.objects.order_by("node_name", "name")
    if device_ids is not None:
        wanted = wanted.filter(pk__in=list(device_ids))
    devices = list(wanted.prefetch_related(slots))
    lengths = wire_lengths((device.pk, slot.number) for device in devices for slot in device.slot_rows.all())
    in_hand = {attempt.pk: attempt for attempt in attempts}
    return [_device_row(device, in_hand, lengths, now) for device in devices]


def _device_row(
    device: Device,
    in_hand: dict[uuid.UUID, Attempt],
    lengths: dict[tuple[int, int], int] | None,
    now: datetime,
) -> DeviceRow:
    slots = [
        _slot_row(
            slot,
            in_hand.get(slot.attempt_id) if slot.attempt_id else None,
            None if lengths is None else lengths[device.pk, slot.number],
            now,
        )
        for slot in device.slot_rows.all()
    ]
    state = DeviceState(device.state)
    # Which of the two it is follows from its slots; nothing writes it down a second time.
    if state in (DeviceState.READY, DeviceState.BUSY):
        state = DeviceState.BUSY if any(slot.work for slot in slots) else DeviceState.READY
    age_ms = between(device.heartbeat_at, now)
    at_rest = state == DeviceState.STOPPED
    return DeviceRow(
        id=device.pk,
        name=device.name,
        node_name=device.node_name,
        model_name=device.model_name,
        engine=device.engine,
        engine_version=device.engine_version,
        state=state.value,
        state_label=str(state.label),
        state_reason=device.state_reason,
        silent=not at_rest and (age_ms is None or age_ms > DEVICE_HEARTBEAT_SECONDS * 1000),
        heartbeat_age_ms=age_ms,
        restarts=device.restarts,
        epoch=device.epoch,
        memory_used_bytes=device.memory_used_bytes,
        memory_total_bytes=device.memory_total_bytes,
        utilisation_percent=device.utilisation_percent,
        temperature_c=device.temperature_c,
        power_mw=device.power_mw,
        recycles=device.recycles,
        drained=device.drained_at is not None,
        wanted_engine=device.wanted_engine,
        slots=slots,
        kind=device.kind,
        engines=usable_engines(device),
    )


def queue_rows(*, attempts: Iterable[Attempt], now: datetime) -> list[QueueRow]:
    """One row for each class, also for an empty one, the most urgent first. One query."""
    waiting = {
        row["job_class"]: row
        for row in Segment.objects.filter(state=SegmentState.QUEUED)
        .order_by()
        .values("job_class")
        .annotate(
            segments=Count("pk"),
            jobs=Count("job", distinct=True),
            gpu_ms=Sum("estimate_gpu_ms"),
            oldest=Min("created_at"),
        )
    }
    in_hand = Counter(attempt.segment.job_class for attempt in attempts)
    rows = []
    for job_class in JobClass:
        found: dict[str, Any] = {**waiting.get(job_class.value, {})}
        rows.append(
            QueueRow(
                job_class=job_class.value,
                label=str(job_class.label),
                queued_segments=found.get("segments", 0),
                queued_jobs=found.get("jobs", 0),
                queued_gpu_ms=found.get("gpu_ms", 0),
                oldest_wait_ms=between(found.get("oldest"), now),
                in_hand=in_hand[job_class.value],
            )
        )
    return rows


def job_rows(*, now: datetime, limit: int = JOBS_SHOWN) -> list[JobRow]:
    """The newest jobs of all customers, newest first. A job that waits still shows how long so far. Two queries."""
    return rows_of(list(shown_jobs().order_by("-created_at", "-pk")[:limit]), now=now)


def shown_jobs() -> QuerySet[SynthesisJob]:
    """All customers' jobs with what `rows_of` shows of them, and nothing of what was said."""
    return SynthesisJob.objects.select_related("workspace", "created_by", "api_key").defer(
        "text", "peaks", "request_sha256"
    )


def rows_of(jobs: Sequence[SynthesisJob], *, now: datetime) -> list[JobRow]:
    """The jobs as rows, in their order. One query."""
    used: dict[uuid.UUID, list[tuple[str, int, int]]] = {}
    for job_id, device_name, gpu_ms, count in (
        Attempt.objects.filter(job__in=[job.pk for job in jobs])
        .order_by("device__name")
        .values_list("job_id", "device__name")
        .annotate(gpu=Sum("gpu_ms"), count=Count("pk"))
    ):
        used.setdefault(job_id, []).append((device_name, gpu_ms, count))
    return [_job_row(job, used.get(job.pk, []), now) for job in jobs]


def _job_row(job: SynthesisJob, used: list[tuple[str, int, int]], now: datetime) -> JobRow:
    # A job that ended without ever starting waited until its end.
    started_at = job.started_at or job.finished_at or now
    return JobRow(
        id=job.pk,
        created_at=job.created_at,
        user_email=job.created_by.email if job.created_by else "",
        key_prefix=job.api_key.prefix if job.api_key else "",
        workspace_name=job.workspace.name,
        address=job.client_address or "",
        characters=job.characters,
        mode=job.mode,
        class_label=str(JobClass(job.job_class).label),
        wait_ms=between(job.created_at, started_at),
        gpu_ms=sum(gpu_ms for _, gpu_ms, _ in used),
        attempts=sum(count for _, _, count in used),
        device_names=[name for name, _, _ in used],
        state=job.state,
        state_label=str(JobState(job.state).label),
        error_code=job.error_code,
    )


def failure_rows(*, now: datetime) -> list[FailureRow]:
    """Failures of the jobs of the last 24 hours by code, those of jobs first, the most frequent first. Two queries."""
    hour, day = now - timedelta(hours=1), now - timedelta(hours=24)
    jobs = (
        SynthesisJob.objects.filter(created_at__gte=day, state=JobState.FAILED)
        .values_list("error_code")
        .annotate(hour=Count("pk", filter=Q(created_at__gte=hour)), day=Count("pk"))
        .order_by("-day", "error_code")
    )
    attempts = (
        Attempt.objects.filter(job__created_at__gte=day, state__in=[AttemptState.FAILED, AttemptState.LOST])
        .values_list("error_code")
        .annotate(hour=Count("pk", filter=Q(job__created_at__gte=hour)), day=Count("pk"))
        .order_by("-day", "error_code")
    )
    return [
        FailureRow(kind=kind, code=code, last_hour=in_hour, last_day=in_day)
        for kind, found in (("job", jobs), ("attempt", attempts))
        for code, in_hour, in_day in found
    ]
