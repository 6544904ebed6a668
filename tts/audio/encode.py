"""Speech written as a file of one format, with its label. Runs in the rendering child: it loads codecs."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, BinaryIO, Final

import av
import av.error
import numpy as np

from tts.audio import explicit
from tts.audio.aigc import KEY, LabelMissing, label_chunk, read_chunk_label
from tts.audio.filters import (
    Block,
    Filter,
    filtered,
    gain_filters,
    loudness_of,
    sample_rate_of,
    to_rate,
    wav_blocks,
)
from tts.audio.formats import FORMATS, AudioFormat, codec_options
from tts.audio.rendering import RenderSpec

# Passes over the gain: the limiter takes a little loudness away, which the second makes up for.
GAIN_PASSES: Final = 3
CLOSE_ENOUGH_LU: Final = 0.1

_SAMPLE_FORMATS: Final = {"libmp3lame": "fltp", "libopus": "flt", "aac": "fltp"}
# MP4 keeps a key of its own only when told to; without it the label is lost in silence.
_MUXER_OPTIONS: Final = {"ipod": {"movflags": "use_metadata_tags"}}
# A WAV file that grows beyond 4 GiB cannot say so: 12 hours at 48 kHz.
_MAX_RIFF_BYTES: Final = 0xFFFFFFFF
_MULAW_TAG: Final = 7


class TooLong(Exception):
    """A WAV file cannot hold so much."""


def render(spec: RenderSpec) -> None:
    """Write the target file. Its label has been read back when this returns.

    Raises LabelMissing, TooLong, and what the codecs raise.
    """
    audio_format = FORMATS[spec.format]
    rate_hz = sample_rate_of(spec.source)
    filters = _levelled(spec, rate_hz)
    frames = filtered(
        _blocks(spec, rate_hz),
        filters,
        rate_hz=rate_hz,
        out_rate_hz=spec.sample_rate_hz,
        sample_format=_SAMPLE_FORMATS.get(audio_format.codec, "s16"),
    )
    if audio_format.container == "raw":
        _write_raw(spec.target, frames)
    elif audio_format.container == "riff":
        _write_riff(spec, audio_format, frames)
    else:
        with av.open(
            spec.target,
            "w",
            format=audio_format.container,
            options=_MUXER_OPTIONS.get(audio_format.container, {}),
        ) as container:
            write_frames(container, audio_format, spec.sample_rate_hz, spec.label, frames)
    if audio_format.has_label and read_label(spec.target, audio_format) != spec.label:
        raise LabelMissing(audio_format.code)


def read_label(path: str, audio_format: AudioFormat) -> str | None:
    """The implicit label of a file of one of our own formats; None where it has none, or cannot be read."""
    if audio_format.container == "riff":
        with open(path, "rb") as riff:
            return read_chunk_label(riff)
    try:
        with av.open(path) as opened:
            # Ogg has its comments at the stream, the others at the file.
            found: dict[str, Any] = {**opened.metadata, **opened.streams.audio[0].metadata}
    except (av.error.FFmpegError, IndexError):
        return None
    return next((str(value) for name, value in found.items() if name.upper() == KEY), None)


def _blocks(spec: RenderSpec, rate_hz: int) -> Iterator[Block]:
    """The speech, with the label that is heard where one is wanted."""
    speech = wav_blocks(spec.source)
    if spec.explicit_label == explicit.NONE:
        return speech
    label = iter([explicit.tone_label(rate_hz)])
    if spec.explicit_label == explicit.SPOKEN and spec.spoken_label:
        if sample_rate_of(spec.spoken_label) != rate_hz:
            raise ValueError("the spoken label has another sample rate")
        label = wav_blocks(spec.spoken_label)
    return explicit.with_label(speech, label, at=spec.label_position, sample_rate_hz=rate_hz)


def _levelled(spec: RenderSpec, rate_hz: int) -> list[Filter]:
    """The filters up to the encoder: to the wanted rate, then to the wanted loudness, measured as it is heard there.

    Speech alone is measured, not its label. Silence is left as it is.
    """
    resampled = to_rate(rate_hz, spec.sample_rate_hz)
    if spec.loudness_lufs is None:
        return resampled

    def measured(filters: list[Filter]) -> tuple[float, float] | None:
        return loudness_of(wav_blocks(spec.source), filters, rate_hz=rate_hz, out_rate_hz=spec.sample_rate_hz)

    found = measured(resampled)
    if found is None:
        return resampled
    loudness, peak_dbtp = found
    gain_db = spec.loudness_lufs - loudness
    for _ in range(GAIN_PASSES - 1):
        levels = gain_filters(gain_db, peak_dbtp=peak_dbtp, rate_hz=spec.sample_rate_hz)
        if len(levels) < 2:
            break
        limited = measured([*resampled, *levels])
        if limited is None or abs(short := spec.loudness_lufs - limited[0]) <= CLOSE_ENOUGH_LU:
            break
        gain_db += short
    return [*resampled, *gain_filters(gain_db, peak_dbtp=peak_dbtp, rate_hz=spec.sample_rate_hz)]


def write_frames(
    container: Any, audio_format: AudioFormat, sample_rate_hz: int, label: str, frames: Iterable[Any]
) -> None:
    """Encode frames into an open container whose header says the label."""
    for _ in encoding(container, audio_format, sample_rate_hz, label, frames):
        pass


def encoding(
    container: Any, audio_format: AudioFormat, sample_rate_hz: int, label: str, frames: Iterable[Any]
) -> Iterator[None]:
    """The same step by step: it rests after each frame, so that a stream can be sent meanwhile."""
    container.metadata[KEY] = label
    options = codec_options(audio_format, sample_rate_hz=sample_rate_hz)
    stream = container.add_stream(audio_format.codec, rate=sample_rate_hz, layout="mono", options=options)
    stream.codec_context.thread_count = 1
    at = 0
    for frame in frames:
        frame.pts, frame.time_base = at, Fraction(1, sample_rate_hz)
        at += frame.samples
        container.mux(stream.encode(frame))
        yield
    container.mux(stream.encode(None))


def _write_raw(target: str, frames: Iterable[Any]) -> None:
    with open(target, "wb") as file:
        for frame in frames:
            file.write(_pcm(frame))


def _pcm(frame: Any) -> bytes:
    samples: Any = frame.to_ndarray()
    return bytes(samples.astype("<i2").tobytes())


def _write_riff(spec: RenderSpec, audio_format: AudioFormat, frames: Iterable[Any]) -> None:
    """A WAV file: header, samples, and the label as the last chunk. Sizes are filled in at the end."""
    encode = _mulaw_encoder(spec.sample_rate_hz) if audio_format.codec == "pcm_mulaw" else _pcm
    chunk = label_chunk(spec.label)
    with open(spec.target, "wb") as file:
        data_at = _riff_header(file, audio_format, spec.sample_rate_hz, sample_count=0, riff_bytes=0)
        for frame in frames:
            file.write(encode(frame))
        data_bytes = file.tell() - data_at
        if data_bytes + data_at + len(chunk) >= _MAX_RIFF_BYTES:
            raise TooLong
        file.write(bytes(data_bytes % 2) + chunk)
        riff_bytes = file.tell() - 8
        file.seek(0)
        samples = data_bytes if audio_format.codec == "pcm_mulaw" else data_bytes // 2
        _riff_header(file, audio_format, spec.sample_rate_hz, sample_count=samples, riff_bytes=riff_bytes)


def _riff_header(
    file: BinaryIO, audio_format: AudioFormat, rate_hz: int, *, sample_count: int, riff_bytes: int
) -> int:
    """Write what stands before the samples; returns where they begin."""
    if audio_format.codec == "pcm_mulaw":
        # Other codecs than plain PCM also say their number of samples, in a chunk "fact".
        form = struct.pack("<IHHIIHHH", 18, _MULAW_TAG, 1, rate_hz, rate_hz, 1, 8, 0)
        fact = struct.pack("<4sII", b"fact", 4, sample_count)
        data_bytes = sample_count
    else:
        form = struct.pack("<IHHIIHH", 16, 1, 1, rate_hz, 2 * rate_hz, 2, 16)
        fact, data_bytes = b"", 2 * sample_count
    file.write(
        b"RIFF" + struct.pack("<I", riff_bytes) + b"WAVEfmt " + form + fact + b"data"
        + struct.pack("<I", data_bytes)
    )  # fmt: skip
    return file.tell()


def _mulaw_encoder(rate_hz: int) -> Any:
    context: Any = av.CodecContext.create("pcm_mulaw", "w")
    context.sample_rate, context.layout, context.format = rate_hz, "mono", "s16"
    context.time_base = Fraction(1, rate_hz)

    def encode(frame: Any) -> bytes:
        return b"".join(bytes(packet) for packet in context.encode(frame))

    return encode


def as_blocks(chunks: Iterable[bytes]) -> Iterator[Block]:
    """Chunks of 16-bit PCM as blocks of samples; a chunk may end inside a sample."""
    rest = b""
    for chunk in chunks:
        pcm = rest + chunk
        whole = len(pcm) // 2 * 2
        rest = pcm[whole:]
        if whole:
            yield np.frombuffer(pcm[:whole], "<i2").astype(np.int16)
