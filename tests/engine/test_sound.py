"""The arithmetic of sound: loudness, limiter, filters, pitch."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.sounds import SAMPLE_RATE_HZ, voice_like, wav_bytes
from tts.engine.adaptation import (
    LARGEST_GAIN_DB,
    Recipe,
    apply_recipe,
    recipe_for,
    shape_spectrum,
    warp_sound,
)
from tts.engine.clips import read_clip
from tts.engine.edges import trimmed
from tts.engine.errors import EngineError
from tts.engine.formants import third_formant_hz
from tts.engine.loudness import LIMIT, Leveller, limited, loudness
from tts.engine.pitch import move_pitch, pitch_statistics
from tts.engine.reference import analyse_clip
from tts.engine.spectrum import BANDS, CENTRES_HZ, fast_length, long_term_spectrum

Sound = NDArray[np.float32]


def sine(frequency_hz: float, *, seconds: float = 3.0, amplitude: float = 1.0) -> Sound:
    times = np.arange(round(seconds * SAMPLE_RATE_HZ)) / SAMPLE_RATE_HZ
    return np.asarray(amplitude * np.sin(2 * np.pi * frequency_hz * times), np.float32)


def voice(pitch_hz: float = 150.0, seconds: float = 4.0) -> Sound:
    return np.asarray(voice_like(pitch_hz=pitch_hz, seconds=seconds) / 32768, np.float32)


def peak_hz(sound: Sound) -> float:
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
    return float(np.argmax(spectrum) * SAMPLE_RATE_HZ / len(sound))


def test_loudness_is_the_standards():
    # ITU-R BS.1770: a sine of 997 Hz at full scale in one channel measures -3.01 LUFS.
    assert loudness(sine(997)) == pytest.approx(-3.01, abs=0.05)
    assert loudness(sine(997, amplitude=0.1)) == pytest.approx(-23.01, abs=0.05)
    # The high-pass (second order at 38.1 Hz, Q 0.5: -10.4 dB here) and the shelf (+4 dB), less the 0.69 dB that
    # the standard's offset makes up for at 997 Hz.
    assert loudness(sine(25)) == pytest.approx(-3.01 - 10.4 - 0.69, abs=0.1)
    assert loudness(sine(8000)) == pytest.approx(-3.01 + 4.0 - 0.69, abs=0.1)


def test_pauses_do_not_count_for_loudness():
    with_pause = np.concatenate([sine(997, amplitude=0.1), np.zeros(4 * SAMPLE_RATE_HZ, np.float32)])
    assert loudness(with_pause) == pytest.approx(-23.01, abs=0.4)


def test_silence_has_no_loudness():
    assert loudness(np.zeros(SAMPLE_RATE_HZ, np.float32)) is None
    assert loudness(np.zeros(0, np.float32)) is None


def test_the_limiter_holds_peaks_and_leaves_the_rest_alone():
    quiet = sine(300, amplitude=0.5)
    assert limited(quiet) is quiet
    loud = quiet.copy()
    loud[30_000:30_050] *= 4
    held = limited(loud)
    assert np.abs(held).max() <= LIMIT + 1e-6
    assert np.array_equal(held[:29_000], loud[:29_000])


def test_chunks_of_one_speech_come_to_one_loudness():
    leveller = Leveller(-20.0)
    chunks = [leveller.levelled(sine(997, amplitude=amplitude)) for amplitude in (0.02, 0.02, 0.03)]
    assert loudness(chunks[0]) == pytest.approx(-20.0, abs=0.1)
    # A louder chunk stays louder, as in speech, but the whole settles.
    assert -20.0 < (loudness(chunks[2]) or 0.0) < -17.0


def test_a_warp_moves_all_frequencies_and_the_length():
    warped = warp_sound(sine(1000, seconds=1), 1.25)
    assert len(warped) == round(SAMPLE_RATE_HZ / 1.25)
    assert peak_hz(warped) == pytest.approx(1250, abs=3)
    assert np.abs(warped).max() == pytest.approx(1.0, abs=0.05)
    downwards = warp_sound(sine(1000, seconds=1), 0.8)
    assert peak_hz(downwards) == pytest.approx(800, abs=3)


def test_pitch_moves_by_the_map_and_the_length_stays():
    sound = voice(150)
    before = pitch_statistics(sound)
    assert before is not None
    moved = move_pitch(sound, from_hz=before.median_hz, to_hz=220.0, spread=1.5)
    after = pitch_statistics(moved)
    assert after is not None
    assert after.median_hz == pytest.approx(220, rel=0.03)
    assert after.spread_semitones == pytest.approx(1.5 * before.spread_semitones, rel=0.15)
    assert abs(len(moved) - len(sound)) < 10


def test_what_has_no_pitch_is_left_alone():
    noise = np.random.default_rng(1).normal(0, 0.05, SAMPLE_RATE_HZ).astype(np.float32)
    assert pitch_statistics(noise) is None
    assert pitch_statistics(np.zeros(100, np.float32)) is None
    short = np.zeros(500, np.float32)
    assert move_pitch(short, from_hz=100, to_hz=200, spread=1) is short


def test_a_filter_has_the_gain_that_was_asked_for():
    gain_db = np.where(CENTRES_HZ > 2000, -12.0, 6.0)
    low, high = (loudness(shape_spectrum(sine(hz, amplitude=0.1), gain_db)) for hz in (500, 5000))
    assert low is not None
    assert high is not None
    assert low - (loudness(sine(500, amplitude=0.1)) or 0) == pytest.approx(6.0, abs=0.2)
    assert high - (loudness(sine(5000, amplitude=0.1)) or 0) == pytest.approx(-12.0, abs=0.2)


def test_a_spectrum_moves_towards_the_references():
    """Whatever the reference, the moved voice's bands are nearer to it than before."""
    source = voice(140)
    reference = analyse_clip(wav_bytes(voice_like(pitch_hz=140, seconds=4, formants_hz=(450, 1900, 3300))))
    recipe = recipe_for(reference)
    assert recipe.gain_db is not None
    assert len(recipe.gain_db) == BANDS
    assert np.abs(recipe.gain_db).max() <= LARGEST_GAIN_DB
    gain_db = reference.spectrum_db - long_term_spectrum(source)
    recipe = Recipe(mix=recipe.mix, warp=1.0, from_hz=140, to_hz=140, spread=1.0, gain_db=gain_db)
    known = reference.bandwidth_hz > CENTRES_HZ

    def distance(sound: Sound) -> float:
        difference = (long_term_spectrum(sound) - reference.spectrum_db)[known]
        return float(np.std(difference))

    assert distance(apply_recipe(recipe, source)) < 0.5 * distance(source)


@pytest.mark.parametrize("at_least", [1, 7, 12_345, 240_001])
def test_a_fast_length_has_small_factors_and_is_hardly_longer(at_least: int):
    length = rest = fast_length(at_least)
    for factor in (2, 3, 5):
        while rest % factor == 0:
            rest //= factor
    assert rest == 1
    assert at_least <= length <= 1.1 * at_least + 1


def test_a_formant_is_found():
    found = third_formant_hz(
        np.asarray(voice_like(pitch_hz=120, seconds=4, formants_hz=(600, 1300, 2600, 3600)) / 32768)
    )
    assert found == pytest.approx(2600, rel=0.06)


def test_ends_are_trimmed_and_faded():
    silence = np.zeros(SAMPLE_RATE_HZ, np.float32)
    sound = np.concatenate([silence, sine(200, seconds=1, amplitude=0.5), silence])
    kept = trimmed(sound)
    assert 1.0 < len(kept) / SAMPLE_RATE_HZ < 1.1
    assert kept[0] == kept[-1] == 0.0
    assert len(trimmed(silence)) == 0


def test_a_clip_of_another_form_is_refused():
    with pytest.raises(EngineError):
        read_clip(b"RIFF")
    stereo = bytearray(wav_bytes(voice_like(pitch_hz=150, seconds=1)))
    stereo[22] = 2
    with pytest.raises(EngineError):
        read_clip(bytes(stereo))
