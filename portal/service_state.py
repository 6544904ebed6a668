"""How the service is right now, in one word: for the dot on every page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from django.utils.translation import gettext

from portal.lib.cache import remembered
from portal.lib.display import wait_text
from tts.selectors.engines import pool_offer
from tts.selectors.waits import expected_waits
from tts.states import JobClass

# Every page shows it: one look at the tables in this time serves all.
CACHED_SECONDS = 5
PACE_SECONDS = 30
CACHE_KEY = "service-state"
# Below this nobody feels that they wait.
BUSY_FROM_MS = 5_000


@dataclass(frozen=True)
class ServiceState:
    """`level` is normal, busy or degraded; `wait_ms` is what a new request would wait for, about."""

    level: str
    wait_ms: int

    @property
    def label(self) -> str:
        if self.level == "degraded":
            return gettext("No device is ready")
        if self.level == "busy":
            return gettext("Busy, wait %(time)s") % {"time": wait_text(self.wait_ms)}
        return gettext("All is well")


def state_of(waits: Mapping[str, int | None]) -> ServiceState:
    """What it comes to that new jobs have to wait so long (tts.selectors.waits.expected_waits): what somebody who
    waits for an answer feels."""
    wait_ms = waits[JobClass.INTERACTIVE]
    if wait_ms is None:
        return ServiceState("degraded", 0)
    return ServiceState("busy" if wait_ms >= BUSY_FROM_MS else "normal", wait_ms)


def measure_service_state() -> ServiceState:
    """Read it from the tables: a few queries."""
    return state_of(expected_waits())


def service_state() -> ServiceState:
    """As `measure_service_state` saw it at most five seconds ago."""
    known = remembered(CACHE_KEY, seconds=CACHED_SECONDS, find=lambda: astuple(measure_service_state()))
    return ServiceState(*known)


def gpu_ms_per_audio_s() -> int:
    """What customers' requests are quoted with, as it was at most half a minute ago: see `pool_offer`."""
    return remembered("pool-pace", seconds=PACE_SECONDS, find=lambda: pool_offer().gpu_ms_per_audio_s)
