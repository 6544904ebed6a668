"""The outline of a waveform, small enough to draw as an SVG."""

from __future__ import annotations

import sys
from array import array
from typing import Final

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
