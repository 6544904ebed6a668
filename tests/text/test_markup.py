"""SSML and Markdown: what is honoured, what is left out, what is refused and where."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tts.text.cleaning import clean_text
from tts.text.errors import AnnotationInvalid, SsmlInvalid, TextRefused
from tts.text.markup import without_markup
from tts.text.ssml import Fault, SsmlFault


@pytest.mark.parametrize(
    ("ssml", "text"),
    [
        ('<speak>Hi<break time="500ms"/>you</speak>', "Hi[pause 500ms]you"),
        (
            "<speak>a<break time='1.5s'/>b<break strength='none'/>c<break/>d</speak>",
            "a[pause 1500ms]b c[pause 400ms]d",
        ),
        ('<speak>a<break time="99s"/>b</speak>', "a[pause 10000ms]b"),
        (
            "<?xml version='1.0'?>\n<speak version='1.1'><p>a</p><p><s>b.</s><s>c.</s></p></speak>",
            "a\n\nb.\nc.",
        ),
        ('<speak><sub alias="World Wide Web">WWW</sub></speak>', "World Wide Web"),
        ('<speak><phoneme alphabet="pinyin" ph="hao4">好</phoneme>奇</speak>', "[hao4]奇"),
        ('<speak><phoneme alphabet="x-amazon-pinyin" ph="ni3hao3">你好</phoneme></speak>', "[ni3][hao3]"),
        ('<speak><phoneme alphabet="sapi" ph="nü 3">女</phoneme></speak>', "[nü3]"),
        ('<speak><phoneme alphabet="arpabet" ph="R IH1 D">x</phoneme></speak>', "[R][IH1][D]"),
        ('<speak><phoneme alphabet="ipa" ph="rɪd">read</phoneme></speak>', "read"),
        ('<speak><phoneme alphabet="pinyin" ph="hoa9">好</phoneme></speak>', "好"),
        (
            "<speak><emphasis>very</emphasis> <emphasis level='none'>good</emphasis></speak>",
            "<strong>very</strong> good",
        ),
        ('<speak><audio src="http://x/y.wav">beep</audio>a<foo:bar x="1">b</foo:bar></speak>', "ab"),
        ("<speak>a &amp; b &lt;3 &#x41;&#66;<!-- no --><![CDATA[x<y]]></speak>", "a & b < 3 ABx < y"),
        ("<speak>好[breath]，<laughter>哈</laughter></speak>", "好[breath]，<laughter>哈</laughter>"),
        ('plain <break time="1s"/> text <sub alias="x">y</sub>', "plain [pause 1000ms] text x"),
        ("a <b>bold</b> 1 < 2 <p>", "a <b>bold</b> 1 < 2 <p>"),
        ('plain <prosody rate="slow">and <voice name="x">so</prosody>', "plain and so"),
    ],
)
def test_ssml(ssml: str, text: str):
    assert clean_text(ssml).text == text


@pytest.mark.parametrize(
    ("ssml", "fault", "place"),
    [
        ("<speak>a<b>c</speak>", Fault.NOT_CLOSED, "<b>"),
        ("<speak>a", Fault.NOT_CLOSED, "<speak>"),
        ("<speak>a</b></speak>", Fault.NOT_OPENED, "</b>"),
        ("<speak><a>x<b>y</a></b></speak>", Fault.CROSSED, "</a>"),
        ("<speak>a</speak><speak>b</speak>", Fault.AFTER_END, "<speak>b"),
        ("<speak>a < b</speak>", Fault.TAG, "<"),
        ("<speak>a &lol; b</speak>", Fault.ENTITY, "&lol;"),
        ('<!DOCTYPE x [<!ENTITY lol "lol">]><speak>&lol;</speak>', Fault.DOCUMENT_TYPE, "<!DOCTYPE"),
        ('<speak><!DOCTYPE x [<!ENTITY a "b">]>x</speak>', Fault.DOCUMENT_TYPE, "<!DOCTYPE"),
        ("<speak><audio><!DOCTYPE x></audio>x</speak>", Fault.DOCUMENT_TYPE, "<!DOCTYPE"),
    ],
)
def test_a_document_that_is_not_well_formed_is_refused_where_it_is_not(ssml: str, fault: Fault, place: str):
    with pytest.raises(SsmlInvalid) as caught:
        clean_text(ssml)
    (mistake,) = caught.value.details()["mistakes"]
    assert mistake["problem"] == fault.value
    at = ssml.index(place) if fault is not Fault.TAG else ssml.index("< b")
    assert mistake["start"] == at
    assert ssml[at : mistake["end"]] in (place, place.removesuffix("b"))


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# One\n\n## Two ##\nx", "One\n\nTwo\nx"),
        ("- a\n* b\n+ c\n1. d\n- [x] e\n> - f", "a\nb\nc\n1. d\ne\nf"),
        ("**a** *b* __c__ _d_ ~~e~~ `f` ***g***", "a b c d e f g"),
        ("好**重要**的", "好重要的"),
        ('see [here](https://a.b/c_(d) "t") and ![pic](x.png)', "see here and pic"),
        ("<https://a.b/c>", "https://a.b/c"),
        ("a\n\n---\n\nb\n***\nc", "a\n\nb\n\nc"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a , b\n\n1 , 2"),
        ("```python\nx = 1\n```\ny", "x = 1\n\ny"),
        ("**[hao4]**奇[h][ào]", "[hao4]奇[h][ào]"),
        ("2*3*4, a * b * c, snake_case_name, -5, x_1_", "2*3*4, a * b * c, snake_case_name, -5, x_1_"),
        ("[1] [见图3] #5 > 3 ~ 4", "[1] [见图3] #5 > 3 ~ 4"),
    ],
)
def test_markdown(markdown: str, text: str):
    assert clean_text(markdown).text == text


def test_stress_over_more_than_sixty_characters_is_left_out_and_the_words_stay() -> None:
    long, short = "很" * 61, "很" * 60
    assert without_markup(f"它<strong>{long}</strong>好。").text == f"它{long}好。"
    assert without_markup(f"它<strong>{short}</strong>好。").text == f"它<strong>{short}</strong>好。"
    assert without_markup(f"<speak><strong>{long}</strong></speak>").text == long


def test_the_place_of_a_mistake_is_that_in_what_was_sent():
    raw = '<speak>a<break time="1s"/>她[hoa4]奇</speak>'
    with pytest.raises(AnnotationInvalid) as caught:
        clean_text(raw)
    (mistake,) = caught.value.details()["mistakes"]
    assert raw[mistake["start"] : mistake["end"]] == "[hoa4]"


PIECES = st.sampled_from(
    ["<", ">", "</", "/>", "speak", "<speak>", "</speak>", "<p>", "</p>", '<break time="1s"/>', "&amp;", "&lt;", "&",
     "<!--", "-->", "*", "**", "_", "`", "~~", "#", "# ", "- ", "> ", "|", "---", "[", "](", ")", "a", "好", " ", "\n",
     "\u200b", "[breath]", "<strong>", "</strong>", "<sub alias='<p>'>", "</sub>"]
)  # fmt: skip


def place_of_fault_or_all(raw: str) -> tuple[int, int]:
    try:
        marked = without_markup(raw)
    except SsmlFault as fault:
        return fault.start, fault.end
    return marked.source_span(0, len(marked.text))


@settings(deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_no_text_breaks_it_and_cleaning_twice_changes_nothing(raw: str):
    start, end = place_of_fault_or_all(raw)
    assert 0 <= start <= end <= len(raw)
    try:
        text = clean_text(raw).text
    except TextRefused:
        return
    assert clean_text(text).text == text


@pytest.mark.parametrize(
    "piece", ["<p>", "<a ", "<!--", "&a", "**", "`", "[a](", "> ", "- ", "| ", "<![CDATA[", "_a ", "#"]
)
def test_hostile_texts_cost_no_more(piece: str):
    """20,000 characters of each: whatever grows with the square would be seen by the time limit of the tests."""
    raw = "<speak>" + piece * (18_000 // len(piece))
    for text in (raw, raw.removeprefix("<speak>")):
        with contextlib.suppress(TextRefused):
            clean_text(text)
