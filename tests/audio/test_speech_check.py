"""What is found in speech without hearing it."""

from __future__ import annotations

import numpy as np
import pytest

from tts.audio.speech_check import SpeechCheck, check_speech

RATE_HZ = 24_000


def tone(milliseconds: int, *, amplitude: float = 0.2) -> bytes:
    times = np.arange(RATE_HZ * milliseconds // 1000) / RATE_HZ
    wave = amplitude * np.sin(2 * np.pi * 200 * times)
    return (np.clip(wave, -1, 1) * 32_767).astype("<i2").tobytes()


def silence(milliseconds: int) -> bytes:
    return bytes(RATE_HZ * milliseconds // 1000 * 2)


def check(pcm: bytes, expected_ms: int = 4_000) -> SpeechCheck:
    return check_speech(pcm, sample_rate_hz=RATE_HZ, expected_ms=expected_ms)


def test_speech_of_the_expected_length_is_as_good_as_can_be() -> None:
    found = check(tone(4_000))
    assert found == SpeechCheck(
        score=100, findings=(), duration_ratio=1.0, longest_silence_ms=0, clipped_share=0.0
    )
    assert not found.is_bad


@pytest.mark.parametrize(
    ("pcm", "findings", "is_bad"),
    [
        (b"", ("silent", "too_short"), True),
        (silence(4_000), ("silent",), True),
        (tone(4_000, amplitude=0.002), ("silent",), True),
        (tone(800), ("too_short",), True),
        (tone(16_000), ("too_long",), True),
        (tone(4_000, amplitude=1.5), ("clipped",), True),
        (tone(1_000) + silence(3_500) + tone(1_000), ("long_silence",), False),
        (tone(1_000) + silence(2_500) + tone(1_000), (), False),
        # At the ends: they belong to the pauses.
        (silence(3_500) + tone(1_500), (), False),
    ],
)
def test_what_is_wrong_is_found(pcm: bytes, findings: tuple[str, ...], is_bad: bool) -> None:
    found = check(pcm)
    assert found.findings == findings
    assert found.is_bad is is_bad
    assert found.score < 100 or not findings


@pytest.mark.parametrize(("milliseconds", "expected_ms"), [(1_300, 400), (300, 900), (2_900, 400)])
def test_a_single_word_may_stray_further(milliseconds: int, expected_ms: int) -> None:
    assert check(tone(milliseconds), expected_ms).findings == ()


def test_what_nobody_expected_is_not_judged_by_its_length() -> None:
    found = check(tone(9_000), 0)
    assert (found.duration_ratio, found.findings, found.score) == (None, (), 100)


def test_the_score_falls_with_the_length_and_is_nothing_for_silence() -> None:
    scores = [check(tone(ms)).score for ms in (4_000, 7_000, 9_000, 12_000, 16_000)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 100 > scores[2] > scores[-1] > 0
    assert check(silence(4_000)).score == 0


def test_it_is_plain_json() -> None:
    assert check(tone(4_000)).as_dict() == {
        "score": 100,
        "findings": [],
        "duration_ratio": 1.0,
        "longest_silence_ms": 0,
        "clipped_share": 0.0,
        "similarity": None,
    }


@pytest.mark.parametrize(
    ("similarity", "may_differ", "findings"),
    [
        (0.72, False, ()),
        (0.31, False, ()),
        (0.3, False, ("other_speaker",)),
        (-0.2, False, ("other_speaker",)),
        # A role or an emotion is asked for.
        (0.1, True, ()),
        (None, False, ()),
    ],
)
def test_another_speaker_is_found_where_the_engine_can_tell(
    similarity: float | None, may_differ: bool, findings: tuple[str, ...]
) -> None:
    found = check_speech(
        tone(4_000), sample_rate_hz=RATE_HZ, expected_ms=4_000, similarity=similarity, may_differ=may_differ
    )
    assert found.findings == findings
    assert found.similarity == similarity
    assert found.is_bad == found.is_another_speaker == bool(findings)
    assert found.score == (60 if findings else 100)


def test_speech_with_another_fault_is_not_bad_for_its_speaker_alone() -> None:
    found = check_speech(tone(800), sample_rate_hz=RATE_HZ, expected_ms=4_000, similarity=0.1)
    assert found.findings == ("too_short", "other_speaker")
    assert not found.is_another_speaker
