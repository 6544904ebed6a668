"""An engine without a model: exact, seeded timings and recognisable audio, for tests and benchmarks only.

Its audio is a tone whose period follows from text, voice and seed, so that a test can tell whether the right
file came back. Its `gpu_ms` are computed, not measured; with `real_time` it also takes that long.

Misbehaviours are settings too. `crash_on_text`, `hang_on_text`, `error_on_text`, `oom_on_text` and their like name
a substring; with `once_folder` each happens once per folder, so that a retry goes well.
"""

from __future__ import annotations

import array
import hashlib
import math
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tts.engine.base import Engine, LoadedEngine, SetClock, SpeakControl
from tts.engine.catalogue import ENGINES
from tts.engine.errors import EngineError
from tts.engine.protocol import SpeakRequest

SAMPLE_RATE_HZ = 24_000
AMPLITUDE = 6000
# Periods in samples: 200 to 800 Hz, each a whole number of samples, so that a chunk is a copied table.
SHORTEST_PERIOD, LONGEST_PERIOD = 30, 120
STAMP = b"chunk of"  # where a stamp begins; eight bytes of a 64-bit number follow, little-endian
SLICE_S = 0.02  # how long a real-time wait goes without looking for a cancel


@dataclass(frozen=True)
class SimulatedSettings:
    ms_per_character: int = 20
    """Device time for one character, in milliseconds."""
    jitter_percent: int = 0
    """How far the device time strays from that, by a seed made of text and seed."""
    audio_ms_per_character: int = 200
    chunk_ms: int = 400
    """Audio in one chunk."""
    stamp_chunks: bool = False
    """Write over the beginning of each chunk when it was made: `STAMP`, then the host's monotonic clock in ns."""
    real_time: bool = False
    """Take the device time for real, instead of only reporting it."""
    load_ms: int = 0
    warm_up_ms: int = 0
    error_on_load: bool = False
    crash_on_text: str = ""
    """SIGKILL to itself after the first chunk."""
    hang_on_text: str = ""
    """Says nothing more after the first chunk, not even to a cancel."""
    error_on_text: str = ""
    error_blame: str = "user"
    print_on_text: str = ""
    """Prints to standard output, as a careless library does."""
    silent_on_text: str = ""
    """Speaks nothing but silence."""
    other_speaker_on_text: str = ""
    """Says of itself that it sounds like somebody else; of other texts, where this is set, that it does not."""
    oom_on_text: str = ""
    """Finds no memory, before the first chunk."""
    oom_for_one_process: bool = False
    """With `once_folder`: the process that found no memory never does, the next one does."""
    device_lost_on_text: str = ""
    """Fails as CUDA does when the device's context is lost."""
    leak_bytes_per_request: int = 0
    """Keeps this much more of the host's memory with each request."""
    device_memory_bytes: int = 0
    """What it says to hold of a device's own memory; 0 for none."""
    leak_device_bytes_per_request: int = 0
    close_ms: int = 0
    """How long an orderly end takes."""
    once_folder: str = ""


def tone_period(*, text: str, voice_key: str, seed: int) -> int:
    """The period of the tone for a request, in samples at 24 kHz. `voice_key` is the preset or the clip's
    SHA-256."""
    digest = hashlib.sha256(f"{voice_key}\0{seed}\0{text}".encode()).digest()
    return SHORTEST_PERIOD + int.from_bytes(digest[:4], "big") % (LONGEST_PERIOD - SHORTEST_PERIOD)


def tone(*, period: int, samples: int) -> bytes:
    """PCM of a sine of that period."""
    table = array.array("h", (round(AMPLITUDE * math.sin(2 * math.pi * n / period)) for n in range(period)))
    repeated = table * (samples // period + 1)
    del repeated[samples:]
    if sys.byteorder == "big":
        repeated.byteswap()
    return repeated.tobytes()


class _OutOfMemoryError(RuntimeError):
    """Named as torch names its own."""


_OutOfMemoryError.__name__ = "OutOfMemoryError"


class SimulatedEngine(Engine):
    """See the module."""

    name = "simulated"
    version = "1"
    reads_annotations = True  # in its own way: as text

    def __init__(self) -> None:
        self._settings = SimulatedSettings()
        self._requests = 0
        self._last: SpeakRequest | None = None
        self._leaked: list[bytes] = []

    def load(self, settings: dict[str, Any]) -> LoadedEngine:
        known = {field.name for field in fields(SimulatedSettings)}
        if unknown := set(settings) - known:
            raise EngineError("setting_unknown", f"The simulated engine has no setting {sorted(unknown)}.")
        self._settings = SimulatedSettings(**settings)
        time.sleep(self._settings.load_ms / 1000)
        if self._settings.error_on_load:
            raise EngineError("model_damaged", "The simulated engine was told to fail.")
        return LoadedEngine(
            engine=self.name,
            engine_version=self.version,
            sample_rate_hz=SAMPLE_RATE_HZ,
            languages=ENGINES[self.name].languages,
        )

    def warm_up(self) -> None:
        time.sleep(self._settings.warm_up_ms / 1000)

    def speak(self, request: SpeakRequest, control: SpeakControl) -> Iterator[bytes]:
        clock = control.clock = SetClock()
        started_at = time.monotonic()
        self._requests += 1
        self._last = request
        if self._meant(self._settings.error_on_text, request):
            raise EngineError(
                "told_to_fail", "The simulated engine was told to fail.", self._settings.error_blame
            )
        self._lose_memory(request)
        if self._meant(self._settings.print_on_text, request):
            print("a careless library prints this", flush=True)  # noqa: T201
            os.write(1, b"\x00\x00\x00\x05and this to the descriptor")
        audio_ms = max(1, round(len(request.text) * self._settings.audio_ms_per_character / request.speed))
        work_ms = self._work_ms(request)
        for first_ms in range(0, audio_ms, self._settings.chunk_ms):
            control.check()
            last_ms = min(audio_ms, first_ms + self._settings.chunk_ms)
            self._work(control, clock, round(work_ms * last_ms / audio_ms), started_at)
            chunk = self._audio(request, first_ms, last_ms)
            yield self._stamped(chunk) if self._settings.stamp_chunks else chunk
            if first_ms == 0:
                self._misbehave(request)

    def similarity(self) -> float | None:
        if not self._settings.other_speaker_on_text or self._last is None:
            return None
        return 0.1 if self._meant(self._settings.other_speaker_on_text, self._last) else 0.8

    def stats(self) -> dict[str, Any]:
        return {**super().stats(), "requests": self._requests}

    def device_memory_bytes(self) -> int | None:
        if not self._settings.device_memory_bytes:
            return None
        return (
            self._settings.device_memory_bytes + self._requests * self._settings.leak_device_bytes_per_request
        )

    def close(self) -> None:
        time.sleep(self._settings.close_ms / 1000)

    def _lose_memory(self, request: SpeakRequest) -> None:
        if self._settings.leak_bytes_per_request:
            # Written to, so that the kernel really gives it.
            self._leaked.append(b"\1" * self._settings.leak_bytes_per_request)
        if self._meant(self._settings.device_lost_on_text, request):
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        whole_process = str(os.getpid()) if self._settings.oom_for_one_process else ""
        if self._meant(self._settings.oom_on_text, request, always_for=whole_process):
            raise _OutOfMemoryError("the simulated engine was told to find no memory")

    def _work_ms(self, request: SpeakRequest) -> int:
        jitter = random.Random(f"{request.seed}\0{request.text}").uniform(-1, 1)  # noqa: S311
        return round(
            len(request.text)
            * self._settings.ms_per_character
            * (1 + jitter * self._settings.jitter_percent / 100)
        )

    def _work(self, control: SpeakControl, clock: SetClock, until_ms: int, started_at: float) -> None:
        """Set the clock to `until_ms`, once so much real time has passed since the start where settings say so.

        As a device does, it works on while the chunk before is taken away.
        """
        if self._settings.real_time:
            ends_at = started_at + until_ms / 1000
            while (left_s := ends_at - time.monotonic()) > 0 and not control.canceled.is_set():
                time.sleep(min(SLICE_S, left_s))
        clock.set_ms = until_ms

    def _audio(self, request: SpeakRequest, first_ms: int, last_ms: int) -> bytes:
        voice_key = request.voice.preset_key or request.voice.reference_sha256
        period = tone_period(text=request.text, voice_key=voice_key, seed=request.seed)
        first, last = (ms * SAMPLE_RATE_HZ // 1000 for ms in (first_ms, last_ms))
        if self._meant(self._settings.silent_on_text, request):
            return bytes((last - first) * 2)
        return tone(period=period, samples=last)[first * 2 :]

    @staticmethod
    def _stamped(chunk: bytes) -> bytes:
        stamp = STAMP + time.monotonic_ns().to_bytes(8, "little")
        return stamp + chunk[len(stamp) :]

    def _misbehave(self, request: SpeakRequest) -> None:
        if self._meant(self._settings.crash_on_text, request):
            os.kill(os.getpid(), signal.SIGKILL)
        if self._meant(self._settings.hang_on_text, request):
            while True:
                time.sleep(60)

    def _meant(self, substring: str, request: SpeakRequest, *, always_for: str = "") -> bool:
        """Whether the request is to be misbehaved on, now. `always_for`: once met, this one meets it again."""
        if not substring or substring not in request.text:
            return False
        if not self._settings.once_folder:
            return True
        marker = Path(self._settings.once_folder) / hashlib.sha256(substring.encode()).hexdigest()
        try:
            with marker.open("x") as file:
                file.write(always_for)
        except FileExistsError:
            return bool(always_for) and marker.read_text() == always_for
        return True


class OtherSimulatedEngine(SimulatedEngine):
    """The same under another name and version: what a model swap changes over to."""

    name = "simulated-b"
    version = "2"
