"""Segments joined into one WAV file, piece by piece: an hour of speech is never in memory whole."""

from __future__ import annotations

import itertools
import wave
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Final, Protocol

from tts.audio.aigc import label_chunk
from tts.audio.peak_meter import PeakMeter
from tts.audio.wav import SAMPLE_BYTES, silence, wav_header

_BLOCK_SAMPLES: Final = 65_536


class Opener(Protocol):
    """Opens one segment's WAV file."""

    def __call__(self) -> AbstractContextManager[BinaryIO]: ...


def write_joined(
    target: BinaryIO, openers: Sequence[Opener], *, pauses_ms: Sequence[int], label: str, peak_count: int
) -> list[int]:
    """Write all segments in order, each but the last followed by its pause, and the label as the last chunk.

    Every file is mono 16-bit PCM of one rate. Returns the waveform's peaks. Writes forward only.

    Raises:
        ValueError: the files differ in kind, or there is not one pause for each; and what opening a file raises.
    """
    if len(openers) != len(pauses_ms):
        raise ValueError("there is not one pause for each segment")
    lengths = [_length(opener) for opener in openers]
    rates = {rate for _, rate in lengths}
    if len(rates) != 1:
        raise ValueError("the segments differ in their sample rate")
    rate_hz = rates.pop()
    pauses_ms = [*pauses_ms[:-1], 0]

    # Made one after the other: those of a book are hundreds of megabytes together.
    def pauses() -> Iterator[bytes]:
        return (silence(duration_ms=pause_ms, sample_rate_hz=rate_hz) for pause_ms in pauses_ms)

    sample_count = sum(count for count, _ in lengths) + sum(map(len, pauses())) // SAMPLE_BYTES
    chunk = label_chunk(label)
    target.write(
        wav_header(pcm_bytes=sample_count * SAMPLE_BYTES, sample_rate_hz=rate_hz, behind_bytes=len(chunk))
    )
    meter = PeakMeter(sample_count=sample_count, count=peak_count)
    for opener, pause in zip(openers, pauses(), strict=True):
        for pcm in itertools.chain(_blocks(opener), [pause]):
            target.write(pcm)
            meter.push(pcm)
    target.write(chunk)
    return meter.peaks()


def _length(opener: Opener) -> tuple[int, int]:
    with opener() as file, wave.open(file) as opened:
        if opened.getnchannels() != 1 or opened.getsampwidth() != SAMPLE_BYTES:
            raise ValueError("a segment is not mono 16-bit PCM")
        return opened.getnframes(), opened.getframerate()


def _blocks(opener: Opener) -> Iterator[bytes]:
    with opener() as file, wave.open(file) as opened:
        while pcm := opened.readframes(_BLOCK_SAMPLES):
            yield pcm
