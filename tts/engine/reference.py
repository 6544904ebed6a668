"""What the engine takes from a reference clip: pitch, long-term spectrum, bandwidth. Cached by the clip's SHA-256."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from tts.engine.clips import QUIETEST_PEAK, read_clip
from tts.engine.errors import EngineError
from tts.engine.formants import CEILING_HZ, third_formant_hz
from tts.engine.pitch import PitchStatistics, pitch_statistics
from tts.engine.spectrum import CENTRES_HZ, Array, long_term_spectrum

# A band this far below the loudest holds the recording's noise or nothing: telephone clips end at 3.4 or 4 kHz.
FLOOR_DB = 50.0


@dataclass(frozen=True)
class VoiceFeatures:
    """`spectrum_db` is relative to its loudest band. `pitch` is None where too little is voiced, the third formant
    also where the recording ends below it."""

    pitch: PitchStatistics | None
    third_formant_hz: float | None
    spectrum_db: Array
    bandwidth_hz: float


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
