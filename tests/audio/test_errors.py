"""Refusals of clips: stable codes, statuses, and messages that fill in."""

from __future__ import annotations

import pytest

from tts.audio import errors
from tts.audio.decode import Refused
from tts.audio.limits import MAX_CLIP_SECONDS


def all_refusals() -> list[type[errors.ClipRejected]]:
    return [errors.ClipRejected, *errors.ClipRejected.__subclasses__()]


def test_codes_are_stable_and_unique() -> None:
    assert sorted(refusal.code for refusal in all_refusals()) == [
        "clip_empty",
        "clip_format_not_supported",
        "clip_no_audio",
        "clip_no_speech",
        "clip_quality_rejected",
        "clip_rejected",
        "clip_sample_rate_not_supported",
        "clip_silent",
        "clip_too_complex",
        "clip_too_large",
        "clip_too_long",
        "clip_too_many_channels",
        "clip_too_short",
        "clip_unreadable",
    ]


@pytest.mark.parametrize("refusal", all_refusals(), ids=lambda refusal: refusal.code)
def test_every_message_fills_in(refusal: type[errors.ClipRejected]) -> None:
    params = {
        "clip_too_short": {"duration_s": 2.96},
        "clip_too_many_channels": {"channel_count": 12},
        "clip_sample_rate_not_supported": {"sample_rate_hz": 4_000},
        "clip_quality_rejected": {"report": None},
    }.get(refusal.code, {})
    text = refusal(**params).text()
    assert "%(" not in text
    assert text.endswith(".")


def test_a_clip_just_under_the_limit_is_not_rounded_up_to_it() -> None:
    assert "lasts 2.9 seconds" in errors.ClipTooShort(duration_s=2.99).text()
    assert "lasts 2.9 seconds" in errors.ClipTooShort(duration_s=139_200 / 48_000).text()


def test_messages_name_the_limits_in_force() -> None:
    assert f"longer than {MAX_CLIP_SECONDS:.0f} seconds" in errors.ClipTooLong().text()
    assert "larger than 15 MiB" in errors.ClipTooLarge().text()


def test_every_code_of_the_child_has_an_error() -> None:
    assert Refused("clip_too_long").code in errors.REFUSAL_BY_CODE
    assert set(errors.REFUSAL_BY_CODE) == {refusal.code for refusal in all_refusals()} - {
        "clip_rejected",
        "clip_empty",
        "clip_too_large",
        "clip_quality_rejected",
    }
