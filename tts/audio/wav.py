"""WAV files of 16-bit PCM: written, read back, joined. Standard library only."""

from __future__ import annotations

import io
import struct
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SAMPLE_BYTES: Final = 2
HEADER_BYTES: Final = 44

# The size of a stream whose end is not known yet; players read on until the connection closes.
UNKNOWN_SIZE: Final = 0xFFFFFFFF

_MAX_PCM_BYTES: Final = 0xFFFFFFFF - 36


@dataclass(frozen=True)
class WavAudio:
    """PCM of a WAV file: signed 16-bit little-endian, channels interleaved."""

    pcm: bytes
    sample_rate_hz: int
    channel_count: int

    @property
    def duration_ms(self) -> int:
        """Length in milliseconds, rounded."""
        return pcm_duration_ms(
            pcm_bytes=len(self.pcm), sample_rate_hz=self.sample_rate_hz, channel_count=self.channel_count
        )


def pcm_duration_ms(*, pcm_bytes: int, sample_rate_hz: int, channel_count: int = 1) -> int:
    """Return how long 16-bit PCM of that many bytes plays, in milliseconds, rounded."""
    return round(pcm_bytes * 1000 / (SAMPLE_BYTES * channel_count * sample_rate_hz))


def wav_header(
    *, pcm_bytes: int | None, sample_rate_hz: int, channel_count: int = 1, behind_bytes: int = 0
) -> bytes:
    """Return the 44 bytes that stand before 16-bit PCM; `pcm_bytes=None` for a stream of unknown length.

    `behind_bytes`: what stands behind the samples, such as a chunk with a label.

    Raises:
        ValueError: the size is odd for the frame or more than a WAV file can hold (4 GiB).
    """
    frame_bytes = SAMPLE_BYTES * channel_count
    if pcm_bytes is None:
        riff_size = data_size = UNKNOWN_SIZE
    else:
        if not 0 <= pcm_bytes <= _MAX_PCM_BYTES - behind_bytes or pcm_bytes % frame_bytes:
            raise ValueError(f"a WAV file cannot hold {pcm_bytes} bytes of {frame_bytes}-byte frames")
        riff_size, data_size = 36 + pcm_bytes + behind_bytes, pcm_bytes
    return b"RIFF%sWAVEfmt %sdata%s" % (
        struct.pack("<I", riff_size),
        struct.pack(
            "<IHHIIHH", 16, 1, channel_count, sample_rate_hz, sample_rate_hz * frame_bytes, frame_bytes, 16
        ),
        struct.pack("<I", data_size),
    )


def wav_file(pcm: bytes, *, sample_rate_hz: int, channel_count: int = 1, chunk: bytes = b"") -> bytes:
    """Return a complete WAV file of 16-bit PCM; `chunk` stands behind the samples."""
    header = wav_header(
        pcm_bytes=len(pcm),
        sample_rate_hz=sample_rate_hz,
        channel_count=channel_count,
        behind_bytes=len(chunk),
    )
    return header + pcm + chunk


def read_wav(data: bytes) -> WavAudio:
    """Read a 16-bit WAV file that this project wrote. Uploads go through `inspect_clip`, never through here.

    Raises:
        ValueError: it is not a complete 16-bit PCM WAV file.
    """
    try:
        with wave.open(io.BytesIO(data)) as file:
            pcm = file.readframes(file.getnframes())
            audio = WavAudio(pcm=pcm, sample_rate_hz=file.getframerate(), channel_count=file.getnchannels())
            complete = file.getsampwidth() == SAMPLE_BYTES and len(pcm) == (
                file.getnframes() * SAMPLE_BYTES * audio.channel_count
            )
    except (wave.Error, EOFError) as error:
        raise ValueError("this is no PCM WAV file") from error
    if not complete:
        raise ValueError("this WAV file is cut short or not 16-bit")
    return audio


def silence(*, duration_ms: int, sample_rate_hz: int) -> bytes:
    """Return mono 16-bit PCM of digital silence."""
    return bytes(SAMPLE_BYTES * round(duration_ms * sample_rate_hz / 1000))


def join_pcm(segments: Sequence[bytes], *, pauses_ms: Sequence[int], sample_rate_hz: int) -> bytes:
    """Return mono 16-bit PCM of all segments in order, each but the last followed by its pause.

    Raises:
        ValueError: a segment ends in the middle of a sample, or there is not one pause for each segment.
    """
    if any(len(segment) % SAMPLE_BYTES for segment in segments):
        raise ValueError("a segment ends in the middle of a sample")
    parts: list[bytes] = []
    for segment, pause_ms in zip(segments, pauses_ms, strict=True):
        parts += [segment, silence(duration_ms=pause_ms, sample_rate_hz=sample_rate_hz)]
    return b"".join(parts[:-1])
