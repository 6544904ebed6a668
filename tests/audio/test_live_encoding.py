"""Speech encoded piece by piece: what comes out can be decoded by another library, and is as long as what went in."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest
import soundfile
from mutagen.id3 import ID3
from mutagen.oggopus import OggOpus

from tts.audio.aigc import implicit_label
from tts.audio.formats import FORMATS
from tts.audio.live_encoding import CHILD_CPU_SECONDS, LIVE_CODECS, LiveEncoder, LiveEncodingFailed
from tts.text.limits import MAX_JOB_AUDIO_MS

RATE_HZ = 24_000
LABEL = implicit_label(producer="Example", produce_id="0b7b5a0e-0000-4000-8000-000000000001")


def hum(samples: int) -> bytes:
    times = np.arange(samples) / RATE_HZ
    return (6000 * np.sin(2 * np.pi * 300 * times)).astype("<i2").tobytes()


def encoded(pcm: bytes, format_code: str, *, piece_samples: int = 9_600) -> bytes:
    with LiveEncoder(format_code=format_code, sample_rate_hz=RATE_HZ, label=LABEL) as encoder:
        head = encoder.head()
        starts = range(0, len(pcm), 2 * piece_samples)
        return b"".join(
            [
                head,
                *(encoder.encode(pcm[start : start + 2 * piece_samples]) for start in starts),
                encoder.finish(),
            ]
        )


@pytest.mark.parametrize("format_code", LIVE_CODECS)
@pytest.mark.parametrize(
    ("samples", "piece_samples"), [(1, 1), (5_000, 333), (70_001, 9_600), (200_000, 200_000)]
)
def test_another_decoder_hears_as_much_as_was_said(
    format_code: str, samples: int, piece_samples: int
) -> None:
    pcm = hum(samples)
    heard, rate_hz = soundfile.read(io.BytesIO(encoded(pcm, format_code, piece_samples=piece_samples)))
    frame_samples = (
        FORMATS[format_code].frame_samples * RATE_HZ / (FORMATS[format_code].frame_rate_hz or RATE_HZ)
    )
    assert 0 <= len(heard) * RATE_HZ / rate_hz - samples <= frame_samples
    if samples > RATE_HZ:
        said = np.frombuffer(pcm, "<i2") / 32_768
        assert np.sqrt(np.mean(heard**2)) == pytest.approx(np.sqrt(np.mean(said**2)), rel=0.1)


@pytest.mark.parametrize("format_code", LIVE_CODECS)
def test_the_label_stands_before_all_sound_and_sound_comes_with_the_first_piece(format_code: str) -> None:
    with LiveEncoder(format_code=format_code, sample_rate_hz=RATE_HZ, label=LABEL) as encoder:
        head = encoder.head()
        first = encoder.encode(hum(RATE_HZ * 4 // 10))
    if format_code == "mp3":
        assert ID3(io.BytesIO(head)).getall("TXXX:AIGC")[0].text == [LABEL]
    else:
        assert OggOpus(io.BytesIO(head + first))["aigc"] == [LABEL]
    heard, rate_hz = soundfile.read(io.BytesIO(head + first))
    assert len(heard) / rate_hz > 0.3


def test_a_child_that_dies_is_told_and_leaves_nothing() -> None:
    with LiveEncoder(format_code="mp3", sample_rate_hz=RATE_HZ, label=LABEL) as encoder:
        encoder.head()
        os.kill(encoder.pid, 9)
        with pytest.raises(LiveEncodingFailed):
            encoder.encode(hum(RATE_HZ))
        pid = encoder.pid
    assert not os.path.exists(f"/proc/{pid}")


def test_a_piece_that_ends_inside_a_sample_is_refused() -> None:
    with LiveEncoder(format_code="opus", sample_rate_hz=RATE_HZ, label=LABEL) as encoder:
        encoder.head()
        with pytest.raises(LiveEncodingFailed):
            encoder.encode(b"\0\0\0")


def test_a_stream_that_is_left_leaves_no_child() -> None:
    encoder = LiveEncoder(format_code="opus", sample_rate_hz=RATE_HZ, label=LABEL)
    encoder.head()
    assert os.path.exists(f"/proc/{encoder.pid}")
    encoder.close()
    encoder.close()
    assert not os.path.exists(f"/proc/{encoder.pid}")


def test_the_child_is_bounded_before_it_sees_any_sound() -> None:
    with LiveEncoder(format_code="mp3", sample_rate_hz=RATE_HZ, label=LABEL) as encoder:
        encoder.head()
        with open(f"/proc/{encoder.pid}/limits") as file:
            limits = {line[:25].strip(): line[25:].split()[0] for line in file}
    assert limits["Max cpu time"] == str(CHILD_CPU_SECONDS)
    assert limits["Max address space"].isdecimal()
    assert limits["Max core file size"] == "0"


def test_the_longest_job_can_be_heard_to_its_end() -> None:
    """A second of mp3 takes 0.011 s of processor; speech may last a third longer than it is estimated to."""
    assert MAX_JOB_AUDIO_MS / 1000 * 4 / 3 * 0.011 * 2 <= CHILD_CPU_SECONDS
