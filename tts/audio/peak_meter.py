"""The outline of a waveform that is never there whole. Apart from `tts.audio.peaks`, for it needs numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tts.audio.peaks import PEAK_MAXIMUM


class PeakMeter:
    """`tts.audio.peaks.waveform_peaks` for audio that comes in pieces; every sample is looked at."""

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
