"""Long-term spectra in bands, and filters made from them. Levels in decibels, frequencies in hertz."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE_HZ = 24_000
FRAME = 1024
HOP = 512
BANDS = 56
LOWEST_HZ, HIGHEST_HZ = 60.0, 11_900.0
# Frames this far below the loud ones are pauses and noise, and say nothing about the speaker.
ACTIVE_DB = 30.0

Array = NDArray[np.float64]


def bin_frequencies_hz(length: int) -> Array:
    """The frequencies of a real Fourier transform of that many samples."""
    return np.asarray(np.fft.rfftfreq(length, 1 / SAMPLE_RATE_HZ), np.float64)


def fast_length(at_least: int) -> int:
    """A length that a Fourier transform takes quickly: no prime factor above 5."""
    best = 1 << max(1, at_least - 1).bit_length()
    fives = 1
    while fives < best:
        threes = fives
        while threes < best:
            factor = -(-at_least // threes)
            best = min(best, threes << max(0, factor - 1).bit_length())
            threes *= 3
        fives *= 5
    return best


def to_mel(frequency_hz: Array) -> Array:
    """Frequencies on the mel scale, on which bands of equal width sound equally wide."""
    return np.asarray(2595 * np.log10(1 + frequency_hz / 700))


def from_mel(mel: Array) -> Array:
    return np.asarray(700 * (10 ** (mel / 2595) - 1))


_LOWEST_MEL, _HIGHEST_MEL = (float(mel) for mel in to_mel(np.array([LOWEST_HZ, HIGHEST_HZ])))
_EDGES_HZ = from_mel(np.linspace(_LOWEST_MEL, _HIGHEST_MEL, BANDS + 2))
CENTRES_HZ: Array = _EDGES_HZ[1:-1]
BINS_HZ: Array = np.arange(FRAME // 2 + 1) * SAMPLE_RATE_HZ / FRAME
_WINDOW = np.hanning(FRAME + 1)[:-1]


def _band_weights() -> Array:
    low, centre, high = (_EDGES_HZ[start : start + BANDS, None] for start in range(3))
    weights = np.minimum((BINS_HZ - low) / (centre - low), (high - BINS_HZ) / (high - centre)).clip(0)
    # The lowest bands are narrower than a bin.
    for band in np.flatnonzero(weights.sum(axis=1) == 0):
        weights[band, np.argmin(np.abs(BINS_HZ - CENTRES_HZ[band]))] = 1
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


_BAND_WEIGHTS = _band_weights()


def frame_powers(sound: NDArray[np.floating]) -> Array:
    """The power spectrum of each frame: (frames, FRAME // 2 + 1)."""
    padded = np.pad(sound, (0, max(0, FRAME - len(sound)))).astype(np.float64)
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    return np.asarray(np.abs(np.fft.rfft(frames * _WINDOW, axis=1)) ** 2)


def active_frames(powers: Array) -> NDArray[np.bool_]:
    """Which frames are speech and no pause."""
    levels = 10 * np.log10(powers.sum(axis=1) + 1e-12)
    return np.asarray(levels > np.percentile(levels, 95) - ACTIVE_DB)


def long_term_spectrum(sound: NDArray[np.floating]) -> Array:
    """The level of each band over the frames with speech."""
    powers = frame_powers(sound)
    return np.asarray(10 * np.log10(_BAND_WEIGHTS @ powers[active_frames(powers)].mean(axis=0) + 1e-12))
