"""How a voice is made from the model's sound: a mix of styles, then formants, pitch and spectrum moved.

This is an approximation of a speaker, not a clone: it moves what can be moved without a model of speakers. One
recipe holds for all of a request, so that its chunks sound like one speaker.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tts.engine.kokoro_styles import STYLES, Mix, StyleMeasure, mixed_measure
from tts.engine.pitch import move_pitch
from tts.engine.reference import VoiceFeatures
from tts.engine.spectrum import CENTRES_HZ, SAMPLE_RATE_HZ, Array, bin_frequencies_hz, fast_length, to_mel

# How far a voice is moved. Further on it sounds less like the reference's speaker than like a machine.
LARGEST_GAIN_DB = 15.0
LEAST_SPREAD, LARGEST_SPREAD = 0.6, 1.6
SMALLEST_WARP, LARGEST_WARP = 0.88, 1.14
LOWEST_TARGET_HZ, HIGHEST_TARGET_HZ = 70.0, 420.0

# What moving a voice costs in likeness: per octave of pitch and of the third formant, per decibel of filtering. Between
# the man's style and the women's, pitch and formant weigh about the same.
PITCH_COST, FORMANT_COST, GAIN_COST = 6.0, 28.0, 0.15
# Above that pitch, and with nothing else known (a telephone clip), a mix of the man's style and a woman's is a worse
# guess than a woman's alone.
BETWEEN_THE_SEXES_BELOW_HZ = 175.0

MAN = "jm_kumo"

Sound = NDArray[np.float32]


@dataclass(frozen=True)
class Recipe:
    """`warp` above 1 moves formants and pitch up together; the pitch map counts from after that.

    `gain_db` has one value per band of `spectrum`, or is None for none.
    """

    mix: Mix
    warp: float
    from_hz: float
    to_hz: float
    spread: float
    gain_db: Array | None


def recipe_for(features: VoiceFeatures) -> Recipe:
    """The recipe that comes nearest to a reference. The same features give the same recipe."""
    return min((_recipe(mix, features) for mix in _candidates(features)), key=lambda pair: pair[0])[1]


def apply_recipe(recipe: Recipe, sound: Sound) -> Sound:
    """One chunk of the model's sound, spoken at `speed / warp`, as the recipe's voice."""
    warped = warp_sound(sound, recipe.warp)
    moved = move_pitch(warped, from_hz=recipe.from_hz, to_hz=recipe.to_hz, spread=recipe.spread)
    return moved if recipe.gain_db is None else shape_spectrum(moved, recipe.gain_db)


def warp_sound(sound: Sound, warp: float) -> Sound:
    """The sound played `warp` times as fast: all frequencies times `warp`, the length divided by it."""
    if abs(warp - 1) < 0.005 or len(sound) == 0:
        return sound
    length = round(len(sound) / warp)
    spectrum = np.fft.rfft(sound)
    changed = np.zeros(length // 2 + 1, np.complex128)
    kept = min(len(changed), len(spectrum))
    changed[:kept] = spectrum[:kept]
    return np.asarray(np.fft.irfft(changed, length) * (length / len(sound)), np.float32)


def shape_spectrum(sound: Sound, gain_db: Array) -> Sound:
    """The sound through a filter without delay that has this gain in each band."""
    if len(sound) == 0:
        return sound
    padded = fast_length(len(sound) + SAMPLE_RATE_HZ // 10)
    frequencies = bin_frequencies_hz(padded)
    gains = 10 ** (np.interp(to_mel(frequencies), to_mel(CENTRES_HZ), gain_db) / 20)
    return np.asarray(np.fft.irfft(np.fft.rfft(sound, padded) * gains, padded)[: len(sound)], np.float32)


def _candidates(features: VoiceFeatures) -> list[Mix]:
    """Each style, and each pair in equal parts that makes sense for these features."""
    singles: list[Mix] = [((name, 1.0),) for name in STYLES]
    pairs: list[Mix] = [((first, 0.5), (second, 0.5)) for first, second in itertools.combinations(STYLES, 2)]
    if features.third_formant_hz is None and (
        features.pitch is None or features.pitch.median_hz > BETWEEN_THE_SEXES_BELOW_HZ
    ):
        pairs = [pair for pair in pairs if MAN not in dict(pair)]
    return singles + pairs


def _recipe(mix: Mix, features: VoiceFeatures) -> tuple[float, Recipe]:
    """The recipe from one mix, and how far it has to move the voice."""
    measure = mixed_measure(mix)
    to_hz, spread = _pitch_targets(features, measure)
    warp = _warp(features, measure)
    gain_db = spectrum_gain(features, warped_spectrum(measure.spectrum_db, warp))
    cost = (
        PITCH_COST * abs(np.log2(to_hz / measure.pitch_hz)) + float(np.sqrt(np.mean(gain_db**2))) * GAIN_COST
    )
    if features.third_formant_hz is not None:
        cost += FORMANT_COST * abs(np.log2(features.third_formant_hz / measure.third_formant_hz))
    return cost, Recipe(
        mix=mix, warp=warp, from_hz=measure.pitch_hz * warp, to_hz=to_hz, spread=spread, gain_db=gain_db
    )


def _pitch_targets(features: VoiceFeatures, measure: StyleMeasure) -> tuple[float, float]:
    if features.pitch is None:  # whispered or hardly any speech: the style's own pitch
        return measure.pitch_hz, 1.0
    to_hz = float(np.clip(features.pitch.median_hz, LOWEST_TARGET_HZ, HIGHEST_TARGET_HZ))
    spread = features.pitch.spread_semitones / measure.spread_semitones
    return to_hz, float(np.clip(spread, LEAST_SPREAD, LARGEST_SPREAD))


def _warp(features: VoiceFeatures, measure: StyleMeasure) -> float:
    """How much shorter the speaker's vocal tract seems than the style's: by pitch, and by the third formant if known.

    Across people the two go together, a seventh in octaves: a man's tract is some 15 % longer than a woman's and his
    pitch nearly an octave lower.
    """
    octaves: list[float] = []
    if features.pitch is not None:
        octaves.append(float(np.log2(features.pitch.median_hz / measure.pitch_hz)) / 7)
    if features.third_formant_hz is not None:
        octaves.append(float(np.log2(features.third_formant_hz / measure.third_formant_hz)))
    if not octaves:
        return 1.0
    return float(np.clip(2 ** np.mean(octaves), SMALLEST_WARP, LARGEST_WARP))


def warped_spectrum(spectrum_db: Array, warp: float) -> Array:
    """A long-term spectrum after `warp_sound`."""
    return np.asarray(np.interp(to_mel(CENTRES_HZ / warp), to_mel(CENTRES_HZ), spectrum_db))


def spectrum_gain(features: VoiceFeatures, spectrum_db: Array) -> Array:
    """The gain per band that brings a long-term spectrum to the reference's, as far as it was recorded.

    Above the reference's bandwidth nothing is known: the gain fades to none, the voice keeps its own treble.
    """
    difference = features.spectrum_db - spectrum_db
    known = features.bandwidth_hz > CENTRES_HZ
    last = max(3, int(np.count_nonzero(known)))
    edge = float(difference[max(0, last - 4) : max(1, last - 1)].mean())
    difference[last - 1 :] = edge * np.linspace(1, 0.5, len(difference) - last + 1)
    difference -= difference[:last].mean()
    kernel = np.exp(-0.5 * np.arange(-3, 4) ** 2)
    smooth = np.convolve(np.pad(difference, 3, mode="edge"), kernel / kernel.sum(), mode="valid")
    return np.asarray(np.clip(smooth, -LARGEST_GAIN_DB, LARGEST_GAIN_DB))
