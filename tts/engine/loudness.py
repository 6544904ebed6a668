"""Loudness by ITU-R BS.1770-4 for one channel, and a limiter.

torchaudio has the former too; importing torch takes longer than everything else that the engine does to start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tts.engine.spectrum import SAMPLE_RATE_HZ, bin_frequencies_hz, fast_length

BLOCK_S, STEP_S = 0.4, 0.1
ABSOLUTE_GATE_LUFS, RELATIVE_GATE_LU = -70.0, -10.0
OFFSET_LUFS = -0.691

LIMIT = 0.89  # -1 dBFS
LIMITER_S = 0.004

Sound = NDArray[np.float32]


def k_weighting(frequencies_hz: NDArray[np.float64]) -> NDArray[np.float64]:
    """Power response of the standard's two filters (a high shelf for the head, a high-pass) at these frequencies.

    Their analogue prototypes, as in de Man's "Evaluation of implementations of the EBU R128 loudness measurement".
    """
    s = 2j * np.pi * np.maximum(frequencies_hz, 1e-3)
    shelf_w, shelf_q, high_gain = (
        2 * np.pi * 1681.974450955533,
        0.7071752369554196,
        10 ** (3.999843853973347 / 20),
    )
    band_gain = high_gain**0.4996667741545416
    shelf = (high_gain * s**2 + band_gain * shelf_w / shelf_q * s + shelf_w**2) / (
        s**2 + shelf_w / shelf_q * s + shelf_w**2
    )
    pass_w, pass_q = 2 * np.pi * 38.13547087602444, 0.5003270373238773
    high_pass = s**2 / (s**2 + pass_w / pass_q * s + pass_w**2)
    return np.asarray(np.abs(shelf * high_pass) ** 2)


# The filters change slowly over frequency: a straight line between two of these points is off by less than 0.01 dB.
_GRID_HZ = np.concatenate([np.arange(0.0, 300.0, 1.0), np.arange(300.0, 12_001.0, 10.0)])
_GRID_GAINS = np.sqrt(k_weighting(_GRID_HZ))


def block_powers(sound: Sound) -> NDArray[np.float64]:
    """The K-weighted power of each 0.4 s block; a shorter sound is one block."""
    size, step = round(BLOCK_S * SAMPLE_RATE_HZ), round(STEP_S * SAMPLE_RATE_HZ)
    if len(sound) == 0:
        return np.zeros(0)
    size = min(size, len(sound))
    padded = fast_length(len(sound) + SAMPLE_RATE_HZ // 10)
    spectrum = np.fft.rfft(sound, padded)
    spectrum *= np.interp(bin_frequencies_hz(padded), _GRID_HZ, _GRID_GAINS)
    squares = np.concatenate([[0.0], np.cumsum(np.fft.irfft(spectrum, padded)[: len(sound)] ** 2)])
    starts = np.arange(0, len(sound) - size + 1, step)
    return np.asarray((squares[starts + size] - squares[starts]) / size)


def loudness_of(powers: NDArray[np.float64]) -> float | None:
    """The gated loudness of blocks, in LUFS; None for silence."""
    levels = OFFSET_LUFS + 10 * np.log10(powers + 1e-15)
    powers = powers[levels > ABSOLUTE_GATE_LUFS]
    if len(powers) == 0:
        return None
    gate = OFFSET_LUFS + 10 * np.log10(powers.mean()) + RELATIVE_GATE_LU
    louder = powers[OFFSET_LUFS + 10 * np.log10(powers) > gate]
    return float(OFFSET_LUFS + 10 * np.log10(louder.mean()))


def loudness(sound: Sound) -> float | None:
    """The integrated loudness of a sound in LUFS; None for silence."""
    return loudness_of(block_powers(sound))


def limited(sound: Sound) -> Sound:
    """The sound with peaks held at -1 dBFS by a gain that moves smoothly, so that nothing clips."""
    peaks = np.abs(sound)
    if len(sound) == 0 or peaks.max() <= LIMIT:
        return sound
    width = round(LIMITER_S * SAMPLE_RATE_HZ)
    needed = np.minimum(1.0, LIMIT / np.maximum(peaks, 1e-9))
    held = np.lib.stride_tricks.sliding_window_view(
        np.pad(needed, width, constant_values=1.0), 2 * width + 1
    ).min(axis=1)
    kernel = np.hanning(width + 2)[1:-1]
    smooth = np.convolve(np.pad(held, width // 2, mode="edge"), kernel / kernel.sum(), mode="same")
    smooth = smooth[width // 2 : width // 2 + len(sound)]
    return np.asarray(np.clip(sound * smooth, -LIMIT, LIMIT), np.float32)


class Leveller:
    """Brings the chunks of one speech to one loudness, without knowing the later ones.

    The gain follows from all blocks until now, so that it settles; it changes between chunks only, where it is
    silent.
    """

    def __init__(self, target_lufs: float) -> None:
        self._target_lufs = target_lufs
        self._powers: list[NDArray[np.float64]] = []

    def levelled(self, sound: Sound) -> Sound:
        self._powers.append(block_powers(sound))
        measured = loudness_of(np.concatenate(self._powers))
        if measured is None:
            return sound
        return limited(np.asarray(sound * 10 ** ((self._target_lufs - measured) / 20), np.float32))
