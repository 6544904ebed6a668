"""The third formant by Praat: of all, it tells most about the length of a vocal tract and least about the vowels."""

from __future__ import annotations

import numpy as np
import parselmouth
from numpy.typing import NDArray

from tts.engine.pitch import HIGHEST_HZ, LOWEST_HZ

SAMPLE_RATE_HZ = 24_000
STEP_S = 0.02
FORMANTS = 5
CEILING_HZ = 5500.0
# More than that changes the median by little.
LONGEST_S = 10.0
FEWEST_FRAMES = 30


def third_formant_hz(sound: NDArray[np.floating]) -> float | None:
    """The median over voiced frames, or None where there are too few. Needs sound up to `CEILING_HZ`."""
    praat = parselmouth.Sound(
        np.asarray(sound[: int(LONGEST_S * SAMPLE_RATE_HZ)], np.float64), SAMPLE_RATE_HZ
    )
    if praat.duration < 0.5:
        return None
    pitch = praat.to_pitch_ac(time_step=STEP_S, pitch_floor=LOWEST_HZ, pitch_ceiling=HIGHEST_HZ)
    formants = praat.to_formant_burg(
        time_step=STEP_S, max_number_of_formants=FORMANTS, maximum_formant=CEILING_HZ
    )
    voiced = pitch.xs()[pitch.selected_array["frequency"] > 0]
    found = np.array([formants.get_value_at_time(3, float(time)) for time in voiced])
    found = found[~np.isnan(found)]
    return float(np.median(found)) if len(found) >= FEWEST_FRAMES else None
