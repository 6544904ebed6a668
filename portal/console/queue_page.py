"""Who waits and why: by class and customer, the share got against the share due, and the jobs that wait longest."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Greatest

from portal.console.selectors import (
    DeviceRow,
    JobRow,
    QueueRow,
    between,
    device_rows,
    live_attempts,
    queue_rows,
    rows_of,
    shown_jobs,
)
from portal.lib.cache import remembered
from tts.models import FairShareClass, FairShareQueue, Segment
from tts.selectors.devices import ready_slot_count
from tts.states import JobClass, JobState, SegmentState

HOUR: Final = timedelta(hours=1)
CUSTOMERS_SHOWN: Final = 200
JOBS_SHOWN: Final = 20
REMEMBERED_SECONDS: Final = 10

_GOT = """
SELECT a.workspace_id::text, s.job_class,
    SUM(EXTRACT(EPOCH FROM LEAST(COALESCE(a.finished_at, %(now)s), %(now)s)
        - GREATEST(a.started_at, %(since)s)) * 1000)::bigint
FROM tts_attempt a JOIN tts_segment s ON s.id = a.segment_id
WHERE a.bound_at > %(since)s::timestamptz - interval '1 hour' AND a.started_at IS NOT NULL
    AND COALESCE(a.finished_at, %(now)s) > %(since)s
GROUP BY 1, 2
"""


@dataclass(frozen=True)
class ClassShare:
    """A class: what waits, and its part of the last hour's time beside the part that its weight gives it."""

    row: QueueRow
    weight: int
    got_percent: float | None
    due_percent: float | None


@dataclass(frozen=True)
class CustomerRow:
    """A workspace in a class. `got_percent` and `due_percent` are of the class; `empty_in_ms`: when all is spoken."""

    workspace_id: uuid.UUID
    workspace_name: str
    weight: int
    job_class: str
    class_label: str
    queued: int
    queued_gpu_ms: int
    running: int
    running_limit: int | None
    got_ms: int
    got_percent: float | None
    due_percent: float | None
    oldest_wait_ms: int | None
    empty_in_ms: int | None


@dataclass(frozen=True)
class QueuePage:
    classes: list[ClassShare]
    customers: list[CustomerRow]
    more_customers: bool
    waiting: list[JobRow]
    devices: list[DeviceRow]


def read_queue(*, now: datetime) -> QueuePage:
    """Everything at one moment. A fixed number of queries."""
    attempts = live_attempts()
    got = _got(now)
    weights = dict(FairShareClass.objects.values_list("job_class", "weight"))
    class_rows = queue_rows(attempts=attempts, now=now)
    customers = list(_queues()[: CUSTOMERS_SHOWN + 1])
    classes = _classes(class_rows, weights, got)
    return QueuePage(
        classes=classes,
        customers=_customers(customers[:CUSTOMERS_SHOWN], classes, got, now),
        more_customers=len(customers) > CUSTOMERS_SHOWN,
        waiting=rows_of(
            list(shown_jobs().filter(state=JobState.QUEUED).order_by("created_at")[:JOBS_SHOWN]), now=now
        ),
        devices=device_rows(attempts=attempts, now=now),
    )


def _got(now: datetime) -> dict[tuple[str, str], int]:
    """Device time of the last hour in ms by workspace and class, as of some seconds ago."""

    def find() -> list[list[Any]]:
        with connection.cursor() as cursor:
            cursor.execute(_GOT, {"now": now, "since": now - HOUR})
            return [list(row) for row in cursor.fetchall()]

    rows = remembered("console-share-got", seconds=REMEMBERED_SECONDS, find=find)
    return {(row[0], row[1]): row[2] for row in rows}


def _queues() -> QuerySet[FairShareQueue]:
    """Who has work, the most urgent class first and the longest queue first."""
    oldest = (
        Segment.objects.filter(
            workspace_id=OuterRef("workspace_id"), job_class=OuterRef("job_class"), state=SegmentState.QUEUED
        )
        .order_by("id")
        .values("created_at")[:1]
    )
    return (
        FairShareQueue.objects.filter(Q(queued__gt=0) | Q(running__gt=0))
        .select_related("workspace")
        .annotate(oldest=Subquery(oldest))
        .order_by("-queued_estimate_gpu_ms", "pk")
    )


def _classes(
    rows: list[QueueRow], weights: dict[str, int], got: dict[tuple[str, str], int]
) -> list[ClassShare]:
    by_class: dict[str, int] = {}
    for (_, job_class), took_ms in got.items():
        by_class[job_class] = by_class.get(job_class, 0) + took_ms
    all_ms = sum(by_class.values())
    active = sum(weights.get(row.job_class, 1) for row in rows if row.queued_segments)
    return [
        ClassShare(
            row=row,
            weight=weights.get(row.job_class, 1),
            got_percent=100 * by_class.get(row.job_class, 0) / all_ms if all_ms else None,
            due_percent=100 * weights.get(row.job_class, 1) / active if row.queued_segments else None,
        )
        for row in rows
    ]


def _customers(
    queues: list[FairShareQueue], classes: list[ClassShare], got: dict[tuple[str, str], int], now: datetime
) -> list[CustomerRow]:
    slots = ready_slot_count()
    due_of_class = {share.row.job_class: share.due_percent or 0.0 for share in classes}
    in_class: dict[str, int] = {}
    for (_, job_class), took_ms in got.items():
        in_class[job_class] = in_class.get(job_class, 0) + took_ms
    weights: dict[str, int] = dict(
        FairShareQueue.objects.filter(queued__gt=0)
        .order_by()
        .values_list("job_class")
        .annotate(weight=Sum(Greatest("workspace__weight", 1)))
    )
    rows = []
    for queue in queues:
        weight = max(1, queue.workspace.weight)
        due = (
            100 * weight / weights[queue.job_class] if queue.queued and weights.get(queue.job_class) else None
        )
        took_ms = got.get((str(queue.workspace_id), queue.job_class), 0)
        all_ms = in_class.get(queue.job_class, 0)
        speed = slots * due_of_class[queue.job_class] / 100 * (due or 0) / 100
        rows.append(
            CustomerRow(
                workspace_id=queue.workspace_id,
                workspace_name=queue.workspace.name,
                weight=weight,
                job_class=queue.job_class,
                class_label=str(JobClass(queue.job_class).label),
                queued=queue.queued,
                queued_gpu_ms=queue.queued_estimate_gpu_ms,
                running=queue.running,
                running_limit=queue.running_limit if queue.running_limit < 2**31 - 1 else None,
                got_ms=took_ms,
                got_percent=100 * took_ms / all_ms if all_ms else None,
                due_percent=due,
                oldest_wait_ms=between(queue.oldest, now),  # type: ignore[attr-defined]  # annotated
                empty_in_ms=round(queue.queued_estimate_gpu_ms / speed) if speed else None,
            )
        )
    order = {job_class.value: index for index, job_class in enumerate(JobClass)}
    return sorted(rows, key=lambda row: order[row.job_class])
