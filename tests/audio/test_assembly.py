"""Segments joined into one file: every sample in its place, whatever their number, in little memory."""

from __future__ import annotations

import io
import tracemalloc
import wave
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from tts.audio.assembly import write_joined
from tts.audio.wav import silence, wav_file
from tts.text.limits import MAX_JOB_SEGMENTS

RATE_HZ = 24_000
# Of one block of samples, of the peaks and of 8,000 lengths; a second of silence alone has 48,000 bytes.
MEMORY_BYTES = 4 * 2**20


def opener(content: bytes) -> partial[BinaryIO]:
    return partial(io.BytesIO, content)


def test_every_segment_is_followed_by_its_own_pause_but_the_last(tmp_path: Path) -> None:
    sounds = [bytes([number, 1]) * 240 for number in range(1, 4)]
    with (tmp_path / "joined.wav").open("wb") as target:
        peaks = write_joined(
            cast(BinaryIO, target),
            [opener(wav_file(sound, sample_rate_hz=RATE_HZ)) for sound in sounds],
            pauses_ms=[10, 0, 99],
            label="{}",
            peak_count=4,
        )
    with wave.open(str(tmp_path / "joined.wav")) as joined:
        pcm = joined.readframes(joined.getnframes())
    assert pcm == sounds[0] + silence(duration_ms=10, sample_rate_hz=RATE_HZ) + sounds[1] + sounds[2]
    assert len(peaks) == 4


def test_as_many_as_a_job_may_have_take_no_more_memory_than_a_few(tmp_path: Path) -> None:
    sound = wav_file(b"\1\1" * 24, sample_rate_hz=RATE_HZ)
    openers = [opener(sound)] * MAX_JOB_SEGMENTS
    pauses_ms = [1_000] * MAX_JOB_SEGMENTS
    with (tmp_path / "joined.wav").open("wb") as target:
        tracemalloc.start()
        try:
            write_joined(cast(BinaryIO, target), openers, pauses_ms=pauses_ms, label="{}", peak_count=240)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    with wave.open(str(tmp_path / "joined.wav")) as joined:
        assert joined.getnframes() == 24 * MAX_JOB_SEGMENTS + RATE_HZ * (MAX_JOB_SEGMENTS - 1)
    assert most < MEMORY_BYTES


@pytest.mark.parametrize("pauses_ms", [[], [1], [1, 2, 3]])
def test_there_is_one_pause_for_each(tmp_path: Path, pauses_ms: list[int]) -> None:
    sound = opener(wav_file(b"\1\1", sample_rate_hz=RATE_HZ))
    target = io.BytesIO()
    with pytest.raises(ValueError, match="one pause"):
        write_joined(target, [sound, sound], pauses_ms=pauses_ms, label="{}", peak_count=4)
    assert target.getvalue() == b""
