"""How well a waiting job's start is foretold, against when it really began.

A mixed load on two slots: six customers of different weights, three classes, segments of half a second to three. Every
waiting job is asked for its start once all are there, and again every few seconds. What was said at the submission
itself is a figure of its own: it cannot know what comes later and goes first.
"""

from __future__ import annotations

import random
import statistics
import time
import uuid
from datetime import datetime
from typing import TYPE_CHECKING

from tests.bench._pool import ENGINE_SETTINGS, BenchPool, bench_pool, text_that_takes

if TYPE_CHECKING:
    from accounts.models import Workspace
    from tts.models import SynthesisJob

SLOTS = 2
WARM_UP_JOBS = 8
JOBS = 50
ASK_EVERY_S = 5.0
CLASSES = ("interactive", "standard", "standard", "batch")
# Shorter waits than this are a matter of the machine, not of the estimate.
SHORTEST_WAIT_MS = 500


def run() -> dict[str, float]:
    """Return `median_error`, the median of |foretold - real| / real, and the same at the submission."""
    with bench_pool() as bench:
        bench.processes.start_node(engine_settings=ENGINE_SETTINGS, slots=SLOTS)
        bench.wait_for_slots(SLOTS)
        customers = [bench.customer(weight=1 + number % 3) for number in range(6)]
        _speak_all(bench, customers, WARM_UP_JOBS, ask_again=False)
        at_submission, later = _speak_all(bench, customers, JOBS, ask_again=True)
    return {
        "median_error": round(statistics.median(later), 3),
        "median_error_at_submission": round(statistics.median(at_submission), 3),
        "predictions": len(later),
    }


def _speak_all(
    bench: BenchPool, customers: list[Workspace], number: int, *, ask_again: bool
) -> tuple[list[float], list[float]]:
    """Submit so many jobs and wait for them; the errors of what was foretold at the submission and afterwards."""
    from tests.pool.processes import wait_for
    from tts.models import SynthesisJob
    from tts.states import JobState

    chance = random.Random(number)
    jobs, first, later = [], [], []
    for index in range(number):
        text = text_that_takes(round(chance.uniform(500, 3000)))
        jobs.append(bench.submit(customers[index % 6], text, job_class=chance.choice(CLASSES)))
        first += _foretold(jobs[-1:])
    mine = SynthesisJob.objects.filter(pk__in=[job.pk for job in jobs])
    asked_at = 0.0

    def all_spoken() -> bool:
        nonlocal asked_at
        if ask_again and time.monotonic() - asked_at > ASK_EVERY_S:
            asked_at = time.monotonic()
            later.extend(_foretold(list(mine.filter(state=JobState.QUEUED))))
        return mine.filter(state=JobState.SUCCEEDED).count() == number

    wait_for(all_spoken, timeout_s=240, what="all jobs")
    began = dict(mine.values_list("pk", "started_at"))
    return _errors(first, began), _errors(later, began)


def _foretold(jobs: list[SynthesisJob]) -> list[tuple[uuid.UUID, datetime, int]]:
    """Of each that waits: when it was asked, and in how many milliseconds it was said to start."""
    from django.utils import timezone

    from tts.services.fair_share import place_of

    said = []
    for job in jobs:
        place = place_of(job)
        if place is not None and place.starts_in_ms is not None:
            said.append((job.pk, timezone.now(), place.starts_in_ms))
    return said


def _errors(
    said: list[tuple[uuid.UUID, datetime, int]], began: dict[uuid.UUID, datetime | None]
) -> list[float]:
    errors = []
    for job_id, asked_at, foretold_ms in said:
        started_at = began[job_id]
        if started_at is None:
            raise RuntimeError("a job that succeeded never began")
        real_ms = (started_at - asked_at).total_seconds() * 1000
        if real_ms >= SHORTEST_WAIT_MS:
            errors.append(abs(foretold_ms - real_ms) / real_ms)
    return errors
