"""Recordings made at test time: real speech from espeak-ng, and every odd file that it can be wrapped in."""

from __future__ import annotations

import ctypes
import functools
import io
import struct
import wave
from typing import Any

import av
import espeakng_loader
import numpy as np
from av.stream import Disposition
from numpy.typing import NDArray

from tts.audio.resample import resample

Samples = NDArray[np.float32]

SPEECH_RATE_HZ = 48_000
_SYNCHRONOUS_OUTPUT = 2
_UTF8 = 1
_TEXT = (
    "The quick brown fox jumps over the lazy dog, while seven sisters wash their dishes. "
    "Fresh fish for sale, she said. "
)


@functools.cache
def _espeak() -> tuple[Any, list[bytes], Any, int]:
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    chunks: list[bytes] = []
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)

    def collect(samples: Any, count: int, _events: Any) -> int:
        if samples and count:
            chunks.append(ctypes.string_at(samples, 2 * count))
        return 0

    callback = prototype(collect)
    rate_hz = library.espeak_Initialize(_SYNCHRONOUS_OUTPUT, 0, espeakng_loader.get_data_path().encode(), 0)
    library.espeak_SetSynthCallback(callback)
    library.espeak_SetVoiceByName(b"en-us")
    return library, chunks, callback, rate_hz


@functools.cache
def speech(seconds: float) -> Samples:
    """Return exactly that much continuous speech at 48 kHz, peak 0.6; callers must not write to it."""
    library, chunks, _callback, rate_hz = _espeak()
    chunks.clear()
    text = (_TEXT * (1 + int(seconds) // 5)).encode()
    library.espeak_Synth(text, len(text) + 1, 0, 1, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    spoken = np.frombuffer(b"".join(chunks), "<i2").astype(np.float32) / 32_768.0
    spoken = resample(spoken, source_rate_hz=rate_hz, target_rate_hz=SPEECH_RATE_HZ)
    count = round(seconds * SPEECH_RATE_HZ)
    assert len(spoken) >= count
    spoken = spoken[:count] * np.float32(0.6 / np.abs(spoken[:count]).max())
    spoken.flags.writeable = False
    return spoken


def noise(seconds: float, *, rms: float, rate_hz: int = SPEECH_RATE_HZ, seed: int = 1) -> Samples:
    samples = np.random.default_rng(seed).standard_normal(round(seconds * rate_hz)) * rms
    return samples.astype(np.float32)


def at_rate(samples: Samples, rate_hz: int) -> Samples:
    return resample(samples, source_rate_hz=SPEECH_RATE_HZ, target_rate_hz=rate_hz)


def int16(samples: NDArray[Any]) -> bytes:
    return np.rint(np.clip(samples, -1, 1) * 32_767).astype("<i2").tobytes()


def int24(samples: NDArray[Any]) -> bytes:
    wide = np.rint(np.clip(samples, -1, 1) * 8_388_607).astype("<i4")
    return wide.reshape(-1, 1).view(np.uint8).reshape(-1, 4)[:, :3].tobytes()


def interleaved(*channels: Samples) -> NDArray[np.float32]:
    return np.stack(channels, axis=1).reshape(-1)


def wav(samples: NDArray[Any], *, rate_hz: int = SPEECH_RATE_HZ, channel_count: int = 1) -> bytes:
    """A plain 16-bit WAV file of (interleaved) float samples."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channel_count)
        writer.setsampwidth(2)
        writer.setframerate(rate_hz)
        writer.writeframes(int16(samples))
    return file.getvalue()


def riff(
    data: bytes,
    *,
    format_tag: int,
    bits: int,
    rate_hz: int,
    channel_count: int = 1,
    extensible: bool = False,
    channel_mask: int = 0,
    data_size: int | None = None,
) -> bytes:
    """A WAV file with any format tag and any claim about its size."""
    frame_bytes = channel_count * bits // 8
    fields = (channel_count, rate_hz, rate_hz * frame_bytes, frame_bytes, bits)
    if extensible:
        guid_tail = bytes.fromhex("000000001000800000aa00389b71")
        extra = struct.pack("<HHIH", 22, bits, channel_mask, format_tag) + guid_tail
        fmt = struct.pack("<HHIIHH", 0xFFFE, *fields) + extra
    else:
        fmt = struct.pack("<HHIIHH", format_tag, *fields)
    size = len(data) if data_size is None else data_size
    riff_size = min(0xFFFFFFFF, 20 + len(fmt) + len(data)) if data_size is None else data_size
    return b"RIFF%sWAVEfmt %s%sdata%s%s" % (
        struct.pack("<I", riff_size),
        struct.pack("<I", len(fmt)),
        fmt,
        struct.pack("<I", size),
        data,
    )


def encode(
    samples: NDArray[Any],
    *,
    container: str,
    codec: str,
    rate_hz: int = SPEECH_RATE_HZ,
    layout: str = "mono",
    cover_art: bool = False,
    seekable: bool = True,
    fragmented: bool = False,
    bit_rate: int = 64_000,
) -> bytes:
    """Encode (interleaved) float samples with PyAV. Not seekable: sizes and durations stay unwritten."""
    file: Any = io.BytesIO() if seekable else _Stream()
    channel_count = av.AudioLayout(layout).nb_channels
    options = {"movflags": "frag_keyframe+empty_moov"} if fragmented else {}
    with av.open(file, "w", format=container, options=options) as output:
        stream: Any = output.add_stream(codec, rate=rate_hz, layout=layout)
        if not codec.startswith(("pcm", "flac", "alac")):
            stream.bit_rate = bit_rate
        picture: Any = None
        if cover_art:
            picture = output.add_stream("mjpeg", rate=1)
            picture.width = picture.height = 64
            picture.pix_fmt = "yuvj420p"
            picture.disposition = Disposition.attached_pic
            image = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 200, np.uint8), "rgb24")
            for packet in [*picture.encode(image), *picture.encode(None)]:
                output.mux(packet)
        pcm = np.frombuffer(int16(samples), "<i2").reshape(1, -1)
        frame_values = 1024 * channel_count
        for start in range(0, pcm.shape[1], frame_values):
            frame = av.AudioFrame.from_ndarray(pcm[:, start : start + frame_values], "s16", layout)
            frame.sample_rate = rate_hz
            frame.pts = start // channel_count
            for packet in stream.encode(frame):
                output.mux(packet)
        for packet in stream.encode(None):
            output.mux(packet)
    return bytes(file.getvalue())


def flac_of_silence(*, seconds: int, rate_hz: int, layout: str) -> bytes:
    """A long file that is tiny, encoded without ever holding its samples."""
    file = io.BytesIO()
    with av.open(file, "w", format="flac") as output:
        stream: Any = output.add_stream("flac", rate=rate_hz, layout=layout)
        block = np.zeros((1, 16_384 * av.AudioLayout(layout).nb_channels), np.int16)
        for index in range(-(-seconds * rate_hz // 16_384)):
            frame = av.AudioFrame.from_ndarray(block, "s16", layout)
            frame.sample_rate, frame.pts = rate_hz, index * 16_384
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return file.getvalue()


def silent_video() -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as output:
        stream: Any = output.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 64
        for _ in range(50):
            output.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), "rgb24")))
        output.mux(stream.encode(None))
    return file.getvalue()


class _Stream:
    """A sink that cannot seek, like a browser's MediaRecorder."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def getvalue(self) -> bytes:
        return b"".join(self._parts)
