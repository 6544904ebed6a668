"""A text as people read it in subtitles."""

from __future__ import annotations

import pytest

from tts.text.shown import shown_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Hello [breath] there [laughter].", "Hello there."),
        ("你[hào]，[pause 1s]再见。\n", "你hào，再见。"),
        ("<strong>Very</strong> good \\[breath] [1].", "Very good [breath] [1]."),
        ("A [R][IH1][K][ER0][D] word.", "A r-ih-k-er-d word."),
        ("[breath]", ""),
    ],
)
def test_annotations_are_not_shown(text: str, shown: str):
    assert shown_text(text) == shown
