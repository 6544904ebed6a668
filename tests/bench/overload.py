"""Fifty users press at once on one device, one of them interactive, with segments of a second and a half.

`interactive_extra_wait` is that user's wait beyond what was left of the segment that was being spoken.
"""

from __future__ import annotations

import contextlib
import statistics
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from tests.bench._pool import ENGINE_SETTINGS, BenchPool, bench_pool, percentile, text_that_takes

USERS = 50
SEGMENT_MS = 1500
ROUNDS = 8


def run() -> dict[str, float]:
    """Return `interactive_extra_wait_p95_ms`, its median and `failed`, the number of jobs that failed."""
    with bench_pool() as bench:
        from tts.models import SynthesisJob
        from tts.states import JobState

        bench.processes.start_node(engine_settings=ENGINE_SETTINGS)
        bench.wait_for_slots(1)
        customers = [bench.customer() for _ in range(USERS)]
        waits = [_one_round(bench, customers) for _ in range(ROUNDS)]
        failed = SynthesisJob.objects.filter(state=JobState.FAILED).count()
    return {
        "interactive_extra_wait_p95_ms": round(percentile(waits, 95), 1),
        "interactive_extra_wait_p50_ms": round(statistics.median(waits), 1),
        "failed": failed,
    }


def _one_round(bench: BenchPool, customers: list) -> float:  # type: ignore[type-arg]
    from django.db import connection

    from tests.pool.processes import wait_for
    from tts.errors import JobAlreadyEnded
    from tts.models import Attempt, Segment, SynthesisJob
    from tts.services.jobs import cancel_job
    from tts.states import JOB_LIVE, AttemptState, SegmentState

    def press(number: int) -> SynthesisJob:
        job_class = "interactive" if number == USERS // 2 else "standard"
        try:
            return bench.submit(customers[number], text_that_takes(SEGMENT_MS), job_class=job_class)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as users:
        jobs = list(users.map(press, range(USERS)))
    urgent = jobs[USERS // 2]
    begun = Attempt.objects.filter(job=urgent, started_at__isnull=False)
    wait_for(begun.exists, what="the interactive job to start")
    attempt = begun.get()
    before = (
        Attempt.objects.filter(started_at__lt=attempt.started_at, device=attempt.device)
        .order_by("-started_at")
        .first()
    )
    assert attempt.started_at is not None
    free_at = urgent.created_at
    if before is not None and before.started_at is not None:
        free_at = max(free_at, before.started_at + timedelta(milliseconds=SEGMENT_MS))
    for job in jobs:
        if SynthesisJob.objects.filter(pk=job.pk, state__in=JOB_LIVE).exists() and job.pk != urgent.pk:
            with contextlib.suppress(JobAlreadyEnded):  # spoken in this very moment
                cancel_job(workspace=job.workspace, job_id=job.pk)
    wait_for(
        lambda: (
            not Segment.objects.filter(
                state__in=[SegmentState.QUEUED, SegmentState.BOUND, SegmentState.RUNNING]
            ).exists()
        ),
        what="the round to end",
    )
    assert not Attempt.objects.filter(state=AttemptState.LOST).exists()
    return (attempt.started_at - free_at).total_seconds() * 1000
