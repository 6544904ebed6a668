"""From what is spoken back to what was typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts.text.cleaning import clean_text
from tts.text.typed_places import spoken_places, typed_places


def typed(raw: str, character: str) -> list[int]:
    """Where a character of the cleaned text was typed."""
    clean = clean_text(raw).text
    places = typed_places(raw, clean)
    return [places[at] for at, sign in enumerate(clean) if sign == character and at in places]


@pytest.mark.parametrize(
    "raw",
    [
        "银行",
        "  \u200b银\u200b行。",
        "# 标题\r\n\r\n**银行**很大😀",
        "<speak>去<break time='1s'/>银行吧</speak>",
        "[hào]学生去银行",
        "他说<laughter>银行</laughter>。",
    ],
)
def test_a_character_is_found_where_it_was_typed(raw: str) -> None:
    assert typed(raw, "行") == [raw.index("行")]


def test_what_was_not_typed_as_it_stands_has_no_place() -> None:
    raw = '<speak>去<sub alias="银行">YH</sub>行走</speak>'
    assert clean_text(raw).text == "去银行行走"
    assert typed(raw, "行") == [raw.index("行走")]


def test_numbers_in_words_have_no_place() -> None:
    text, spoken = "二月有20天，行吗", "二月有二十天，行吗"
    places = spoken_places(text, spoken)
    assert places[spoken.index("行")] == text.index("行")
    assert spoken.index("十") not in places


@given(st.text(st.sampled_from("银行长好 *#_<|>[]\n\u200ba1"), max_size=30))
def test_a_place_always_holds_the_character(raw: str) -> None:
    try:
        clean = clean_text(f"好{raw}").text
    except Exception:  # what is refused has no places
        return
    for at, place in typed_places(f"好{raw}", clean).items():
        assert f"好{raw}"[place] == clean[at]
