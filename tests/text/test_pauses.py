from __future__ import annotations

import pytest

from tts.text.pauses import pause_after_ms


@pytest.mark.parametrize(
    ("segment", "pause_ms"),
    [
        ("A sentence. ", 320),
        ("他说：“走吧。”", 320),
        ("Really?!", 320),
        ("前半句，", 130),
        ("a list: ", 130),
        ("cut between ", 0),
        ("没有标点", 0),
        ("The end of a paragraph.\n\n", 500),
        ("", 0),
    ],
)
def test_the_pause_follows_from_how_the_segment_ends(segment: str, pause_ms: int) -> None:
    assert pause_after_ms(segment) == pause_ms


def test_a_fast_speaker_rests_less() -> None:
    assert pause_after_ms("A sentence.", speed=2.0) == 160
