"""What an engine is: a class that the host process drives, one request at a time."""

from __future__ import annotations

import abc
import gc
import math
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tts.engine.capabilities import Capabilities
from tts.engine.protocol import SpeakRequest


class Canceled(Exception):
    """Raised inside an engine by `SpeakControl.check`: stop, the customer canceled."""


class BudgetUsedUp(Exception):
    """Raised inside an engine by `SpeakControl.check`: stop, `max_gpu_ms` are used up."""


class WorkClock:
    """Measures the engine's own work: runs while the engine works, rests while a chunk waits for its
    reader."""

    def __init__(self) -> None:
        self._elapsed_s = 0.0
        self._started: float | None = None
        self.written_off_ms = 0

    def resume(self) -> None:
        self._started = time.monotonic()

    def pause(self) -> None:
        if self._started is not None:
            self._elapsed_s += time.monotonic() - self._started
            self._started = None

    def write_off(self, since_ms: int) -> None:
        """Forget the work since the clock stood at `since_ms`: nobody pays for what was not delivered."""
        now_ms = self.elapsed_ms()
        self.written_off_ms += max(0, now_ms - since_ms)
        self._elapsed_s -= max(0, now_ms - since_ms) / 1000

    def elapsed_ms(self) -> int:
        """Whole milliseconds of work until now, rounded up; what was written off is not counted."""
        running = time.monotonic() - self._started if self._started is not None else 0.0
        return math.ceil((self._elapsed_s + running) * 1000)


class SetClock(WorkClock):
    """A clock that goes only where it is told: the simulated engine's exact times."""

    def __init__(self) -> None:
        super().__init__()
        self.set_ms = 0

    def elapsed_ms(self) -> int:
        return self.set_ms


class SpeakControl:
    """An engine's view of the request it works on: may it go on, and a sign of life to whoever waits."""

    def __init__(
        self,
        *,
        max_gpu_ms: int,
        canceled: threading.Event,
        report_progress: Callable[[], None],
        save_memory: bool = False,
        report_features: Callable[[bytes], None] = lambda features: None,
    ) -> None:
        # Set for the second try of a request that found no memory: take smaller pieces where that is possible.
        self.save_memory = save_memory
        self.clock = WorkClock()
        self.max_gpu_ms = max_gpu_ms
        self.canceled = canceled
        self.report_progress = report_progress
        # Called with what was computed of a reference clip: the next request may bring that instead of the clip.
        self.report_features = report_features
        self.seed_used: int | None = None

    def note_seed(self, seed: int) -> None:
        """A piece was spoken with this seed: the last one that is not the request's own is reported."""
        if self.seed_used is None or seed > self.seed_used:
            self.seed_used = seed

    def must_stop(self) -> bool:
        """Whether `check` would raise."""
        return self.canceled.is_set() or self.clock.elapsed_ms() >= self.max_gpu_ms

    def check(self) -> None:
        """Tell the worker that work goes on, and stop where it must not. Call between pieces of work.

        Raises:
            Canceled, BudgetUsedUp: let them pass.
        """
        if self.canceled.is_set():
            raise Canceled
        if self.clock.elapsed_ms() >= self.max_gpu_ms:
            raise BudgetUsedUp
        self.report_progress()


@dataclass(frozen=True)
class LoadedEngine:
    """What a loaded engine says of itself."""

    engine: str
    engine_version: str
    sample_rate_hz: int
    languages: tuple[str, ...]
    capabilities: Capabilities | None = None
    """What it can do; None: what the catalogue says of an engine of this name, else presets in these languages."""


class Engine(abc.ABC):
    """One model in one process. Nothing here is called from two threads."""

    works_on_cpu = False
    """Whether the processor time of this process tells that it works: one long call into a model on a busy or slow
    machine is then no hang."""

    takes_instructions = False
    """Whether `SpeakRequest.instruction` is obeyed; the host refuses it for the others."""

    reads_annotations = False
    """Whether it obeys the annotations in `SpeakRequest.text` itself (`[hào]`, `[pause 1s]`: tts.text.engine_forms).
    Where not, it is given plain text, from pause to pause."""

    @abc.abstractmethod
    def load(self, settings: dict[str, Any]) -> LoadedEngine:
        """Get ready to speak. Opens no network connection, but for an engine whose server is elsewhere.

        Raises:
            EngineError: a setting is wrong or the model is damaged.
        """

    @abc.abstractmethod
    def warm_up(self) -> None:
        """Speak something short, so that the first customer does not wait for lazy parts."""

    @abc.abstractmethod
    def speak(self, request: SpeakRequest, control: SpeakControl) -> Iterator[bytes]:
        """Chunks of PCM (signed 16-bit little-endian, mono), each as soon as it is made.

        Calls `control.check()` between pieces of work.

        Raises:
            EngineError: with blame "user" where no engine of this kind could speak it.
        """

    def similarity(self) -> float | None:
        """How like its reference the speech of the last request sounds, where an encoder of speakers is at hand: -1 to
        1, on a scale where two speakers stay below 0.31 (tts.audio.speech_check); else None.

        Called once a request is spoken in full, when the customer's time is over: keep it short.
        """
        return None

    def peak_memory_bytes(self) -> int:
        """The most memory used until now: of the device where it has its own, else of this process."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def memory_bytes(self) -> int:
        """What this process holds of the host's memory now."""
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def device_memory_bytes(self) -> int | None:
        """What this process holds of the device's own memory now; None where it has none of its own."""
        return None

    def free_memory(self) -> None:
        """Let go of what can be made again: called when memory ran out, before the request is tried once more.

        An engine on a GPU also empties its library's cache.
        """
        gc.collect()

    def close(self) -> None:  # noqa: B027 - few engines have anything to do here
        """Let go of the device in order: called once, before the process ends by itself. May take its time."""

    def stats(self) -> dict[str, Any]:
        """Figures for operators and for the watch over the memory, JSON values only."""
        return {
            "peak_memory_bytes": self.peak_memory_bytes(),
            "memory_bytes": self.memory_bytes(),
            "device_memory_bytes": self.device_memory_bytes(),
        }
