"""What speech servers send, in every form that is read, as the pool's PCM."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from tests.engine.fake_speech_server import tone, wav
from tts.engine.errors import EngineError
from tts.engine.remote_audio import PcmReader, Resampler, WavReader


def read(reader: PcmReader | WavReader, data: bytes, piece: int = 1000) -> bytes:
    made = [reader.push(data[at : at + piece]) for at in range(0, len(data), piece)]
    return b"".join([*made, reader.finish()])


@pytest.mark.parametrize("piece", [1, 7, 1000, 10**6])
@pytest.mark.parametrize("size", [None, 0, 0xFFFFFFFF])
def test_a_wav_is_read_in_pieces_of_any_length(piece: int, size: int | None):
    pcm = tone(50)
    assert read(WavReader(), wav(pcm, size=size), piece) == pcm


def test_what_comes_after_the_samples_of_a_wav_is_no_sound():
    pcm = tone(50)
    assert read(WavReader(), wav(pcm) + b"LIST" + bytes(100)) == pcm


def test_channels_become_one():
    assert read(WavReader(), wav(tone(50, channels=2), channels=2)) == tone(50)


@pytest.mark.parametrize(
    ("kind", "bits", "data"),
    [
        (3, 32, struct.pack("<3f", 0.5, -0.5, 0.25)),
        (1, 32, struct.pack("<3i", 1 << 30, -(1 << 30), 1 << 29)),
        (1, 24, b"\x00\x00\x40\x00\x00\xc0\x00\x00\x20"),
    ],
)
def test_other_samples_become_16_bits(kind: int, bits: int, data: bytes):
    form = struct.pack("<HHIIHH", kind, 1, 24_000, 24_000 * bits // 8, bits // 8, bits)
    head = (
        b"RIFF\x00\x00\x00\x00WAVEfmt "
        + struct.pack("<I", 16)
        + form
        + b"data"
        + struct.pack("<I", len(data))
    )
    assert struct.unpack("<3h", read(WavReader(), head + data)) == (16384, -16384, 8192)


@pytest.mark.parametrize(
    "data",
    [
        b"not a wav at all, but an error page",
        b"RIFF\x00\x00\x00\x00WAVEdata\x04\x00\x00\x00abcd",
        wav(tone(50))[:-100],
        wav(tone(50))[:30],
        b"",
        b"RIFF\x00\x00\x00\x00WAVEjunk\xff\xff\xff\x7f" + bytes(100),
    ],
)
def test_what_is_no_whole_wav_is_refused(data: bytes):
    with pytest.raises(EngineError) as refused:
        read(WavReader(), data)
    assert refused.value.code == "remote_not_audio"


def test_half_a_sample_is_refused():
    with pytest.raises(EngineError):
        read(PcmReader(24_000), b"abc")


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("piece", [333, 100_000])
def test_another_rate_keeps_pitch_length_and_level(rate_hz: int, piece: int):
    heard = np.frombuffer(read(PcmReader(rate_hz), tone(500, rate_hz=rate_hz), piece), "<i2").astype(float)
    assert abs(len(heard) - 12_000) <= 1
    meant = 9000 * np.sin(2 * math.pi * 440 * np.arange(len(heard)) / 24_000)
    inside = slice(600, -600)
    error = np.sqrt(np.mean((heard[inside] - meant[inside]) ** 2))
    assert error < 9000 / math.sqrt(2) / 300  # 50 dB below the tone


def test_what_lies_above_the_new_rates_half_is_gone_not_folded():
    samples = np.sin(2 * math.pi * 20_000 * np.arange(48_000) / 48_000)
    resampler = Resampler(48_000)
    heard = np.frombuffer(resampler.push(samples) + resampler.finish(), "<i2").astype(float)
    assert np.abs(heard[600:-600]).max() < 32_768 / 300


def test_the_same_audio_in_other_pieces_is_the_same():
    data = tone(300, rate_hz=22_050)
    assert read(PcmReader(22_050), data, 100) == read(PcmReader(22_050), data, 50_000)
