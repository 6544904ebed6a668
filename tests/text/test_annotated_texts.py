"""Annotations on their way: refused where mistaken, never cut, priced as a word, never taken for text."""

from __future__ import annotations

import pytest
from django.utils.translation import override
from hypothesis import given, settings
from hypothesis import strategies as st

from tts.text.annotations import whole_spans
from tts.text.characters import Script, has_speech
from tts.text.cleaning import clean_text
from tts.text.errors import AnnotationInvalid, TextUnspeakable
from tts.text.estimate import MS_PER_HAN_CHARACTER, estimate_audio_ms
from tts.text.pauses import SENTENCE_PAUSE_MS, pause_after_ms
from tts.text.segmentation import segment


def test_a_mistake_is_refused_with_its_place_in_what_was_sent():
    with pytest.raises(AnnotationInvalid) as caught:
        clean_text("🎉她[hoa4]奇，[laugher]。")
    assert str(caught.value.text()) == (
        "Characters 3 to 8 of the text: this is no Mandarin syllable with a tone; write pinyin with its tone, such as "
        "[hào], [hao4] or [h][ào]. Did you mean [hao4]? To have it read as it stands, write a backslash before each "
        "bracket."
    )
    first, second = caught.value.details()["mistakes"]
    assert (first["problem"], first["start"], first["end"], first["suggestion"]) == ("pinyin", 2, 8, "[hao4]")
    assert (second["problem"], second["start"], second["end"]) == ("sound", 10, 19)
    assert "[laughter]" in second["allowed"]


SYLLABLE = "write pinyin with its tone, such as [hào], [hao4] or [h][ào]"
READ_AS_IT_STANDS = " To have it read as it stands, write a backslash before each bracket."


@pytest.mark.parametrize(
    ("text", "advice", "chinese", "followed"),
    [
        (
            "你[h][xǎ]吗",
            f"{SYLLABLE}. Did you mean [h][ǎ]?{READ_AS_IT_STANDS}",
            "请写出带声调的拼音",
            ["你[h][ǎo]吗", r"你\[h]\[xǎ]吗"],
        ),
        ("say [R][IH9] it", "write one in each bracket", "每个方括号里写一个音素", ["say [R][IH1] it"]),
        ("好[laugher]的", "[breath] [clucking]", "[breath] [clucking]", ["好[breath]的", r"好\[laugher]的"]),
        ("好[pause 11s]的", "such as [pause 1.5s]", "例如 [pause 1.5s]", ["好[pause 6s][pause 5s]的"]),
        (
            "<stron>好</stron>的",
            "or remove it: <laughter> <strong>.",
            "请删去，或改为下列之一：<laughter> <strong>",
            ["<strong>好</strong>的", "好的"],
        ),
        (
            "<strong>好的",
            "write </strong> behind the words",
            "之后写上 </strong>",
            ["<strong>好</strong>的", "好的"],
        ),
        (
            "好</laughter>的",
            "write <laughter> before the words",
            "之前写上 <laughter>",
            ["<laughter>好</laughter>的"],
        ),
        (
            "好<strong></strong>的",
            "write words between them, or remove both.",
            "把两个都删去",
            ["好<strong>的</strong>"],
        ),
        (
            "[IH1]" * 25 + " so",
            "put spaces between words.",
            "在单词之间加空格",
            [("[IH1]" * 12 + " ") * 2 + "so"],
        ),
    ],
)
def test_a_refusal_says_what_to_do_and_what_it_says_helps(
    text: str, advice: str, chinese: str, followed: list[str]
):
    with pytest.raises(AnnotationInvalid) as caught:
        clean_text(text)
    with override("en"):
        told = caught.value.text()
        assert advice in told
        assert caught.value.details()["mistakes"][0]["message"] in told
        # A tag that is missing is no correction of the one that is there.
        assert "Did you mean </strong>" not in told
    with override("zh-hans"):
        assert chinese in caught.value.text()
    for better in followed:
        assert clean_text(better).text


def test_what_only_cleaning_puts_together_is_checked_too():
    with pytest.raises(AnnotationInvalid):
        clean_text("她[ha\u200bo9]奇")


def test_an_annotation_is_one_character_of_no_script():
    clean = clean_text("报道[j][ǐ]予", supported_languages=["zh"], max_characters=4)
    assert (clean.text, clean.characters, clean.scripts) == ("报道[j][ǐ]予", 4, {Script.HAN})


@pytest.mark.parametrize("text", ["[breath]", "[pause 1s]", "[laughter]！[pause 20ms]"])
def test_sounds_and_pauses_alone_are_nothing_to_say(text: str):
    with pytest.raises(TextUnspeakable):
        clean_text(text)


def test_a_syllable_takes_as_long_as_a_character():
    assert estimate_audio_ms("报道[j][ǐ]予") == estimate_audio_ms("报道给予") == 4 * MS_PER_HAN_CHARACTER
    assert estimate_audio_ms("报道给予[pause 9s]") == 4 * MS_PER_HAN_CHARACTER


def test_a_pause_stays_with_what_it_follows_and_is_the_only_one():
    first = "今天的天气真的很不错，我们一起去公园里散步吧，好不好。[pause 800ms]"
    second = "明天的天气也会很不错，我们再一起去河边走走吧，好不好。"
    assert segment(first + second, first_ms=6_000, preferred_ms=6_000) == [first, second]
    assert pause_after_ms(first) == 0
    assert pause_after_ms("好。[breath]") == SENTENCE_PAUSE_MS
    assert pause_after_ms("<strong>好。</strong>") == SENTENCE_PAUSE_MS


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["好", "好，", "。", "[h][ào]", "[hao4]", "[R][IH1][D]", "[breath]", "<strong>好的。好</strong>",
             " word", "[pause 1s]",
             "<strong>" + "长" * 55 + "</strong>", "[1]", "\n"]
        ),
        min_size=1,
        max_size=300,
    ).map("".join),
    st.sampled_from([300, 80]),
)  # fmt: skip
def test_no_cut_goes_through_an_annotation(raw: str, most: int):
    try:
        text = clean_text("始" + raw).text
    except AnnotationInvalid:
        return
    pieces = segment(text, max_characters=most)
    assert "".join(pieces) == text
    bounds = {len("".join(pieces[:count])) for count in range(len(pieces))}
    assert not [(start, end) for start, end in whole_spans(text) if any(start < at < end for at in bounds)]
    assert all(len(piece) <= max(most, 80 + 2 * 60) for piece in pieces)
    assert has_speech(pieces[0])
