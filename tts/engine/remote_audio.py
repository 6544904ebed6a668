"""What a speech server sends, as the pool's PCM: WAV or PCM of any rate in, 24 kHz mono 16 bits out, piece by piece."""

from __future__ import annotations

import struct
from typing import Optional, Union

import numpy as np
from numpy.typing import NDArray

from tts.engine.errors import EngineError

RATE_HZ = 24_000
Samples = NDArray[np.float64]
# A header with every optional chunk is some hundred bytes long.
MAX_HEADER_BYTES = 65_536
UNKNOWN_SIZES = (0, 0xFFFFFFFF, 0x7FFFFFFF)  # of a WAV that is sent while it is made
PCM_FORMAT, FLOAT_FORMAT, EXTENSIBLE_FORMAT = 1, 3, 0xFFFE
ZERO_CROSSINGS = 24


def wrong_audio(what: str) -> EngineError:
    return EngineError("remote_not_audio", f"The speech server sent {what}.")


class PcmReader:
    """16-bit little-endian PCM of one channel."""

    def __init__(self, sample_rate_hz: int) -> None:
        self._resampler = Resampler(sample_rate_hz)
        self._left = b""

    def push(self, data: bytes) -> bytes:
        """The audio that these bytes complete."""
        data = self._left + data
        whole = len(data) // 2 * 2
        self._left = data[whole:]
        return self._resampler.push(np.frombuffer(data[:whole], "<i2") / 32768.0)

    def finish(self) -> bytes:
        """What is left.

        Raises:
            EngineError: it ends in the middle of a sample.
        """
        if self._left:
            raise wrong_audio("half a sample")
        return self._resampler.finish()


class WavReader:
    """A WAV file whose length may not be known, with whole-number or float samples in any number of channels."""

    def __init__(self) -> None:
        self._header = b""
        self._layout: Optional[_Layout] = None
        self._resampler: Optional[Resampler] = None
        self._left = b""
        self._missing: Optional[int] = None

    def push(self, data: bytes) -> bytes:
        """The audio that these bytes complete.

        Raises:
            EngineError: it is no WAV, or one of a kind that is not read.
        """
        if self._layout is None or self._resampler is None:
            self._header += data
            found = _parsed_header(self._header)
            if found is None:
                return b""
            self._layout, size, data = found
            self._missing = None if size in UNKNOWN_SIZES else size
            self._resampler = Resampler(self._layout.sample_rate_hz)
            self._header = b""
        if self._missing is not None:
            # What comes after the samples are notes.
            data = data[: self._missing]
            self._missing -= len(data)
        data = self._left + data
        whole = len(data) // self._layout.frame_bytes * self._layout.frame_bytes
        self._left = data[whole:]
        return self._resampler.push(self._layout.samples(data[:whole]))

    def finish(self) -> bytes:
        """What is left.

        Raises:
            EngineError: it ended too early.
        """
        if self._resampler is None:
            raise wrong_audio("no WAV")
        if self._left or self._missing:
            raise wrong_audio("a WAV that ends too early")
        return self._resampler.finish()


class _Layout:
    """How samples lie in a WAV's data."""

    def __init__(self, kind: int, channels: int, sample_rate_hz: int, bits: int) -> None:
        if (kind, bits) not in ((PCM_FORMAT, 16), (PCM_FORMAT, 24), (PCM_FORMAT, 32), (FLOAT_FORMAT, 32)):
            raise wrong_audio(f"a WAV of a kind that is not read (format {kind}, {bits} bits)")
        if not 1 <= channels <= 8 or not 8_000 <= sample_rate_hz <= 192_000:
            raise wrong_audio(f"a WAV with {channels} channels and {sample_rate_hz} samples a second")
        self.sample_rate_hz = sample_rate_hz
        self.frame_bytes = channels * bits // 8
        self._channels, self._kind, self._bits = channels, kind, bits

    def samples(self, data: bytes) -> Samples:
        """One channel: the mean of all."""
        if self._kind == FLOAT_FORMAT:
            values: Samples = np.frombuffer(data, "<f4").astype(np.float64)
        elif self._bits == 24:
            parts = np.frombuffer(data, np.uint8).reshape(-1, 3).astype(np.int32)
            values = ((parts[:, 0] << 8 | parts[:, 1] << 16 | parts[:, 2] << 24) >> 8) / float(1 << 23)
        else:
            values = np.frombuffer(data, f"<i{self._bits // 8}") / float(1 << (self._bits - 1))
        return np.asarray(values.reshape(-1, self._channels).mean(axis=1))


def _parsed_header(data: bytes) -> Optional[tuple[_Layout, int, bytes]]:
    """Layout, announced size of the samples, and what of them has come; None while the header is not whole."""
    if len(data) >= 12 and (data[:4] not in (b"RIFF", b"RF64") or data[8:12] != b"WAVE"):
        raise wrong_audio("something that is no WAV")
    layout: Optional[_Layout] = None
    at = 12
    while len(data) >= at + 8:
        name, size = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        at += 8
        if name == b"data":
            if layout is None:
                raise wrong_audio("a WAV that does not say how its samples lie")
            return layout, size, data[at:]
        if name == b"fmt ":
            if len(data) < at + min(size, 40):
                return None
            layout = _layout(data[at : at + size])
        at += size + size % 2
        if at > MAX_HEADER_BYTES:
            raise wrong_audio("a WAV with an endless header")
    return None


def _layout(chunk: bytes) -> _Layout:
    if len(chunk) < 16:
        raise wrong_audio("a WAV with a broken header")
    kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", chunk)
    if kind == EXTENSIBLE_FORMAT and len(chunk) >= 26:
        kind = struct.unpack_from("<H", chunk, 24)[0]
    return _Layout(kind, channels, rate, bits)


class Resampler:
    """Samples of one channel at another rate, by a windowed sinc; the pieces joined are what the whole would be."""

    def __init__(self, source_rate_hz: int) -> None:
        self._step = source_rate_hz / RATE_HZ
        self._same = source_rate_hz == RATE_HZ
        self._cutoff = min(1.0, 1 / self._step) * 0.94
        self._reach = int(np.ceil(ZERO_CROSSINGS / self._cutoff))
        # The buffer begins this many source samples before the first one that came.
        self._buffer: Samples = np.zeros(self._reach)
        self._first = -self._reach
        self._came = 0
        self._made = 0

    def push(self, samples: Samples) -> bytes:
        """What can be made once these have come, as 16-bit PCM."""
        if self._same:
            return as_pcm(samples)
        self._came += len(samples)
        self._buffer = np.concatenate([self._buffer, samples])
        return self._make(int((self._came - self._reach) / self._step))

    def finish(self) -> bytes:
        """The rest: as long in time as what came."""
        if self._same:
            return b""
        self._buffer = np.concatenate([self._buffer, np.zeros(2 * self._reach)])
        return self._make(round(self._came / self._step))

    def _make(self, until: int) -> bytes:
        if until <= self._made:
            return b""
        at = np.arange(self._made, until) * self._step
        self._made = until
        middle = np.floor(at).astype(np.int64)
        offsets = np.arange(-self._reach + 1, self._reach + 1)
        distance = (at - middle)[:, None] - offsets[None, :]
        weights = self._cutoff * np.sinc(self._cutoff * distance)
        weights *= 0.5 + 0.5 * np.cos(np.pi * np.clip(distance / self._reach, -1, 1))
        taken = (middle[:, None] + offsets[None, :]) - self._first
        made = (self._buffer[np.clip(taken, 0, len(self._buffer) - 1)] * weights).sum(axis=1)
        keep_from = max(0, int(until * self._step) - self._reach - self._first)
        self._buffer = self._buffer[keep_from:]
        self._first += keep_from
        return as_pcm(made)


def as_pcm(samples: Samples) -> bytes:
    """16-bit little-endian PCM.

    Raises:
        EngineError: a sample is not a number.
    """
    if not np.isfinite(samples).all():
        raise wrong_audio("samples that are no numbers")
    return np.clip(np.round(samples * 32768.0), -32768, 32767).astype("<i2").tobytes()


AudioReader = Union[PcmReader, WavReader]
