"""How the service is right now, for programs: the same for everybody, read at most every few seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from portal.lib.cache import remembered
from portal.lib.clock import database_now
from portal.service_state import state_of
from tts.selectors.devices import ready_device_count
from tts.selectors.waits import expected_waits, recent_waits

CACHE_KEY = "service-status"
CACHED_SECONDS = 5


@dataclass(frozen=True)
class ClassStatus:
    """`expected_wait_ms` is None while no device is ready; the percentiles are None where no job started lately."""

    job_class: str
    started_jobs: int
    wait_p50_ms: int | None
    wait_p95_ms: int | None
    expected_wait_ms: int | None


@dataclass(frozen=True)
class ServiceStatus:
    """`level` is normal, busy or degraded, as the dot on every page says."""

    level: str
    ready_devices: int
    classes: list[ClassStatus]
    measured_at: str

    @property
    def degraded(self) -> bool:
        return self.level == "degraded"


def service_status() -> ServiceStatus:
    """As of at most five seconds ago."""
    known = remembered(CACHE_KEY, seconds=CACHED_SECONDS, find=_measure)
    return ServiceStatus(
        level=known["level"],
        ready_devices=known["ready_devices"],
        classes=[ClassStatus(*row) for row in known["classes"]],
        measured_at=known["measured_at"],
    )


def _measure() -> dict[str, Any]:
    expected = expected_waits()
    return {
        "level": state_of(expected).level,
        "ready_devices": ready_device_count(),
        "classes": [
            [wait.job_class, wait.jobs, wait.p50_ms, wait.p95_ms, expected[wait.job_class]]
            for wait in recent_waits()
        ],
        "measured_at": database_now().isoformat(timespec="milliseconds"),
    }
