"""Chains of FFmpeg's audio filters over a stream of samples: nothing is ever held whole."""

from __future__ import annotations

import math
import wave
from collections.abc import Iterable, Iterator
from typing import Any, Final

import av
import av.error
import av.filter
import numpy as np
from numpy.typing import NDArray

from tts.audio.formats import TRUE_PEAK_DBTP

Block = NDArray[np.int16]
Filter = tuple[str, str]

BLOCK_SAMPLES: Final = 32_768
# Peaks between the samples show at four times the rate (BS.1770-4, annex 2).
OVERSAMPLING: Final = 4
# The limiter looks at samples of the higher rate, and the way back adds a little ripple.
LIMITER_MARGIN_DB: Final = 0.3


def wav_blocks(path: str) -> Iterator[Block]:
    """The samples of a mono 16-bit WAV file that this project wrote, block by block."""
    with wave.open(path) as file:
        while frames := file.readframes(BLOCK_SAMPLES):
            yield np.frombuffer(frames, "<i2").astype(np.int16)


def sample_rate_of(path: str) -> int:
    with wave.open(path) as file:
        return int(file.getframerate())


def filtered(
    blocks: Iterable[Block], filters: list[Filter], *, rate_hz: int, out_rate_hz: int, sample_format: str
) -> Iterator[Any]:
    """The blocks through the filters, as frames of PyAV: mono, at `out_rate_hz`, in this sample format."""
    graph: Any = av.filter.Graph()
    graph.threads = 1
    chain = [graph.add_abuffer(sample_rate=rate_hz, format="s16", layout="mono")]
    chain += [graph.add(name, arguments) for name, arguments in filters]
    shape = f"sample_fmts={sample_format}:sample_rates={out_rate_hz}:channel_layouts=mono"
    graph.link_nodes(*chain, graph.add("aformat", shape), graph.add("abuffersink")).configure()
    for block in blocks:
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(block[np.newaxis, :]), "s16", "mono")
        frame.sample_rate = rate_hz
        graph.push(frame)
        yield from _ready(graph)
    graph.push(None)
    yield from _ready(graph)


def _ready(graph: Any) -> Iterator[Any]:
    while True:
        try:
            yield graph.pull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return


def to_rate(rate_hz: int, out_rate_hz: int) -> list[Filter]:
    return [("aresample", str(out_rate_hz))] if rate_hz != out_rate_hz else []


def loudness_of(
    blocks: Iterable[Block], filters: list[Filter], *, rate_hz: int, out_rate_hz: int
) -> tuple[float, float] | None:
    """Integrated loudness in LUFS and true peak in dBTP (EBU R 128) of what comes out; None for silence, or less
    than the 0.4 s that loudness is measured over."""
    meter: list[Filter] = [*filters, ("ebur128", "metadata=1:peak=true")]
    metadata: dict[str, str] = {}
    for frame in filtered(blocks, meter, rate_hz=rate_hz, out_rate_hz=out_rate_hz, sample_format="flt"):
        metadata = dict(frame.metadata) or metadata
    loudness = float(metadata.get("lavfi.r128.I", "-70"))
    peak = float(metadata.get("lavfi.r128.true_peak", "0"))
    if loudness <= -69.9 or peak <= 0:
        return None
    return loudness, 20 * math.log10(peak)


def gain_filters(gain_db: float, *, peak_dbtp: float, rate_hz: int) -> list[Filter]:
    """A gain, and a limiter behind it where the gain would lift peaks over TRUE_PEAK_DBTP."""
    if not gain_db:
        return []
    filters: list[Filter] = [("volume", f"{gain_db:.3f}dB:precision=float")]
    if peak_dbtp + gain_db <= TRUE_PEAK_DBTP:
        return filters
    limit = 10 ** ((TRUE_PEAK_DBTP - LIMITER_MARGIN_DB) / 20)
    return [
        *filters,
        ("aresample", str(OVERSAMPLING * rate_hz)),
        ("alimiter", f"limit={limit:.4f}:attack=4:release=60:level=0:latency=1"),
        ("aresample", str(rate_hz)),
    ]
