"""How well a waiting job's start is foretold: right after its submission, against when it really began.

A mixed load on two slots: six customers of different weights, three classes, segments of half a second to three. A
job that found a free slot is not counted: it was told no wait.
"""

from __future__ import annotations

import random
import statistics

from tests.bench._pool import ENGINE_SETTINGS, bench_pool, text_that_takes

SLOTS = 2
JOBS = 60
CLASSES = ("interactive", "standard", "standard", "batch")
# Shorter waits than this are a matter of the machine, not of the estimate.
SHORTEST_WAIT_MS = 500


def run() -> dict[str, float]:
    """Return `median_error`, the median of |foretold - real| / real."""
    chance = random.Random(11)
    errors = []
    with bench_pool() as bench:
        from tests.pool.processes import wait_for
        from tts.models import SynthesisJob
        from tts.services.fair_share import place_of
        from tts.states import JobState

        bench.processes.start_node(engine_settings=ENGINE_SETTINGS, slots=SLOTS)
        bench.wait_for_slots(SLOTS)
        customers = [bench.customer(weight=1 + number % 3) for number in range(6)]
        foretold = {}
        for number in range(JOBS):
            text = text_that_takes(round(chance.uniform(500, 3000)))
            job = bench.submit(customers[number % 6], text, job_class=chance.choice(CLASSES))
            place = place_of(job)
            if place is not None and place.starts_in_ms is not None:
                foretold[job.pk] = place.starts_in_ms
        jobs = SynthesisJob.objects.filter(pk__in=foretold)
        wait_for(
            lambda: jobs.filter(state=JobState.SUCCEEDED).count() == len(foretold),
            timeout_s=180,
            what="all jobs",
        )
        for job in jobs:
            assert job.started_at is not None
            real_ms = (job.started_at - job.created_at).total_seconds() * 1000
            if real_ms >= SHORTEST_WAIT_MS:
                errors.append(abs(foretold[job.pk] - real_ms) / real_ms)
    return {"median_error": round(statistics.median(errors), 3), "jobs": len(errors)}
