"""Speech as a file of every format: its length, its loudness, and the label that another library reads back."""

from __future__ import annotations

import json
import math
import struct
import wave
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from mutagen.flac import FLAC
from mutagen.id3 import ID3
from mutagen.mp4 import MP4
from mutagen.oggopus import OggOpus

from tts.audio import explicit
from tts.audio.aigc import implicit_label, label_chunk, read_chunk_label
from tts.audio.encode import read_label
from tts.audio.filters import loudness_of
from tts.audio.formats import FORMATS, SAMPLE_RATES_HZ, TRUE_PEAK_DBTP
from tts.audio.rendering import RenderFailed, RenderSpec, render_file
from tts.audio.wav import read_wav, wav_file

RATE_HZ = 24_000
LABEL = implicit_label(producer="Example", produce_id="0b7b5a0e-0000-4000-8000-000000000001")


def speech_like(seconds: float = 2.345) -> bytes:
    """A hum with syllables and a little breath: loudness meters and codecs take it as they take speech."""
    times = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    syllables = 0.5 - 0.45 * np.cos(2 * np.pi * 4 * times)
    hum = sum(np.sin(2 * np.pi * 130 * n * times) / n for n in range(1, 12))
    breath = np.random.default_rng(7).standard_normal(len(times)) * 0.01
    return (3000 * (syllables * hum + breath)).astype("<i2").tobytes()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("speech") / "master.wav"
    path.write_bytes(wav_file(speech_like(), sample_rate_hz=RATE_HZ))
    return str(path)


def rendered(source: str, folder: Path, code: str, **options: Any) -> str:
    target = str(folder / f"{code}.{FORMATS[code].extension}")
    rate = options.pop("sample_rate_hz", FORMATS[code].default_sample_rate_hz)
    render_file(
        RenderSpec(source=source, target=target, format=code, sample_rate_hz=rate, label=LABEL, **options)
    )
    return target


def decoded(path: str, code: str, *, rate_hz: int = RATE_HZ) -> tuple[Any, int]:
    """The samples of a file and their rate, by FFmpeg's own decoder."""
    if code == "pcm":
        return np.fromfile(path, "<i2"), rate_hz
    with av.open(path) as container:
        resampler = av.AudioResampler("s16", "mono", None)
        frames = list(container.decode(audio=0))
        parts = [part.to_ndarray()[0] for frame in frames for part in resampler.resample(frame)]
    return np.concatenate(parts), frames[0].sample_rate


def label_by_another_library(path: str, code: str) -> str:
    if code == "mp3":
        return str(ID3(path)["TXXX:AIGC"])
    if code == "opus":
        return str(OggOpus(path)["AIGC"][0])
    if code == "flac":
        return str(FLAC(path)["AIGC"][0])
    return ""


@pytest.mark.parametrize("code", FORMATS)
def test_every_format_is_as_long_as_the_master(code: str, source: str, tmp_path: Path) -> None:
    known = FORMATS[code]
    rate = known.default_sample_rate_hz
    samples, decoded_rate = decoded(rendered(source, tmp_path, code), code, rate_hz=rate)
    expected = len(read_wav(Path(source).read_bytes()).pcm) // 2 * decoded_rate / RATE_HZ
    assert abs(len(samples) - expected) <= known.frame_samples
    assert decoded_rate == (48_000 if code == "opus" else rate)


@pytest.mark.parametrize("code", ["mp3", "opus", "flac"])
def test_another_library_reads_the_label(code: str, source: str, tmp_path: Path) -> None:
    assert label_by_another_library(rendered(source, tmp_path, code), code) == LABEL


def test_the_label_of_mp4_is_a_key_of_its_metadata(source: str, tmp_path: Path) -> None:
    path = rendered(source, tmp_path, "aac")
    assert MP4(path).info.codec.startswith("mp4a")
    content = Path(path).read_bytes()
    keys = content.index(b"keys")
    assert b"mdtaAIGC" in content[keys:]
    assert LABEL.encode() in content[content.index(b"ilst", keys) :]


@pytest.mark.parametrize("code", ["wav", "mulaw"])
def test_the_label_of_wav_is_its_last_chunk(code: str, source: str, tmp_path: Path) -> None:
    content = Path(rendered(source, tmp_path, code)).read_bytes()
    assert content.endswith(label_chunk(LABEL))
    assert struct.unpack("<I", content[4:8]) == (len(content) - 8,)


def test_the_label_is_plain_json_in_the_order_of_the_standard() -> None:
    assert list(json.loads(LABEL).items()) == [
        ("Label", "1"),
        ("ContentProducer", "Example"),
        ("ProduceID", "0b7b5a0e-0000-4000-8000-000000000001"),
        ("ReservedCode1", ""),
        ("ContentPropagator", "Example"),
        ("PropagateID", "0b7b5a0e-0000-4000-8000-000000000001"),
        ("ReservedCode2", ""),
    ]


@pytest.mark.parametrize("name", ["", "two words", 'a"quote', "back\\slash", "名", "x" * 201])
def test_a_label_takes_no_name_that_a_container_might_not(name: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        implicit_label(producer=name, produce_id="1")


@pytest.mark.parametrize("code", [known.code for known in FORMATS.values() if known.has_label])
def test_a_file_without_its_label_is_told(code: str, source: str, tmp_path: Path) -> None:
    path = Path(rendered(source, tmp_path, code))
    assert read_label(str(path), FORMATS[code]) == LABEL
    path.write_bytes(path.read_bytes().replace(b"AIGC", b"GONE").replace(b"aigc", b"gone"))
    assert read_label(str(path), FORMATS[code]) is None


def test_a_damaged_label_chunk_is_no_label(tmp_path: Path) -> None:
    whole = wav_file(bytes(10), sample_rate_hz=RATE_HZ, chunk=label_chunk(LABEL))
    for content in (whole[:-2], whole[:60], b"", b"RIFF"):
        path = tmp_path / "cut.wav"
        path.write_bytes(content)
        with path.open("rb") as file:
            assert read_chunk_label(file) is None


@pytest.mark.parametrize("target_lufs", [-16.0, -23.0])
@pytest.mark.parametrize("code", FORMATS)
def test_loudness_is_as_ordered_and_peaks_stay_below_full_scale(
    code: str, target_lufs: float, source: str, tmp_path: Path
) -> None:
    path = rendered(source, tmp_path, code, loudness_lufs=target_lufs)
    samples, rate = decoded(path, code, rate_hz=FORMATS[code].default_sample_rate_hz)
    found = loudness_of(iter([samples]), [], rate_hz=rate, out_rate_hz=rate)
    assert found is not None
    loudness, peak = found
    assert loudness == pytest.approx(target_lufs, abs=0.3)
    # A codec that loses something also overshoots a little.
    assert peak <= TRUE_PEAK_DBTP + (0.0 if code in ("wav", "flac", "pcm") else 0.8)


def test_silence_is_not_lifted(tmp_path: Path) -> None:
    quiet = tmp_path / "quiet.wav"
    quiet.write_bytes(wav_file(bytes(RATE_HZ * 2), sample_rate_hz=RATE_HZ))
    samples, _ = decoded(rendered(str(quiet), tmp_path, "wav", loudness_lufs=-16.0), "wav")
    assert not samples.any()


@pytest.mark.parametrize(
    ("code", "rate"), [(known.code, rate) for known in FORMATS.values() for rate in known.sample_rates_hz]
)
def test_every_rate_that_is_offered_is_made(code: str, rate: int, tmp_path: Path) -> None:
    """In this process: fifty children would only test the operating system."""
    from tts.audio.encode import render

    source = tmp_path / "short.wav"
    source.write_bytes(wav_file(speech_like(0.5), sample_rate_hz=RATE_HZ))
    target = str(tmp_path / f"made.{FORMATS[code].extension}")
    render(RenderSpec(source=str(source), target=target, format=code, sample_rate_hz=rate, label=LABEL))
    samples, decoded_rate = decoded(target, code, rate_hz=rate)
    assert abs(len(samples) / decoded_rate - 0.5) <= FORMATS[code].frame_samples / rate + 1 / rate
    assert decoded_rate == (48_000 if code == "opus" else rate)


def test_mulaw_says_its_codec_and_its_number_of_samples(source: str, tmp_path: Path) -> None:
    content = Path(rendered(source, tmp_path, "mulaw")).read_bytes()
    assert struct.unpack("<HHI", content[20:28]) == (7, 1, 8_000)
    assert content[38:46] == b"fact" + struct.pack("<I", 4)
    (samples,) = struct.unpack("<I", content[46:50])
    assert struct.unpack("<4sI", content[50:58]) == (b"data", samples)
    assert samples == math.ceil(len(speech_like()) / 2 / 3)


def test_the_tone_is_the_rhythm_of_a_and_i() -> None:
    samples = np.abs(explicit.tone_label(RATE_HZ).astype(int))
    heard = np.array([part.max() > 1000 for part in np.array_split(samples, len(samples) * 100 // RATE_HZ)])
    edges = np.flatnonzero(np.diff(np.concatenate([[0], heard.astype(int), [0]])))
    lengths_ms = np.diff(edges) * 10
    # A: short, long. I: short, short. Odd places are the silences between.
    assert lengths_ms.tolist() == pytest.approx([100, 100, 300, 300, 100, 100, 100], abs=10)


@pytest.mark.parametrize("position", explicit.POSITIONS)
def test_a_label_is_heard_where_the_rule_says(position: str, source: str, tmp_path: Path) -> None:
    path = rendered(source, tmp_path, "wav", explicit_label=explicit.TONE, label_position=position)
    plain = np.frombuffer(read_wav(Path(source).read_bytes()).pcm, "<i2")
    label = explicit.tone_label(RATE_HZ)
    rest = np.zeros(RATE_HZ * explicit.REST_MS // 1000, np.int16)
    order = [label, rest, plain] if position == explicit.AT_START else [plain, rest, label]
    with wave.open(path) as file:
        found = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert np.array_equal(found, np.concatenate(order))


def test_words_are_heard_where_there_are_any(source: str, tmp_path: Path) -> None:
    words = tmp_path / "words.wav"
    words.write_bytes(wav_file(speech_like(0.3), sample_rate_hz=RATE_HZ))
    with_words = rendered(source, tmp_path, "wav", explicit_label=explicit.SPOKEN, spoken_label=str(words))
    assert read_wav(Path(with_words).read_bytes()).pcm.startswith(speech_like(0.3))
    without = rendered(source, tmp_path, "wav", explicit_label=explicit.SPOKEN)
    assert read_wav(Path(without).read_bytes()).pcm.startswith(explicit.tone_label(RATE_HZ).tobytes())


def test_a_child_that_fails_says_what_kind_of_failure_it_was(source: str, tmp_path: Path) -> None:
    words = tmp_path / "words.wav"
    words.write_bytes(wav_file(bytes(100), sample_rate_hz=8_000))
    with pytest.raises(RenderFailed, match="ValueError"):
        rendered(source, tmp_path, "wav", explicit_label=explicit.SPOKEN, spoken_label=str(words))


def test_an_hour_takes_no_more_memory_than_a_minute(tmp_path: Path) -> None:
    hour = tmp_path / "hour.wav"
    second = speech_like(1.0)
    with wave.open(str(hour), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        for _ in range(3600):
            file.writeframes(second)
    result = render_file(
        RenderSpec(
            source=str(hour),
            target=str(tmp_path / "hour.flac"),
            format="flac",
            sample_rate_hz=RATE_HZ,
            label=LABEL,
        )
    )
    assert result.size_bytes > 10_000_000
    assert result.peak_memory_bytes < 150 * 1024 * 1024


def test_the_usual_rates_are_offered() -> None:
    assert (SAMPLE_RATES_HZ[0], SAMPLE_RATES_HZ[-1]) == (8_000, 48_000)
