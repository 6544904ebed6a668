"""How the service is right now, in one word: for the dot on every page."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from django.conf import settings
from django.db.models import Sum
from django.utils.translation import gettext

from portal.lib.cache import remembered
from portal.lib.display import wait_text
from tts.engine.catalogue import ENGINES, EngineDescription
from tts.models import Segment
from tts.selectors.devices import ready_slot_count
from tts.states import SegmentState

# Every page shows it: one look at the tables in this time serves all.
CACHED_SECONDS = 5
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


def measure_service_state() -> ServiceState:
    """Read it from the tables: two queries."""
    slots = ready_slot_count()
    if not slots:
        return ServiceState("degraded", 0)
    waiting = (
        Segment.objects.filter(state=SegmentState.QUEUED).aggregate(total=Sum("estimate_gpu_ms"))["total"]
        or 0
    )
    wait_ms = waiting // slots
    return ServiceState("busy" if wait_ms >= BUSY_FROM_MS else "normal", wait_ms)


def service_state() -> ServiceState:
    """As `measure_service_state` saw it at most five seconds ago."""
    known = remembered(CACHE_KEY, seconds=CACHED_SECONDS, find=lambda: astuple(measure_service_state()))
    return ServiceState(*known)


def current_engine() -> EngineDescription:
    """The engine that customers' requests are quoted for."""
    return ENGINES[settings.VOICEPOOL["CPU_ENGINE"]]
