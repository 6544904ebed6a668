"""Pitch by Praat: what a voice has, and moving it elsewhere without touching the timbre."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import parselmouth
from numpy.typing import NDArray
from parselmouth.praat import call

SAMPLE_RATE_HZ = 24_000
STEP_S = 0.01
# Speech of men, women and children; the search is narrowed to the voice afterwards.
LOWEST_HZ, HIGHEST_HZ = 60.0, 520.0
# Below that, a median says little: whispered, noisy or hardly any speech.
LEAST_VOICED_S = 0.8
RESYNTHESIS_FLOOR_HZ, RESYNTHESIS_CEILING_HZ = 60.0, 700.0


@dataclass(frozen=True)
class PitchStatistics:
    """Median in hertz, half the distance between the 16th and 84th percentile in semitones, voiced seconds."""

    median_hz: float
    spread_semitones: float
    voiced_s: float


def pitch_statistics(sound: NDArray[np.floating]) -> PitchStatistics | None:
    """The pitch of a voice, or None where too little of it is voiced."""
    praat = parselmouth.Sound(np.asarray(sound, np.float64), SAMPLE_RATE_HZ)
    if praat.duration < 3.1 / LOWEST_HZ:
        return None
    track = _track(praat, LOWEST_HZ, HIGHEST_HZ)
    if len(track) * STEP_S < LEAST_VOICED_S:
        return None
    # Octave errors sit outside of 0.7 to 1.9 times the middle half (Hirst's two passes).
    low, high = np.percentile(track, [25, 75])
    track = _track(praat, max(50.0, 0.7 * float(low)), min(700.0, 1.9 * float(high)))
    if len(track) * STEP_S < LEAST_VOICED_S:
        return None
    semitones = 12 * np.log2(track)
    lower, median, upper = np.percentile(semitones, [16, 50, 84])
    return PitchStatistics(
        median_hz=float(2 ** (median / 12)),
        spread_semitones=float(upper - lower) / 2,
        voiced_s=len(track) * STEP_S,
    )


def _track(praat: parselmouth.Sound, floor_hz: float, ceiling_hz: float) -> NDArray[np.float64]:
    pitch = praat.to_pitch_ac(time_step=STEP_S, pitch_floor=floor_hz, pitch_ceiling=ceiling_hz)
    track = pitch.selected_array["frequency"]
    return np.asarray(track[track > 0])


def move_pitch(
    sound: NDArray[np.float32], *, from_hz: float, to_hz: float, spread: float
) -> NDArray[np.float32]:
    """The sound with each pitch p at `to_hz * (p / from_hz) ** spread`, by overlap-add; timbre and times stay.

    The map is fixed, not taken from this sound: all parts of one speech move alike.
    """
    if len(sound) < SAMPLE_RATE_HZ * 3.1 / RESYNTHESIS_FLOOR_HZ:
        return sound
    if abs(np.log2(to_hz / from_hz)) < 0.01 and abs(spread - 1) < 0.02:
        return sound
    praat = parselmouth.Sound(np.asarray(sound, np.float64), SAMPLE_RATE_HZ)
    manipulation = call(praat, "To Manipulation", STEP_S, RESYNTHESIS_FLOOR_HZ, RESYNTHESIS_CEILING_HZ)
    tier = call(manipulation, "Extract pitch tier")
    if call(tier, "Get number of points") == 0:
        return sound
    formula = f"min(650, max(50, {to_hz:.6f} * (self / {from_hz:.6f}) ^ {spread:.6f}))"
    call(tier, "Formula", formula)
    call([tier, manipulation], "Replace pitch tier")
    moved = call(manipulation, "Get resynthesis (overlap-add)").values[0]
    return np.asarray(moved, np.float32)
