"""Sample-rate conversion of one channel, by FFmpeg's resampler, in the thread that asks for it."""

from __future__ import annotations

from typing import Any, Final

import av
import av.error
import av.filter
import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]

_BLOCK_SAMPLES: Final = 65_536


class ChannelResampler:
    """Turns float samples of one channel into another rate; blocks in, blocks out, none lost at the joins.

    PyAV's own AudioResampler lets its filter graph start threads, which the decoding child is not allowed.
    """

    def __init__(self, *, source_rate_hz: int, target_rate_hz: int) -> None:
        self._source_rate_hz = source_rate_hz
        self._graph: Any = av.filter.Graph()
        self._graph.threads = 1
        source = self._graph.add_abuffer(sample_rate=source_rate_hz, format="fltp", layout="mono")
        resample = self._graph.add("aresample", str(target_rate_hz))
        shape = self._graph.add(
            "aformat", f"sample_fmts=fltp:sample_rates={target_rate_hz}:channel_layouts=mono"
        )
        self._graph.link_nodes(source, resample, shape, self._graph.add("abuffersink")).configure()

    def push(self, samples: Samples) -> list[Samples]:
        """Take the next samples and return the blocks that are ready."""
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples[np.newaxis, :]), "fltp", "mono")
        frame.sample_rate = self._source_rate_hz
        self._graph.push(frame)
        return self._pull()

    def finish(self) -> list[Samples]:
        """Return what is left; nothing may be pushed afterwards."""
        self._graph.push(None)
        return self._pull()

    def _pull(self) -> list[Samples]:
        blocks: list[Samples] = []
        while True:
            try:
                blocks.append(self._graph.pull().to_ndarray()[0].astype(np.float32))
            except (av.error.BlockingIOError, av.error.EOFError):
                return blocks


def join_blocks(blocks: list[Samples]) -> Samples:
    """Return the blocks of one channel as one array, which may be empty."""
    return np.concatenate(blocks) if blocks else np.zeros(0, np.float32)


def resample(samples: Samples, *, source_rate_hz: int, target_rate_hz: int) -> Samples:
    """Return one channel at another rate."""
    if source_rate_hz == target_rate_hz:
        return samples
    resampler = ChannelResampler(source_rate_hz=source_rate_hz, target_rate_hz=target_rate_hz)
    blocks: list[Samples] = []
    for start in range(0, len(samples), _BLOCK_SAMPLES):
        blocks += resampler.push(samples[start : start + _BLOCK_SAMPLES])
    blocks += resampler.finish()
    return join_blocks(blocks)
