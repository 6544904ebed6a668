"""How equal the shares are, and whether a flood makes a light customer wait longer.

The real queues and decisions in PostgreSQL, on a clock of the benchmark's own: speaking takes no time.
"""

from __future__ import annotations

import random

from tests.bench._pool import bench_pool

CUSTOMERS = 7
SLOTS = 2
LENGTHS_MS = (500, 1000, 2000, 4000, 8000, 12_000, 20_000)
UNTIL_MS = 1_500_000
FLOOD = 10_000


def run() -> dict[str, float]:
    """Return `jain` (weights 1, 2 and 4; lengths up to 20 s; guesses half off) and `light_wait_ratio`."""
    with bench_pool():
        return {"jain": round(_jain(), 4), "light_wait_ratio": round(_wait_ms(FLOOD) / _wait_ms(1), 3)}


def _jain() -> float:
    from tests.pool.fair_pool import FairPool, jain

    chance = random.Random(7)
    pool = FairPool(slots=SLOTS)
    # Half as long to twice as long as was thought, the same each time it is asked.
    pool.actual_ms = lambda segment: round(
        segment.estimate_gpu_ms * random.Random(segment.pk).uniform(0.5, 1.5)
    )
    customers = []
    for number in range(CUSTOMERS):
        customer = pool.customer(weight=(1, 2, 4)[number % 3])
        customers.append(customer)
        mean_ms = LENGTHS_MS[number % len(LENGTHS_MS)]
        count = UNTIL_MS // mean_ms * 2
        pool.queue(customer, *[round(mean_ms * chance.uniform(0.5, 1.5)) for _ in range(min(count, 700))])
    pool.run(until_ms=UNTIL_MS)
    given = pool.service_ms()
    return jain([given[customer.pk] / customer.weight for customer in customers])


def _wait_ms(flood: int) -> int:
    """How long a customer's only segment waits behind so many of another's, one of which is being spoken."""
    from tests.pool.fair_pool import FairPool
    from tts.models import Segment
    from tts.states import SegmentState

    Segment.objects.filter(state__in=[SegmentState.QUEUED, SegmentState.BOUND]).update(
        state=SegmentState.CANCELED
    )
    pool = FairPool()
    pool.queue(pool.customer(), *[1500] * flood)
    pool.fill()
    light = pool.customer()
    pool.queue(light, 1500)
    while not any(one.workspace == light for one in pool.served):
        pool.step()
        pool.fill()
    return next(one.started_ms for one in pool.served if one.workspace == light)
