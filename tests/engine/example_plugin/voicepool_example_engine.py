"""The smallest engine that VoicePool can use: it says a tone for each letter. A worked example, see the README."""

from __future__ import annotations

import array
import math
from collections.abc import Iterator
from typing import Any

from tts.engine.base import Engine, LoadedEngine, SpeakControl
from tts.engine.capabilities import Capabilities
from tts.engine.errors import EngineError
from tts.engine.protocol import SpeakRequest

RATE_HZ = 24_000


class TonesEngine(Engine):
    """Setting: `ms_per_letter`."""

    def __init__(self) -> None:
        self._ms_per_letter = 100

    def load(self, settings: dict[str, Any]) -> LoadedEngine:
        if unknown := set(settings) - {"ms_per_letter"}:
            raise EngineError("setting_unknown", f"The example has no setting {sorted(unknown)}.")
        self._ms_per_letter = int(settings.get("ms_per_letter", 100))
        can = Capabilities(languages=("en",), modes=("preset",), gpu_ms_per_audio_s=5)
        return LoadedEngine("example-tones", "1.2.0", RATE_HZ, can.languages, can)

    def warm_up(self) -> None:
        pass

    def speak(self, request: SpeakRequest, control: SpeakControl) -> Iterator[bytes]:
        for letter in request.text:
            control.check()  # stops where the customer canceled, or what he set aside is used up
            yield self._tone(200 + ord(letter) % 64 * 10, round(self._ms_per_letter / request.speed))

    def _tone(self, frequency_hz: int, duration_ms: int) -> bytes:
        samples = range(RATE_HZ * duration_ms // 1000)
        step = 2 * math.pi * frequency_hz / RATE_HZ
        return array.array("h", (round(8000 * math.sin(step * n)) for n in samples)).tobytes()
