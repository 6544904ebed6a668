"""How long a device stands idle between two attempts while work waits, storing and settling included.

One device with the simulated engine, which takes the time it reports; a backlog of segments of one second. The gap is
the time from one attempt's start to the next one's, less what the engine worked on the first.
"""

from __future__ import annotations

import itertools
import statistics

from tests.bench._pool import ENGINE_SETTINGS, bench_pool, percentile, text_that_takes

SEGMENT_MS = 1000
SEGMENTS = 60
# Not counted: the caches of a fresh worker fill.
WARM_UP_SEGMENTS = 5


def run() -> dict[str, float]:
    """Return `p50_ms`, `p99_ms` of the gap and `busy_share`, the engine's work over the whole time."""
    with bench_pool() as bench:
        from tests.pool.processes import wait_for
        from tts.models import Attempt
        from tts.states import AttemptState

        customers = [bench.customer() for _ in range(3)]
        for number in range(WARM_UP_SEGMENTS + SEGMENTS):
            bench.submit(customers[number % 3], text_that_takes(SEGMENT_MS))
        bench.processes.start_node(engine_settings=ENGINE_SETTINGS)
        done = Attempt.objects.filter(state=AttemptState.SUCCEEDED)
        wait_for(
            lambda: done.count() == WARM_UP_SEGMENTS + SEGMENTS,
            timeout_s=SEGMENTS * SEGMENT_MS / 1000 * 2 + 60,
            what="the backlog to be spoken",
        )
        rows = list(done.order_by("started_at").values_list("started_at", "gpu_ms"))[WARM_UP_SEGMENTS:]
    periods = [
        ((later - earlier).total_seconds() * 1000, gpu_ms)
        for (earlier, gpu_ms), (later, _) in itertools.pairwise(rows)
    ]
    gaps = [period - gpu_ms for period, gpu_ms in periods]
    worked = sum(gpu_ms for _, gpu_ms in periods)
    return {
        "p50_ms": round(statistics.median(gaps), 1),
        "p99_ms": round(percentile(gaps, 99), 1),
        "busy_share": round(worked / sum(period for period, _ in periods), 4),
    }
