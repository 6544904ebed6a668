"""WAV files and waveform outlines."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tts.audio.peaks import waveform_peaks
from tts.audio.wav import (
    WavAudio,
    join_pcm,
    pcm_duration_ms,
    read_wav,
    silence,
    wav_file,
    wav_header,
)


@settings(deadline=None)
@given(
    st.lists(st.integers(-32_768, 32_767), max_size=200),
    st.sampled_from([8_000, 24_000, 48_000]),
    st.sampled_from([1, 2]),
)
def test_a_wav_file_is_read_back_by_us_and_by_the_standard_library(
    values: list[int], sample_rate_hz: int, channel_count: int
) -> None:
    values = values[: len(values) // channel_count * channel_count]
    pcm = struct.pack(f"<{len(values)}h", *values)
    data = wav_file(pcm, sample_rate_hz=sample_rate_hz, channel_count=channel_count)
    with wave.open(io.BytesIO(data)) as file:
        assert file.readframes(file.getnframes()) == pcm
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (
            sample_rate_hz,
            channel_count,
            2,
        )
    assert read_wav(data) == WavAudio(pcm=pcm, sample_rate_hz=sample_rate_hz, channel_count=channel_count)


def test_the_header_of_a_stream_leaves_its_size_open() -> None:
    header = wav_header(pcm_bytes=None, sample_rate_hz=24_000)
    assert len(header) == 44
    assert header[4:8] == header[40:44] == b"\xff\xff\xff\xff"
    assert header[24:32] == struct.pack("<II", 24_000, 48_000)


@pytest.mark.parametrize("size", [-2, 3, 0xFFFFFFFF])
def test_impossible_sizes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        wav_header(pcm_bytes=size, sample_rate_hz=24_000)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"RIFF",
        bytes(100),
        wav_file(bytes(100), sample_rate_hz=24_000)[:-10],
        wav_header(pcm_bytes=None, sample_rate_hz=24_000) + bytes(10),
    ],
)
def test_what_is_no_complete_wav_file_is_not_read(data: bytes) -> None:
    with pytest.raises(ValueError, match="WAV"):
        read_wav(data)


def test_duration_is_counted_in_frames() -> None:
    assert pcm_duration_ms(pcm_bytes=48_000, sample_rate_hz=24_000) == 1_000
    assert pcm_duration_ms(pcm_bytes=48_000, sample_rate_hz=24_000, channel_count=2) == 500
    assert WavAudio(pcm=bytes(72_024), sample_rate_hz=24_000, channel_count=1).duration_ms == 1_500


def test_segments_are_joined_with_the_pause_of_each_but_the_last() -> None:
    assert silence(duration_ms=2, sample_rate_hz=1_000) == bytes(4)
    joined = join_pcm([b"ab", b"cdef", b"gh"], pauses_ms=[2, 0, 9], sample_rate_hz=1_000)
    assert joined == b"ab" + bytes(4) + b"cdef" + b"gh"
    assert join_pcm([], pauses_ms=[], sample_rate_hz=1_000) == b""
    with pytest.raises(ValueError, match="middle of a sample"):
        join_pcm([b"ab", b"c"], pauses_ms=[2, 2], sample_rate_hz=1_000)
    with pytest.raises(ValueError, match="zip"):
        join_pcm([b"ab", b"cd"], pauses_ms=[2], sample_rate_hz=1_000)


def pcm_of(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}h", *values)


def test_peaks_follow_the_outline() -> None:
    assert waveform_peaks(pcm_of(0, 100, -200, 50, 400, 0, -100, 0), count=4) == [25, 50, 100, 25]
    assert waveform_peaks(pcm_of(-32_768, 0, 16_384, 0), count=2) == [100, 50]
    assert waveform_peaks(pcm_of(7, -7), count=120) == [100, 100]


def test_peaks_of_silence_and_of_nothing() -> None:
    assert waveform_peaks(bytes(2 * 1_000), count=10) == [0] * 10
    assert waveform_peaks(b"", count=10) == []
    assert waveform_peaks(b"\1", count=10) == []


def test_an_hour_has_as_many_peaks_as_a_second() -> None:
    hour = np.zeros(24_000 * 3_600, "<i2")
    hour[24_000 * 1_800 :] = 1_000
    assert waveform_peaks(hour.tobytes(), count=100) == [0] * 50 + [100] * 50


@settings(deadline=None)
@given(st.binary(max_size=400), st.integers(1, 50))
def test_peaks_are_always_in_range(pcm: bytes, count: int) -> None:
    peaks = waveform_peaks(pcm, count=count)
    assert len(peaks) == min(count, len(pcm) // 2)
    assert all(0 <= peak <= 100 for peak in peaks)
    assert not peaks or max(peaks) in (0, 100)
