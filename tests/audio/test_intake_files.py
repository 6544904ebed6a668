"""Every odd file that customers upload: what is taken, what is refused, and with which code."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.audio import clips
from tts.audio.errors import ClipRejected
from tts.audio.intake import InspectedClip, inspect_clip
from tts.audio.limits import CANONICAL_SAMPLE_RATE_HZ, MAX_UPLOAD_BYTES
from tts.audio.quality import FindingCode, Verdict
from tts.audio.wav import read_wav

SECONDS = 4.0

Inspect = Callable[[bytes], InspectedClip]


@pytest.fixture
def inspect(tmp_path: Path) -> Inspect:
    def run(data: bytes) -> InspectedClip:
        source = tmp_path / "an upload.wav"
        source.write_bytes(data)
        inspected = inspect_clip(source=source)
        assert [path.name for path in tmp_path.iterdir()] == ["an upload.wav"]
        return inspected

    return run


@pytest.fixture
def speech() -> clips.Samples:
    return clips.speech(SECONDS)


def canonical_samples(clip: InspectedClip) -> clips.Samples:
    audio = read_wav(clip.canonical_wav)
    assert (audio.sample_rate_hz, audio.channel_count) == (CANONICAL_SAMPLE_RATE_HZ, 1)
    return np.frombuffer(audio.pcm, "<i2").astype(np.float32) / 32_768.0


def assert_holds_the_speech(clip: InspectedClip, speech: clips.Samples) -> None:
    """The canonical PCM is the given speech, up to a delay of the codec and a factor."""
    expected = clips.at_rate(speech, CANONICAL_SAMPLE_RATE_HZ)
    found = canonical_samples(clip)
    size = 1 << (len(expected) + len(found)).bit_length()
    correlation = np.fft.irfft(np.fft.rfft(found, size) * np.conj(np.fft.rfft(expected, size)))
    likeness = np.abs(correlation).max() / (np.linalg.norm(found) * np.linalg.norm(expected))
    assert likeness > 0.9
    assert abs(clip.duration_ms - SECONDS * 1000) <= 60
    assert 0.85 * SECONDS < clip.report.speech_s <= SECONDS + 0.1


def refusal_code(inspect: Inspect, data: bytes) -> str:
    with pytest.raises(ClipRejected) as caught:
        inspect(data)
    assert caught.value.field == "clip"
    assert caught.value.text()
    return caught.value.code


def mu_law_8_khz(speech: clips.Samples) -> bytes:
    return clips.encode(clips.at_rate(speech, 8_000), container="wav", codec="pcm_mulaw", rate_hz=8_000)


def pcm_24_bit_96_khz(speech: clips.Samples) -> bytes:
    return clips.riff(clips.int24(clips.at_rate(speech, 96_000)), format_tag=1, bits=24, rate_hz=96_000)


def extensible_24_bit(speech: clips.Samples) -> bytes:
    return clips.riff(
        clips.int24(speech), format_tag=1, bits=24, rate_hz=48_000, extensible=True, channel_mask=4
    )


def float_32_bit(speech: clips.Samples) -> bytes:
    return clips.riff(speech.astype("<f4").tobytes(), format_tag=3, bits=32, rate_hz=48_000)


def float_64_bit_extensible(speech: clips.Samples) -> bytes:
    return clips.riff(speech.astype("<f8").tobytes(), format_tag=3, bits=64, rate_hz=48_000, extensible=True)


def float_scaled_like_integers(speech: clips.Samples) -> bytes:
    return clips.riff((speech * 32_768).astype("<f4").tobytes(), format_tag=3, bits=32, rate_hz=48_000)


def data_size_zero(speech: clips.Samples) -> bytes:
    return clips.riff(clips.int16(speech), format_tag=1, bits=16, rate_hz=48_000, data_size=0)


def data_size_unknown(speech: clips.Samples) -> bytes:
    return clips.riff(clips.int16(speech), format_tag=1, bits=16, rate_hz=48_000, data_size=0xFFFFFFFF)


def mp3_with_cover_art(speech: clips.Samples) -> bytes:
    return clips.encode(speech, container="mp3", codec="libmp3lame", cover_art=True)


def mp3_with_chinese_tags(speech: clips.Samples) -> bytes:
    title = "声音".encode("gbk")
    frame = b"TIT2" + (len(title) + 1).to_bytes(4, "big") + b"\0\0" + b"\0" + title
    tag = b"ID3\x03\0\0" + bytes([0, 0, 0, len(frame)]) + frame
    return tag + clips.encode(speech, container="mp3", codec="libmp3lame")


def m4a(speech: clips.Samples) -> bytes:
    return clips.encode(speech, container="ipod", codec="aac")


def media_recorder_mp4(speech: clips.Samples) -> bytes:
    return clips.encode(speech, container="mp4", codec="aac", fragmented=True)


def media_recorder_webm(speech: clips.Samples) -> bytes:
    return clips.encode(speech, container="webm", codec="libopus", seekable=False)


def webm_with_a_picture_track(speech: clips.Samples) -> bytes:
    return clips.encode(speech, container="matroska", codec="libopus", cover_art=True)


def flac(speech: clips.Samples) -> bytes:
    return clips.encode(speech, container="flac", codec="flac")


def ogg_opus(speech: clips.Samples) -> bytes:
    return clips.encode(speech, container="ogg", codec="libopus")


def adts_aac(speech: clips.Samples) -> bytes:
    return clips.encode(speech, container="adts", codec="aac")


def aiff(speech: clips.Samples) -> bytes:
    return clips.encode(speech, container="aiff", codec="pcm_s16be")


@pytest.mark.parametrize(
    "make",
    [
        mu_law_8_khz, pcm_24_bit_96_khz, extensible_24_bit, float_32_bit, float_64_bit_extensible,
        float_scaled_like_integers, data_size_zero, data_size_unknown, mp3_with_cover_art,
        mp3_with_chinese_tags, m4a, media_recorder_mp4, media_recorder_webm, webm_with_a_picture_track,
        flac, ogg_opus, adts_aac, aiff,
    ],
    ids=lambda make: make.__name__,
)  # fmt: skip
def test_a_clip_is_decoded_by_its_content(
    make: Callable[[clips.Samples], bytes],
    inspect: Inspect,
    speech: clips.Samples,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="tts.audio.intake")
    clip = inspect(make(speech))
    assert_holds_the_speech(clip, speech)
    assert clip.report.verdict in (Verdict.PASS, Verdict.WARNINGS)
    assert not clip.report.damaged
    assert [record.decoder_error for record in caplog.records] == [""]  # type: ignore[attr-defined]


def test_a_webm_of_a_media_recorder_states_no_duration(speech: clips.Samples) -> None:
    import io

    import av

    with av.open(io.BytesIO(media_recorder_webm(speech))) as container:
        assert container.duration is None
        assert container.streams.audio[0].duration is None


def test_the_same_file_gives_the_same_bytes(inspect: Inspect, speech: clips.Samples) -> None:
    first, second = inspect(m4a(speech)), inspect(m4a(speech))
    assert first.canonical_wav == second.canonical_wav
    assert first.sha256 == second.sha256
    assert first.report == second.report


@pytest.mark.parametrize("channel_count", [2, 6, 8])
def test_speech_in_the_last_channel_only(inspect: Inspect, speech: clips.Samples, channel_count: int) -> None:
    silent = [np.zeros_like(speech)] * (channel_count - 1)
    clip = inspect(clips.wav(clips.interleaved(*silent, speech), channel_count=channel_count))
    assert_holds_the_speech(clip, speech)
    assert clip.report.channel_count == channel_count
    assert FindingCode.MULTI_CHANNEL in {finding.code for finding in clip.report.findings}
    assert clip.report.verdict is Verdict.PASS


def test_six_channels_with_a_layout(inspect: Inspect, speech: clips.Samples) -> None:
    silent = np.zeros_like(speech)
    data = clips.riff(
        clips.int16(clips.interleaved(silent, silent, speech, silent, silent, silent)),
        format_tag=1,
        bits=16,
        rate_hz=48_000,
        channel_count=6,
        extensible=True,
        channel_mask=0x3F,
    )
    clip = inspect(data)
    assert_holds_the_speech(clip, speech)
    assert clip.report.channel_count == 6


def test_opposite_phases_do_not_cancel(inspect: Inspect, speech: clips.Samples) -> None:
    clip = inspect(clips.wav(clips.interleaved(speech, -speech), channel_count=2))
    assert_holds_the_speech(clip, speech)


def test_a_humming_channel_that_is_louder_is_not_taken_for_speech(
    inspect: Inspect, speech: clips.Samples
) -> None:
    hum = (0.9 * np.sin(np.arange(len(speech)) * (2 * np.pi * 50 / 48_000))).astype(np.float32)
    hiss = clips.noise(SECONDS, rms=0.2)
    clip = inspect(clips.wav(clips.interleaved(hum, hiss, speech), channel_count=3))
    assert_holds_the_speech(clip, speech)


def test_equal_channels_are_no_finding(inspect: Inspect, speech: clips.Samples) -> None:
    clip = inspect(clips.wav(clips.interleaved(speech, speech), channel_count=2))
    assert clip.report.findings == ()
    assert clip.report.channel_count == 2


def test_a_truncated_file_is_used_as_far_as_it_goes(inspect: Inspect, speech: clips.Samples) -> None:
    data = clips.wav(speech)
    clip = inspect(data[: 44 + 2 * round(3.25 * 48_000)])
    assert clip.duration_ms == 3250
    assert clip.report.duration_s == 3.25


def test_the_size_in_the_header_is_not_believed(inspect: Inspect, speech: clips.Samples) -> None:
    claims_an_hour = clips.riff(
        clips.int16(speech[: 48_000 * 2]), format_tag=1, bits=16, rate_hz=48_000, data_size=48_000 * 2 * 3600
    )
    assert refusal_code(inspect, claims_an_hour) == "clip_too_short"


def test_float_samples_that_are_no_numbers_become_silence(inspect: Inspect, speech: clips.Samples) -> None:
    samples = speech.astype("<f4").copy()
    samples[1_000], samples[2_000], samples[3_000] = np.nan, np.inf, -1e30
    clip = inspect(clips.riff(samples.tobytes(), format_tag=3, bits=32, rate_hz=48_000))
    assert_holds_the_speech(clip, speech)
    assert clip.report.damaged
    assert clip.report.verdict is Verdict.WARNINGS


def test_a_file_full_of_nan_is_refused(inspect: Inspect, speech: clips.Samples) -> None:
    samples = speech.astype("<f4").copy()
    samples[::20] = np.nan
    data = clips.riff(samples.tobytes(), format_tag=3, bits=32, rate_hz=48_000)
    assert refusal_code(inspect, data) == "clip_unreadable"


def test_no_bytes_at_all(inspect: Inspect) -> None:
    assert refusal_code(inspect, b"") == "clip_empty"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (clips.wav(np.zeros(0, np.float32)), "clip_unreadable"),
        (b"This is a text that someone renamed to .wav.\n" * 500, "clip_unreadable"),
        (bytes(5_000), "clip_unreadable"),
        (b"#EXTM3U\n#EXTINF:5,\nhttp://127.0.0.1:9/segment.ts\n", "clip_unreadable"),
        (b"ffconcat version 1.0\nfile /etc/passwd\n", "clip_unreadable"),
    ],
    ids=["header only", "text", "zeros", "playlist", "concat script"],
)
def test_what_is_no_audio_is_refused(inspect: Inspect, data: bytes, code: str) -> None:
    assert refusal_code(inspect, data) == code


def test_silence_and_noise_are_refused_apart(inspect: Inspect) -> None:
    assert refusal_code(inspect, clips.wav(np.zeros(48_000 * 4, np.float32))) == "clip_silent"
    assert refusal_code(inspect, clips.wav(clips.noise(4.0, rms=0.1))) == "clip_no_speech"


def test_lengths_are_judged_exactly(inspect: Inspect) -> None:
    with pytest.raises(ClipRejected) as caught:
        inspect(clips.wav(clips.speech(2.9)))
    assert caught.value.code == "clip_too_short"
    assert "2.9" in caught.value.text()
    assert refusal_code(inspect, clips.wav(clips.speech(2.999))) == "clip_too_short"
    assert inspect(clips.wav(clips.speech(3.0))).duration_ms == 3_000
    assert refusal_code(inspect, clips.wav(clips.speech(31.0))) == "clip_too_long"


def test_thirty_seconds_with_the_padding_of_a_codec_are_cut_to_thirty(inspect: Inspect) -> None:
    clip = inspect(clips.wav(clips.speech(30.06)))
    assert clip.duration_ms == 30_000
    assert len(canonical_samples(clip)) == 30 * CANONICAL_SAMPLE_RATE_HZ


def test_nine_channels_and_impossible_rates_are_refused(inspect: Inspect) -> None:
    second = np.zeros(48_000, np.float32)
    assert refusal_code(inspect, clips.wav(clips.interleaved(*[second] * 9), channel_count=9)) == (
        "clip_too_many_channels"
    )
    one_hertz = clips.riff(bytes(2 * 10), format_tag=1, bits=16, rate_hz=1)
    assert refusal_code(inspect, one_hertz) == "clip_sample_rate_not_supported"
    absurd = clips.riff(bytes(2 * 400_000), format_tag=1, bits=16, rate_hz=400_000)
    assert refusal_code(inspect, absurd) == "clip_sample_rate_not_supported"


def test_a_codec_outside_the_list_is_refused(inspect: Inspect, speech: clips.Samples) -> None:
    data = clips.encode(speech, container="wav", codec="adpcm_ima_wav")
    assert refusal_code(inspect, data) == "clip_format_not_supported"


def test_a_video_without_sound_is_refused(inspect: Inspect) -> None:
    assert refusal_code(inspect, clips.silent_video()) == "clip_no_audio"


def test_a_file_over_the_limit_is_refused_unread(tmp_path: Path) -> None:
    source = tmp_path / "large.wav"
    with source.open("wb") as file:
        file.truncate(MAX_UPLOAD_BYTES + 1)
    with pytest.raises(ClipRejected) as caught:
        inspect_clip(source=source)
    assert (caught.value.code, caught.value.status) == ("clip_too_large", 413)
    assert source.stat().st_size == MAX_UPLOAD_BYTES + 1


@pytest.mark.parametrize(
    ("rate_hz", "layout"), [(48_000, "mono"), (192_000, "7.1")], ids=["mono", "the worst: 7.1 at 192 kHz"]
)
def test_an_hour_of_silence_costs_little_time_and_memory(
    inspect: Inspect, caplog: pytest.LogCaptureFixture, rate_hz: int, layout: str
) -> None:
    caplog.set_level(logging.INFO, logger="tts.audio.intake")
    bomb = clips.flac_of_silence(seconds=3_600 if layout == "mono" else 60, rate_hz=rate_hz, layout=layout)
    assert len(bomb) < 700_000
    assert refusal_code(inspect, bomb) == "clip_too_long"
    (record,) = caplog.records
    assert record.cpu_ms < 2_000  # type: ignore[attr-defined]
    assert 0 < record.peak_memory_bytes < 200_000_000  # type: ignore[attr-defined]
