"""The outline of a waveform, small enough to draw as an SVG."""

from __future__ import annotations

import sys
from array import array
from typing import Final

import numpy as np
from numpy.typing import NDArray

PEAK_COUNT: Final = 120  # one bar per 3 px at the width of a phone
PEAK_MAXIMUM: Final = 100

# Of long audio only every n-th sample is looked at: a bar needs its height, not every sample.
_MAX_SAMPLES_PER_PEAK: Final = 4_000


def waveform_peaks(pcm: bytes, *, count: int = PEAK_COUNT) -> list[int]:
    """Return the height of `count` bars from 0 to 100, for mono signed 16-bit little-endian PCM.

    The loudest bar is 100 whatever the level of the audio; silence gives zeros. Shorter audio than `count`
    samples gives one bar per sample.
    """
    samples = array("h")
    samples.frombytes(pcm[: len(pcm) // 2 * 2])
    if sys.byteorder == "big":
        samples.byteswap()
    count = min(count, len(samples))
    heights = []
    for index in range(count):
        start, stop = index * len(samples) // count, (index + 1) * len(samples) // count
        part = samples[start : stop : 1 + (stop - start) // _MAX_SAMPLES_PER_PEAK]
        heights.append(max(max(part), -min(part)))
    loudest = max(heights, default=0)
    if not loudest:
        return [0] * count
    return [round(height * PEAK_MAXIMUM / loudest) for height in heights]


class PeakMeter:
    """The same for audio that comes in pieces and is never there whole; every sample is looked at."""

    def __init__(self, *, sample_count: int, count: int) -> None:
        self._count = min(count, sample_count)
        self._starts = np.arange(self._count, dtype=np.int64) * sample_count // max(1, self._count)
        self._heights: NDArray[np.int32] = np.zeros(self._count, np.int32)
        self._at = 0

    def push(self, pcm: bytes) -> None:
        """Take the next samples (16-bit PCM, whole ones)."""
        samples = np.abs(np.frombuffer(pcm, "<i2").astype(np.int32))
        if not len(samples) or not self._count:
            return
        first = int(np.searchsorted(self._starts, self._at, side="right")) - 1
        last = int(np.searchsorted(self._starts, self._at + len(samples), side="left"))
        bounds = np.maximum(self._starts[first:last] - self._at, 0)
        highest = np.maximum.reduceat(samples, bounds)
        np.maximum(self._heights[first:last], highest, out=self._heights[first:last])
        self._at += len(samples)

    def peaks(self) -> list[int]:
        """Heights from 0 to 100, the loudest 100; zeros for silence."""
        loudest = int(self._heights.max(initial=0))
        if not loudest:
            return [0] * self._count
        return [round(int(height) * PEAK_MAXIMUM / loudest) for height in self._heights]
