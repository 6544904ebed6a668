"""Segments: nothing lost, nothing doubled, cut where a reader would pause."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tts.text.characters import has_speech, splits_character
from tts.text.cleaning import clean_text
from tts.text.errors import TextRefused
from tts.text.estimate import estimate_audio_ms
from tts.text.limits import (
    FIRST_SEGMENT_MS,
    MAX_SEGMENT_CHARACTERS,
    MAX_SEGMENT_MS,
    MIN_SEGMENT_MS,
    PREFERRED_SEGMENT_MS,
)
from tts.text.segmentation import segment

LINE = "从前有座山，山里有座庙，庙里有个老和尚。"


def assert_well_cut(text: str) -> list[str]:
    segments = segment(text)
    assert "".join(segments) == text
    assert all(0 < len(part) <= MAX_SEGMENT_CHARACTERS for part in segments)
    assert all(has_speech(part) for part in segments)
    assert all(estimate_audio_ms(spoken_part(part)) <= MAX_SEGMENT_MS for part in segments)
    return segments


def spoken_part(part: str) -> str:
    """The segment without the signs at its ends that nobody speaks."""
    spoken = [index for index, character in enumerate(part) if has_speech(character)]
    return part[spoken[0] : spoken[-1] + 1]


def test_a_short_text_is_one_segment() -> None:
    assert segment("") == []
    for text in ("好", "你好，很高兴认识你。", "Good morning! How are you?", "3.14"):
        assert segment(text) == [text]


def test_seven_hundred_and_twenty_chinese_characters_without_punctuation() -> None:
    text = "".join(chr(0x4E00 + index) for index in range(720))
    segments = assert_well_cut(text)
    assert len(segments) >= 7
    assert all(estimate_audio_ms(part) > FIRST_SEGMENT_MS for part in segments)


def test_one_word_of_five_thousand_letters() -> None:
    text = "".join(itertools.islice(itertools.cycle("abcdefghij"), 5_000))
    segments = assert_well_cut(text)
    assert len(segments) == -(-5_000 // len(segments[0]))


def test_a_long_text_is_cut_after_sentences_only() -> None:
    segments = assert_well_cut(LINE * 60)
    assert all(part.endswith("。") for part in segments)
    assert all(estimate_audio_ms(part) <= PREFERRED_SEGMENT_MS for part in segments)
    assert estimate_audio_ms(segments[0]) <= FIRST_SEGMENT_MS
    # The rest is filled as far as whole sentences allow.
    assert all(estimate_audio_ms(part + LINE) > PREFERRED_SEGMENT_MS for part in segments[1:-1])


def test_english_is_cut_after_sentences_with_their_spaces() -> None:
    sentence = 'He said: "It is 3.50 dollars." Then the man walked away slowly.'
    segments = assert_well_cut(" ".join([sentence] * 12))
    assert len(segments) >= 4
    assert all(part.rstrip().endswith(('."', ".")) for part in segments)
    assert all(not part.startswith(" ") for part in segments)


def test_a_sentence_that_is_too_long_is_cut_after_clauses() -> None:
    text = "，".join(["我们沿着河边慢慢走了很久很久"] * 20) + "。"
    segments = assert_well_cut(text)
    assert all(part.endswith(("，", "。")) for part in segments)


def test_a_clause_that_is_too_long_is_cut_between_words() -> None:
    segments = assert_well_cut("international cooperation " * 60 + "ends")
    assert all(part.endswith("cooperation ") or part == segments[-1] for part in segments)


def test_one_sentence_that_fits_is_not_cut() -> None:
    text = "，".join(["我们沿着河边慢慢走"] * 9) + "。"
    assert PREFERRED_SEGMENT_MS < estimate_audio_ms(text) <= MAX_SEGMENT_MS
    assert segment(text) == [text]


def test_a_paragraph_is_a_better_place_than_a_sentence() -> None:
    segments = assert_well_cut(LINE * 3 + "\n\n" + LINE * 8)
    assert segments[:2] == [LINE, LINE * 2 + "\n\n"]


@pytest.mark.parametrize(
    "whole",
    [
        "3.14",
        "1,000,000",
        "10:30",
        "https://example.com/a.b?c=d!e;f,g",
        "someone@example.co.uk",
        "v2.0.1",
        "2024年",
        "iPhone15",
        "don't",
        "$50",
    ],
)
def test_what_is_one_word_is_not_cut(whole: str) -> None:
    for filler in range(60, 140, 3):
        segments = assert_well_cut("xxx" + " y" * filler + f" {whole} " + "z " * 100)
        assert any(whole in part for part in segments), (filler, segments)


@pytest.mark.parametrize(
    "phrase",
    [
        "ask Dr. Smith",
        "J. R. R. Tolkien wrote",
        "some fruit, e.g. this",
        "in the U.S. Army",
        "take No. 5",
        "it is approx. half",
        "at 10:30 a.m. Monday",
        "the end... of it",
    ],
)
def test_a_full_stop_inside_a_sentence_is_no_end(phrase: str) -> None:
    for filler in range(8, 40):
        text = (
            "Here is a first sentence. " * 3
            + "w " * filler
            + phrase
            + " and so on. "
            + "This comes last. " * 9
        )
        segments = assert_well_cut(text)
        assert any(phrase in part for part in segments), (filler, segments)


def test_a_short_end_is_joined_to_what_comes_before() -> None:
    for count in range(1, 12):
        segments = assert_well_cut(LINE * count + "完。")
        assert estimate_audio_ms(segments[-1]) >= MIN_SEGMENT_MS


def test_signs_without_a_word_are_joined_to_a_neighbour() -> None:
    raw = "……" * 4 + "！" * 8 + "x" * 600 + "!?" * 8 + "y" * 268 + "。" * 16
    assert_well_cut(clean_text(raw).text)


def test_limits_are_parameters() -> None:
    segments = segment("aaaa bbbb cccc dddd", max_characters=40, max_ms=400, preferred_ms=350, first_ms=350)
    assert segments == ["aaaa ", "bbbb ", "cccc ", "dddd"]


def test_what_a_person_sees_as_one_character_is_not_cut() -> None:
    for whole in (
        "e\u0301",
        "각".encode().decode(),
        "\u1100\u1161\u11a8",
        "👨‍👩‍👧",
        "👍🏽",
        "🇨🇳",
        "क्षि",
        "❤\ufe0f",
    ):
        for position in range(1, len(whole)):
            assert splits_character(whole, position), (whole, position)
    assert not splits_character("🇨🇳🇩🇪", 2)
    assert not splits_character("ab", 1)
    assert not splits_character("각가", 1)
    assert splits_character("가\u11a8", 1)
    segments = segment("e\u0323\u0301\u0302" * 900)
    assert "".join(segments) == "e\u0323\u0301\u0302" * 900
    assert all(part.startswith("e") for part in segments)


_WORDS = st.sampled_from(
    [
        "你好", "世界", "。", "，", "！", "？", "；", "……", "——", "、", "\n", "\n\n", " ", "  ", "Hello", "world",
        ". ", ", ", "! ", "? ", "Dr. ", "3.14", "1,000", "https://a.b/c?d", "“", "”", "(", ")", "《", "》", "a",
        "x" * 70, "字" * 70, "-", "!?!?!?", "e\u0301", "각", "กำ", "2024年", "\"", "'", "$5", "50%",
    ]
)  # fmt: skip
_TEXTS = st.one_of(st.text(max_size=700), st.lists(_WORDS, max_size=250).map("".join))


@settings(max_examples=300, deadline=None)
@given(_TEXTS)
def test_segments_of_cleaned_text_are_always_well_cut(raw: str) -> None:
    try:
        text = clean_text(raw).text
    except TextRefused:
        return
    segments = assert_well_cut(text)
    bounds = itertools.accumulate(len(part) for part in segments)
    assert not any(splits_character(text, bound) for bound in bounds if bound < len(text))


@settings(max_examples=200, deadline=None)
@given(_TEXTS, st.integers(1, 60), st.integers(100, 3_000), st.integers(50, 5_000))
def test_any_text_and_limits_give_the_whole_text_back(
    text: str, max_characters: int, max_ms: int, preferred_ms: int
) -> None:
    segments = segment(
        text, max_characters=max_characters, max_ms=max_ms, preferred_ms=preferred_ms, first_ms=preferred_ms
    )
    assert "".join(segments) == text
    assert all(0 < len(part) <= max_characters for part in segments)
