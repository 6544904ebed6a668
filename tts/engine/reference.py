"""What the engine takes from a reference clip: pitch, long-term spectrum, bandwidth. Cached by the clip's SHA-256."""

from __future__ import annotations

import hashlib
import io
import wave
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tts.engine.errors import EngineError
from tts.engine.formants import CEILING_HZ, third_formant_hz
from tts.engine.pitch import PitchStatistics, pitch_statistics
from tts.engine.spectrum import CENTRES_HZ, Array, long_term_spectrum

SAMPLE_RATE_HZ = 24_000
# More of a clip than that changes the figures by little, and costs 50 ms a second.
LONGEST_S = 30
# A band this far below the loudest holds the recording's noise or nothing: telephone clips end at 3.4 or 4 kHz.
FLOOR_DB = 50.0
QUIETEST_PEAK = 1e-4


@dataclass(frozen=True)
class VoiceFeatures:
    """`spectrum_db` is relative to its loudest band. `pitch` is None where too little is voiced, the third formant
    also where the recording ends below it."""

    pitch: PitchStatistics | None
    third_formant_hz: float | None
    spectrum_db: Array
    bandwidth_hz: float


def read_clip(wav: bytes) -> NDArray[np.float32]:
    """The samples of a canonical clip, -1 to 1.

    Raises:
        EngineError: with blame "platform": the intake stores no other form.
    """
    try:
        with wave.open(io.BytesIO(wav)) as file:
            form = (file.getnchannels(), file.getsampwidth(), file.getframerate())
            data = file.readframes(LONGEST_S * SAMPLE_RATE_HZ)
    except (wave.Error, EOFError) as error:
        raise EngineError("clip_unreadable", "The reference clip is no WAV file.") from error
    if form != (1, 2, SAMPLE_RATE_HZ):
        raise EngineError("clip_unreadable", f"The reference clip is not 24 kHz mono 16-bit but {form}.")
    return np.asarray(np.frombuffer(data[: len(data) // 2 * 2], "<i2") / 32768, np.float32)


def analyse_clip(wav: bytes) -> VoiceFeatures:
    """The features of a clip, however loud it is.

    Raises:
        EngineError: `clip_unreadable`; `clip_silent` with blame "user".
    """
    samples = read_clip(wav)
    peak = float(np.abs(samples).max(initial=0.0))
    if peak < QUIETEST_PEAK:
        raise EngineError("clip_silent", "The reference clip is silent. Record it again.", "user")
    samples = samples / np.float32(peak)
    spectrum = long_term_spectrum(samples)
    spectrum -= spectrum.max()
    bandwidth_hz = float(CENTRES_HZ[np.flatnonzero(spectrum > -FLOOR_DB)[-1]])
    return VoiceFeatures(
        pitch=pitch_statistics(samples),
        third_formant_hz=third_formant_hz(samples) if bandwidth_hz > CEILING_HZ else None,
        spectrum_db=spectrum,
        bandwidth_hz=bandwidth_hz,
    )


class FeatureCache:
    """The features of the clips used last. Holds figures, no audio."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._features: OrderedDict[str, VoiceFeatures] = OrderedDict()

    def features(self, wav: bytes) -> VoiceFeatures:
        # By what the bytes are, not by what a caller says that they are.
        key = hashlib.sha256(wav).hexdigest()
        if key not in self._features:
            self._features[key] = analyse_clip(wav)
            while len(self._features) > self._size:
                self._features.popitem(last=False)
        self._features.move_to_end(key)
        return self._features[key]

    def __len__(self) -> int:
        return len(self._features)
