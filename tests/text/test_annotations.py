"""Annotations are told from ordinary brackets, kept whole, and written as each engine understands them."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypinyin.constants import PINYIN_DICT

from tts.text.annotation_inventory import SYLLABLES, split_syllable, with_tone, without_tone
from tts.text.annotations import (
    Kind,
    Mistake,
    Problem,
    counted_characters,
    mask,
    mistakes,
    tokens,
    whole_spans,
)
from tts.text.engine_forms import EngineForm, Part, for_engine
from tts.text.hints import hints_of
from tts.text.homophones import homophone


def annotations_in(text: str) -> list[tuple[str, str]]:
    return [(token.kind.value, token.value) for token in tokens(text) if token.kind is not Kind.TEXT]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("报道[j][ǐ]予好评", [("pinyin", "ji3")]),
        ("[hào][hao4][h][ào]", [("pinyin", "hao4")] * 3),
        (
            "[nǚ][lve4][lüè][n][ǚ]",
            [("pinyin", "nv3"), ("pinyin", "lve4"), ("pinyin", "lve4"), ("pinyin", "nv3")],
        ),
        ("走[m][en]", [("pinyin", "men5")]),
        ("[ma0]", [("pinyin", "ma5")]),
        ("[ha\u0300o]", [("pinyin", "hao4")]),
        ("I [R][IH1][K][ER0][D] it", [("arpabet", "R IH1 K ER0 D")]),
        ("[AH0]", [("arpabet", "AH0")]),
        ("[K][AE][T]", [("arpabet", "K AE T")]),
        ("好[breath]好[Quick_Breath][mn]", [("sound", "breath"), ("sound", "quick_breath"), ("sound", "mn")]),
        ("a <strong>b</strong> c", [("open", "strong"), ("close", "strong")]),
        ("<laughter>哈</ laughter>", [("open", "laughter"), ("close", "laughter")]),
        ("a[pause 500ms]b[pause:1.5s]c", [("pause", "500"), ("pause", "1500")]),
        ("[h][ào][breath][R][IH1][D]", [("pinyin", "hao4"), ("sound", "breath"), ("arpabet", "R IH1 D")]),
    ],
)
def test_annotations_are_found(text: str, found: list[tuple[str, str]]):
    assert annotations_in(text) == found
    assert mistakes(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "[1]", "[见图3]", "[sic]", "[OK]", "[A]", "[B]", "[K]", "[AH]", "[A][B][C]", "[S][T]", "[A1][B2]", "[x]",
        "see [fig2] and [ref1]", "a[n][i] = b[x][y]", "[déjà vu]", "[été]", "[très]", "[a]", "[men]", "[]", "[...]",
        "[2024-05-01]", "List<string>", "<b>bold</b>", "a < b > c", "[two words]", "[pause for thought]",
        r"\[breath]", r"\[hao9]", r"\<strong>", "[noon]", "[other]",
    ],
)  # fmt: skip
def test_ordinary_brackets_are_text(text: str):
    assert annotations_in(text) == []
    assert mistakes(text) == []


@pytest.mark.parametrize(
    ("text", "problem", "place", "suggestion"),
    [
        ("她[hoa4]奇", Problem.PINYIN, "[hoa4]", "[hao4]"),
        ("她[hao9]奇", Problem.PINYIN, "[hao9]", "[hao4]"),
        ("[haò][haoò]", Problem.PINYIN, "[haoò]", "[hào]"),
        ("see [hoà]", Problem.PINYIN, "[hoà]", "[hào]"),
        ("[h][aoo4]", Problem.PINYIN, "[h][aoo4]", "[h][ào]"),
        ("[R][I1][K][ER0][D]", Problem.ARPABET, "[I1]", "[IH1]"),
        ("[R][IH9][K]", Problem.ARPABET, "[IH9]", "[IH1]"),
        ("[K2][AE1][T]", Problem.ARPABET, "[K2]", "[K]"),
        ("ha [laugher] ha", Problem.SOUND, "[laugher]", "[laughter]"),
        ("[sighs]", Problem.SOUND, "[sighs]", "[sigh]"),
        ("[breathe]", Problem.SOUND, "[breathe]", "[breath]"),
        ("[quick breath]", Problem.SOUND, "[quick breath]", "[quick_breath]"),
        ("[pause 11s]", Problem.PAUSE, "[pause 11s]", "[pause 10s]"),
        ("<strng>a", Problem.TAG, "<strng>", "<strong>"),
        ("<strong>a", Problem.NOT_CLOSED, "<strong>", "</strong>"),
        ("a</laughter>", Problem.NOT_OPENED, "</laughter>", "<laughter>"),
        ("<strong> </strong>", Problem.EMPTY, "<strong> </strong>", ""),
        (f"<strong>{'a' * 61}</strong>", Problem.TOO_LONG, f"<strong>{'a' * 61}</strong>", ""),
    ],
)
def test_mistakes_say_where_and_what_was_probably_meant(
    text: str, problem: Problem, place: str, suggestion: str
):
    found = [mistake for mistake in mistakes(text) if text[mistake.start : mistake.end] == place]
    start = text.index(place)
    assert found == [Mistake(problem, start, start + len(place), suggestion)]


def test_crossed_spans_are_a_mistake():
    assert [mistake.problem for mistake in mistakes("<strong>a<laughter>b</strong>c</laughter>")] == [
        Problem.NOT_CLOSED,
        Problem.NOT_OPENED,
    ]


def test_an_annotation_counts_as_one():
    assert counted_characters("报道[j][ǐ]予") == 4
    assert counted_characters("<strong>好</strong>") == 2
    assert counted_characters("a [R][IH1][D] b") == 5
    assert counted_characters("[1]") == 3


def test_what_must_stay_whole():
    text = "a[j][ǐ]<strong>b[breath]</strong>c"
    assert [text[start:end] for start, end in whole_spans(text)] == ["[j][ǐ]", "<strong>b[breath]</strong>"]


def test_each_engine_is_given_its_own_form():
    text = "她[h][ào]奇[breath]，<strong>很</strong>[R][IH1][D]。"
    assert for_engine(text, EngineForm.COSYVOICE3) == [Part(text)]
    assert for_engine(text, EngineForm.COSYVOICE2) == [
        Part(f"她{homophone('hao4')}奇[breath]，<strong>很</strong>。")
    ]
    assert for_engine(text, EngineForm.PLAIN) == [Part(f"她{homophone('hao4')}奇，很。")]
    assert homophone("hao4") in "耗号浩"


def test_pauses_part_what_the_engine_is_given():
    assert for_engine("<strong>a[pause 1s]b</strong>[pause 20ms]", EngineForm.COSYVOICE3) == [
        Part("<strong>a</strong>", 1000),
        Part("<strong>b</strong>", 20),
    ]
    assert for_engine("", EngineForm.PLAIN) == []


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("a<|endofprompt|>b", "a b"),
        ("<<||endofprompt||>>", "|endofprompt|"),
        ("<[breath]|im_start|[breath]>", "[breath]|im_start|[breath]"),
        ("option [B] or <laughter>", "option B or laughter"),
        (r"\[breath]", "breath"),
    ],
)
def test_nothing_else_steers_the_model(text: str, given: str):
    assert [part.text for part in for_engine(text, EngineForm.COSYVOICE3)] == [given]


@pytest.mark.parametrize(
    ("syllable", "written"),
    [
        ("hao4", "[h][ào]"),
        ("lve4", "[l][vè]"),
        ("nv3", "[n][ǚ]"),
        ("er2", "[ér]"),
        ("jia5", "[j][ià]"),
        ("ye3", "[y][ě]"),
    ],
)
def test_pinyin_in_the_tokens_of_the_model(syllable: str, written: str):
    assert for_engine(f"[{syllable}]", EngineForm.COSYVOICE3) == [Part(written)]


def test_every_syllable_of_the_dictionary_is_known():
    """Interjections without a vowel, and letters for dialects, are none."""
    readings = {without_tone(reading)[0] for known in PINYIN_DICT.values() for reading in known.split(",")}
    assert readings - SYLLABLES == {
        "n", "ng", "m", "hng", "len", "hm", "ê", "fiao", "cei", "wong", "din", "biang", "bong",
    }  # fmt: skip
    for syllable in SYLLABLES:
        initial, final = split_syllable(syllable)
        assert initial + final == syllable
        for tone in (1, 2, 3, 4):
            assert without_tone(with_tone(syllable, tone)) == (syllable, tone)


PIECES = st.sampled_from(
    ["[", "]", "<", ">", "|", "\\", "/", "h", "ào", "[h]", "[ào]", "[hao4]", "[IH1]", "[R]", "[breath]", "<strong>",
     "</strong>",
     "</laughter>", "<laughter>", "[pause 1s]", "好", " ", "a", "<|", "|>", "1"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_no_text_breaks_the_rules(text: str):
    found = tokens(text)
    assert "".join(text[token.start : token.end] for token in found) == text
    assert len(mask(text)) == len(text)
    assert all(text[mistake.start : mistake.end] for mistake in mistakes(text))
    whole = whole_spans(text)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(whole))
    for form in EngineForm:
        for part in for_engine(text, form):
            assert "<|" not in part.text
            assert "|>" not in part.text
            assert not re.search(r"pause \d", part.text) or "pause" in mask(text)
            if form is EngineForm.PLAIN:
                assert not set("[]<>") & set(part.text)


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ("他很[haoo]学，[hao]的", [("[haoo]", "[hǎo]"), ("[hao]", "[hǎo]")]),
        ("[hao]的[hao]的", [("[hao]", "[hǎo]")]),
        # Obeyed, far from Chinese, a word, made ordinary by hand.
        ("他[hào]学[h][ào]", []), ("见[图]和[1]", []), ("say [hao] now", []), ("点[button]吧", []), ("他\\[hao]学", []),
    ],
)  # fmt: skip
def test_pinyin_without_its_tone_is_hinted_at_and_read(text: str, hints: list[tuple[str, str]]) -> None:
    assert [(hint.written, hint.meant) for hint in hints_of(text)] == hints
    assert mistakes(text) == []
