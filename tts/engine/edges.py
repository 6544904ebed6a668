"""The ends of a sound: silence taken off, and no step left at either, so that sounds can be put side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE_HZ = 24_000
FRAME = 120  # 5 ms
SILENCE_DB = -46.0  # below the loudest frame of the sound
EDGE_MS = 25  # kept around the speech
FADE_MS = 8

Sound = NDArray[np.float32]


def trimmed(sound: Sound) -> Sound:
    """The sound without silent ends, faded in and out; empty where all of it is silent."""
    count = len(sound) // FRAME
    if count == 0:
        return sound
    energy = np.square(sound[: count * FRAME], dtype=np.float64).reshape(count, FRAME).mean(axis=1)
    if energy.max() <= 0:
        return sound[:0]
    loud = np.flatnonzero(energy > energy.max() * 10 ** (SILENCE_DB / 10))
    edge = EDGE_MS * SAMPLE_RATE_HZ // 1000
    return faded(sound[max(0, int(loud[0]) * FRAME - edge) : (int(loud[-1]) + 1) * FRAME + edge])


def faded(sound: Sound, *, in_ms: int = FADE_MS, out_ms: int = FADE_MS) -> Sound:
    """A copy that begins and ends at nothing."""
    kept = np.array(sound, np.float32)
    fade_in = min(in_ms * SAMPLE_RATE_HZ // 1000, len(kept) // 2)
    fade_out = min(out_ms * SAMPLE_RATE_HZ // 1000, len(kept) // 2)
    kept[:fade_in] *= np.linspace(0, 1, fade_in, dtype=np.float32)
    kept[len(kept) - fade_out :] *= np.linspace(0, 1, fade_out, dtype=np.float32)[::-1]
    return kept


def pcm_of(sound: Sound, *, pause_ms: int = 0) -> bytes:
    """Signed 16-bit little-endian, with so much silence after it."""
    pause = np.zeros(pause_ms * SAMPLE_RATE_HZ // 1000, np.float32)
    whole = np.concatenate([sound, pause])
    samples = np.round(np.clip(np.nan_to_num(whole), -1, 1) * 32767).astype("<i2")
    return bytes(samples.tobytes())
