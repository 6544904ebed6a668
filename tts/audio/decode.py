"""Decoding of an untrusted file. Runs in the limited child process only.

Nothing that the file says about itself is believed: what counts are the samples that come out of the decoder,
and decoding stops as soon as there are too many of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import av
import av.error
import av.logging
import numpy as np
from numpy.typing import NDArray

from tts.audio.limits import (
    CANONICAL_SAMPLE_RATE_HZ,
    MAX_CHANNEL_COUNT,
    MAX_CLIP_PADDING_SECONDS,
    MAX_CLIP_SECONDS,
    MAX_NOT_SOUND_RATIO,
    MAX_SAMPLE_RATE_HZ,
    MIN_SAMPLE_RATE_HZ,
)
from tts.audio.resample import ChannelResampler, Samples, join_blocks

# What recorders, phones and browsers write. Everything else that FFmpeg can read (playlists, image sequences,
# game formats…) is attack surface. Telephone formats are in: people do have nothing better at times.
ALLOWED_DEMUXERS: Final = (
    "wav", "w64", "aiff", "caf", "flac", "mp3", "aac", "ogg", "matroska", "webm", "mov", "mp4",
    "m4a", "3gp", "amr",
)  # fmt: skip
ALLOWED_CODECS: Final = (
    "pcm_u8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_s32be",
    "pcm_f32le", "pcm_f32be", "pcm_f64le", "pcm_f64be", "pcm_mulaw", "pcm_alaw",
    "flac", "alac", "mp3", "mp3float", "aac", "opus", "vorbis", "amrnb", "amrwb",
)  # fmt: skip

# Full scale less the last step of a 9-bit recorder: what is cut off lands here, what is not rarely does.
_FULL_SCALE: Final = 0.998

# Float files made from integers without scaling reach 32,768. NaN, infinity and more than twice that are no
# sound: such samples become zero.
_MAX_MAGNITUDE: Final = 65_536.0

# Undecodable packets in a row after which the rest is given up.
_MAX_CONSECUTIVE_ERRORS: Final = 200

# Small frames are collected before they are converted: one Python call for many frames.
_BLOCK_SAMPLES: Final = 65_536


class Refused(Exception):
    """The clip is refused with one of the codes of `tts.audio.errors`. Plain: the child has no Django."""

    def __init__(self, code: str, **params: float | int | str) -> None:
        super().__init__(code)
        self.code = code
        self.params = params


@dataclass(frozen=True)
class DecodedClip:
    """All channels at 24 kHz as floats, full scale at 1.0, with what was noticed on the way.

    `duration_s` is counted in source samples. `full_scale_ratio` is per channel: the share of source samples
    at full scale.
    """

    channels: list[Samples]
    duration_s: float
    source_sample_rate_hz: int
    full_scale_ratio: list[float]
    damaged: bool


@dataclass
class _Channel:
    resampler: ChannelResampler
    blocks: list[Samples] = field(default_factory=list)
    full_scale_count: int = 0


def decode_clip(file: BinaryIO) -> DecodedClip:
    """Decode the first audio track of an open, seekable file.

    Raises:
        Refused: clip_unreadable, clip_no_audio, clip_format_not_supported, clip_too_many_channels,
            clip_sample_rate_not_supported, clip_too_long.
    """
    av.logging.set_level(None)
    try:
        # A file object instead of a name: no protocol of FFmpeg is involved, so nothing can lead elsewhere.
        container: Any = av.open(
            file,
            metadata_errors="ignore",  # ID3 tags in GBK are common and none of our business
            options={
                "format_whitelist": ",".join(ALLOWED_DEMUXERS),
                "codec_whitelist": ",".join(ALLOWED_CODECS),
                "protocol_whitelist": "none",
            },
        )
    except (av.error.FFmpegError, ValueError, OSError) as error:
        raise Refused("clip_unreadable") from error
    with container:
        return _Decoding(_audio_stream(container)).run(container)


def _audio_stream(container: Any) -> Any:
    """Return the first audio track that may be decoded; pictures and video beside it are never touched."""
    streams = list(container.streams.audio)
    if not streams:
        raise Refused("clip_no_audio")
    for stream in streams:
        context = stream.codec_context
        if context is not None and context.codec.name in ALLOWED_CODECS:
            context.thread_type = "NONE"
            context.thread_count = 1
            context.options = {"codec_whitelist": ",".join(ALLOWED_CODECS)}
            return stream
    raise Refused("clip_format_not_supported")


class _Decoding:
    """One pass over a track, collecting its channels and counting what it has seen."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        # Float files hold more than full scale without being clipped; decoders of lossy formats overshoot
        # when they are.
        self._full_scale_end = 1.001 if stream.codec_context.codec.name.startswith("pcm_f") else np.inf
        self._channels: list[_Channel] = []
        self._pending: list[Samples] = []
        self._pending_count = 0
        self._rate_hz = 0
        self._sample_count = 0
        self._not_sound_count = 0
        self._error_count = 0

    def run(self, container: Any) -> DecodedClip:
        for frame in self._frames(container):
            self._take(frame)
        self._convert_pending()
        if not self._sample_count:
            raise Refused("clip_unreadable")
        if self._not_sound_count > MAX_NOT_SOUND_RATIO * self._sample_count * len(self._channels):
            raise Refused("clip_unreadable")
        for channel in self._channels:
            channel.blocks += channel.resampler.finish()
        return DecodedClip(
            channels=[join_blocks(channel.blocks) for channel in self._channels],
            duration_s=self._sample_count / self._rate_hz,
            source_sample_rate_hz=self._rate_hz,
            full_scale_ratio=[channel.full_scale_count / self._sample_count for channel in self._channels],
            damaged=bool(self._error_count or self._not_sound_count),
        )

    def _frames(self, container: Any) -> Iterator[Any]:
        """Yield decoded frames;

        skip packets that do not decode, stop where the file no longer makes sense.
        """
        packets = container.demux(self._stream)
        consecutive_errors = 0
        while consecutive_errors < _MAX_CONSECUTIVE_ERRORS:
            try:
                packet = next(packets)
            except StopIteration:
                return
            except (av.error.FFmpegError, ValueError, OSError):
                # OSError: the file sends the demuxer to a place that no file has.
                self._error_count += 1
                return
            try:
                frames = packet.decode()
            except av.error.EOFError:
                return
            except (av.error.FFmpegError, ValueError):
                self._error_count += 1
                consecutive_errors += 1
                continue
            consecutive_errors = 0
            yield from frames

    def _take(self, frame: Any) -> None:
        rate_hz, channel_count = int(frame.sample_rate), int(frame.layout.nb_channels)
        if not self._channels:
            self._start(rate_hz=rate_hz, channel_count=channel_count)
        elif channel_count != len(self._channels) or rate_hz != self._rate_hz:
            # Joined files of different kinds: what comes before the join is kept.
            self._error_count += 1
            return
        self._sample_count += frame.samples
        if self._sample_count > (MAX_CLIP_SECONDS + MAX_CLIP_PADDING_SECONDS) * rate_hz:
            raise Refused("clip_too_long")
        self._pending.append(_float_channels(frame, channel_count))
        self._pending_count += frame.samples
        if self._pending_count >= _BLOCK_SAMPLES:
            self._convert_pending()

    def _start(self, *, rate_hz: int, channel_count: int) -> None:
        if not 1 <= channel_count <= MAX_CHANNEL_COUNT:
            raise Refused("clip_too_many_channels", channel_count=channel_count)
        if not MIN_SAMPLE_RATE_HZ <= rate_hz <= MAX_SAMPLE_RATE_HZ:
            raise Refused("clip_sample_rate_not_supported", sample_rate_hz=rate_hz)
        self._rate_hz = rate_hz
        self._channels = [
            _Channel(ChannelResampler(source_rate_hz=rate_hz, target_rate_hz=CANONICAL_SAMPLE_RATE_HZ))
            for _ in range(channel_count)
        ]

    def _convert_pending(self) -> None:
        if not self._pending:
            return
        block = np.concatenate(self._pending, axis=1)
        self._pending, self._pending_count = [], 0
        magnitude = np.abs(block)
        sound = magnitude <= _MAX_MAGNITUDE  # false for NaN too
        if not sound.all():
            self._not_sound_count += int(block.size - sound.sum())
            block[~sound] = magnitude[~sound] = 0.0
        full_scale = (magnitude >= _FULL_SCALE) & (magnitude <= self._full_scale_end)
        for channel, samples, count in zip(self._channels, block, full_scale.sum(axis=1), strict=True):
            channel.full_scale_count += int(count)
            channel.blocks += channel.resampler.push(samples)


def _float_channels(frame: Any, channel_count: int) -> Samples:
    """Return a frame as float32 of shape (channels, samples), integers scaled so that full scale is 1.0."""
    values: NDArray[Any] = frame.to_ndarray()
    if not frame.format.is_planar:
        values = values.reshape(-1, channel_count).T
    if values.dtype == np.uint8:
        return (values.astype(np.float32) - 128.0) / 128.0
    if values.dtype.kind == "i":
        return values.astype(np.float32) / np.float32(2.0 ** (8 * values.dtype.itemsize - 1))
    with np.errstate(over="ignore"):
        return values.astype(np.float32)
