"""What is told quickly of the characters of a book is what the rules, asked one by one, would say."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tts.text import estimate, segmentation
from tts.text.characters import is_speakable
from tts.text.cleaning import clean_line
from tts.text.estimate import character_times_ms
from tts.text.limits import MAX_UNSPOKEN_RUN

# Letters, signs and spaces of several scripts; what joins, combines and turns; pairs that the rules tell apart.
PIECES = st.sampled_from(
    "ab Zé1.,;:!?…—\n\r\t。，、！？；：“”「」()《》-_%你好ぁカ한ᄀ\u0301\u200d\u00a0\u3000🇩🇪🏽"
) | st.sampled_from(
    (
        "the end. ",
        "Mr. ",
        "e.g. ",
        "3.5",
        "他说：“走。”",
        "……",
        "!" * 17,
        " -" * 9,
        "\n\n",
        " \n ",
        "\u0301" * 12,
    )
)
TEXTS = st.lists(PIECES, max_size=60).map("".join)


@given(TEXTS)
def test_every_cut_is_as_good_as_the_rule_says(text: str) -> None:
    told = segmentation._cuts_of(text)
    asked = [segmentation._cut_before(text, at) for at in range(len(text))]
    assert told == [*asked, segmentation.Cut.PARAGRAPH]


@given(TEXTS)
def test_of_pause_marks_in_a_row_only_the_first_one_adds(text: str) -> None:
    asked: list[int] = []
    paused_ms = 0
    for character in text:
        pause_ms = estimate._pause_ms(character)
        if pause_ms:
            asked.append(max(0, pause_ms - paused_ms))
            paused_ms = max(pause_ms, paused_ms)
        else:
            asked.append(estimate._character_ms(character))
            paused_ms = paused_ms if character.isspace() else 0
    assert character_times_ms(text) == asked


@given(TEXTS)
def test_no_run_of_signs_is_long_and_short_ones_stay(text: str) -> None:
    cleaned = clean_line(text)
    runs = [
        "".join(run)
        for is_word, run in itertools.groupby(cleaned, lambda one: is_speakable(one) or one == "\u0301")
        if not is_word
    ]
    assert all(len(run) <= MAX_UNSPOKEN_RUN for run in runs)
    short = "a" + "!" * MAX_UNSPOKEN_RUN + "b"
    assert (clean_line(short), clean_line(short.replace("!b", "!!b"))) == (short, short)
