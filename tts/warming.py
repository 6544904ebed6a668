"""From nothing to an engine process that is loaded, warm, and has spoken its test sentence right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.utils import timezone

from tts.canary import CanaryResult, speak_canary
from tts.engine.base import LoadedEngine
from tts.engine.process import EngineProcess
from tts.models.operations import DeviceEventKind
from tts.recycling import EngineAge, Limits
from tts.slot_engine import build_engine

LOAD_TIMEOUT_S = 300.0
WARM_UP_TIMEOUT_S = 120.0
STATS_TIMEOUT_S = 20.0
CANARY_TRIES = 2
# Of these a few short sounds tell enough, and whoever starts the stack on a laptop waits for them.
QUICK = ("kokoro", "simulated", "simulated-b")


class CanaryFailedError(Exception):
    """An engine that was loaded did not speak its test sentence right, twice."""


@dataclass(frozen=True)
class Kept:
    """An engine process that was loaded and has passed its test sentence."""

    process: EngineProcess
    loaded: LoadedEngine
    name: str
    age: EngineAge


@dataclass(frozen=True)
class Warmer:
    """Brings up engine processes of one slot.

    `tell` adds to the device's timeline; `end` kills a process; `note_canary` is told the engine's time for each test
    sentence.

    `processes` holds all that were started and not ended, so that another thread can end them.
    """

    visible_device: str
    processes: set[EngineProcess]
    tell: Callable[[DeviceEventKind, str], None]
    end: Callable[[EngineProcess], None]
    note_canary: Callable[[int], None]

    def warmed(self, name: str, *, started: EngineProcess | None, thorough: bool) -> Kept:
        """Load an engine and have it pass its test sentence; a second process has a second chance.

        `started`: one that was started (not loaded) already. No process is left behind when this raises:

        Raises:
            EngineFailure: it cannot be loaded.
            CanaryFailedError: it speaks wrong.
        """
        process, detail = started, ""
        for _ in range(CANARY_TRIES):
            if process is None:
                process = build_engine(engine=name, visible_device=self.visible_device)
                process.start()
            self.processes.add(process)
            try:
                loaded, result = self._prove(process, thorough=thorough)
                self.note_canary(result.gpu_ms)
                if result.passed:
                    age = EngineAge(limits=Limits.from_environment(), started_at=timezone.localtime())
                    age.look(process.stats(STATS_TIMEOUT_S))
                    self.tell(DeviceEventKind.CANARY_PASSED, f"{name}: {result.gpu_ms} gpu_ms")
                    return Kept(process=process, loaded=loaded, name=name, age=age)
                detail = result.detail
                self.tell(DeviceEventKind.CANARY_FAILED, f"{name}: {detail}; {result.gpu_ms} gpu_ms")
            except BaseException:
                self.end(process)
                raise
            self.end(process)
            process = None
        raise CanaryFailedError(detail)

    def _prove(self, process: EngineProcess, *, thorough: bool) -> tuple[LoadedEngine, CanaryResult]:
        loaded = process.load(LOAD_TIMEOUT_S)
        on_gpu = bool(self.visible_device)
        if on_gpu:
            # Compiles and reserves what real requests need; on a CPU the test sentence warms enough.
            process.warm_up(WARM_UP_TIMEOUT_S)
        result = speak_canary(
            process,
            sample_rate_hz=loaded.sample_rate_hz,
            thorough=thorough or on_gpu or loaded.engine not in QUICK,
            capabilities=loaded.capabilities,
        )
        return loaded, result
