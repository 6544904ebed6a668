"""What the last hours were like. It costs a walk through a day's jobs, so one walk serves everybody for a while."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any

from portal.console.latency import LatencyRow, latency_rows, measure_latency
from portal.console.selectors import FailureRow, failure_rows
from portal.lib.cache import remembered

# Named anew when what is remembered changes its form: a process of the version before may share the cache.
CACHE_KEY = "console-history-with-p99"
REMEMBERED_SECONDS = 30


@dataclass(frozen=True)
class History:
    """Latencies and failures as they were at the moment `measured_at`."""

    measured_at: datetime
    latency: list[LatencyRow]
    failures: list[FailureRow]


def read_history(*, now: datetime) -> History:
    """As of at most 30 seconds ago. Four queries, or none."""
    known = remembered(CACHE_KEY, seconds=REMEMBERED_SECONDS, find=lambda: _measure(now))
    return History(
        measured_at=datetime.fromisoformat(known["measured_at"]),
        latency=latency_rows(known["latency"]),
        failures=[FailureRow(*row) for row in known["failures"]],
    )


def _measure(now: datetime) -> dict[str, Any]:
    return {
        "measured_at": now.isoformat(),
        "latency": measure_latency(now=now),
        "failures": [astuple(row) for row in failure_rows(now=now)],
    }
