"""What is written in digits and signs is said in words, in the sentence's own language; everything else stays."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tts.text.annotations import Kind, tokens
from tts.text.normalisation import normalise


def said(text: str, *, language: str = "", fallback: str = "en") -> str:
    return normalise(text, language=language, fallback=fallback).text


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("2024年3月5日", "二零二四年三月五日"),
        ("2024-03-05出发", "二零二四年三月五日出发"),
        ("98年3月，用了10年", "九八年三月，用了十年"),
        ("2024-2025年", "二零二四到二零二五年"),
        ("90年代", "九零年代"),
        ("下午3:30", "下午三点三十分"),
        ("早上9:05到14:00", "早上九点零五分到十四点"),
        ("9:00-17:30营业", "九点到十七点三十分营业"),
        ("2:15", "two fifteen"),
        ("在2:15", "在两点十五分"),
        ("比分是13:75", "比分是十三比七十五"),
        ("涨了12.5%", "涨了百分之十二点五"),
        ("涨了10%-20%", "涨了百分之十到百分之二十"),
        ("降了-5‰", "降了负千分之五"),
        ("共¥1,299.50元", "共一千二百九十九元五角"),
        ("只要￥12.50", "只要十二元五角"),
        ("¥12.5一斤", "十二元五角一斤"),
        ("共¥12.55", "共十二元五角五分"),
        ("共¥12.05", "共十二元零五分"),
        ("共¥12.00", "共十二元"),
        ("共¥0.50", "共五角"),
        ("共¥0.20", "共两角"),
        ("共¥0.05", "共五分"),
        ("共¥0.00", "共零元"),
        ("¥1.5万", "一点五万元"),
        ("每次¥0.0035", "每次零点零零三五元"),
        ("每件48.50元", "每件四十八元五角"),
        ("1,299.50元", "一千二百九十九元五角"),
        ("12.5元", "十二点五元"),
        ("12.50-15.80元", "十二点五零到十五点八零元"),
        ("值HK$3万", "值三万港元"),
        ("花了20€", "花了二十欧元"),
        ("电话13812345678。", "电话幺三八幺二三四五六七八。"),
        ("拨打110", "拨打幺幺零"),
        ("打010-12345678", "打零幺零，幺二三四五六七八"),
        ("账号12345678901", "账号一二三四五六七八九零一"),
        ("人口1,411,780,000", "人口十四亿一千一百七十八万"),
        ("版本v1.2.3", "版本一点二点三"),
        ("地址192.168.1.1", "地址一九二点一六八点一点一"),
        ("5-7天", "五到七天"),
        ("第3名", "第三名"),
        ("№5和No.6", "五号和六号"),
        ("气温-5℃", "气温零下五摄氏度"),
        ("转-5°", "转负五度"),
        ("面积50m²，速度100km/h", "面积五十平方米，速度一百公里每小时"),
        ("3/4的人", "四分之三的人"),
        ("½杯，1½杯", "二分之一杯，一又二分之一杯"),
        ("10²是", "十的平方是"),
        ("x³和10⁻³", "x的立方和十的负三次方"),
        ("①苹果②梨", "一苹果二梨"),
        ("第Ⅳ章", "第四章"),
        ("2个人，12个人，2万，22个", "两个人，十二个人，两万，二十二个"),
        ("iPhone15和A380", "iPhone十五和A三八零"),
        ("007号", "零零七号"),
        ("算3+5=8", "算三加五等于八"),
        ("见https://a.b.com/c?d=1。", "见a 点 b 点 com 斜杠 c 问号 d 等于 一。"),
        ("邮箱bob_x@x.com", "邮箱bob 下划线 x 艾特 x 点 com"),
        ("[1]和[见图3]", "(一)和(见图三)"),
        ("١٢٣是数字", "一百二十三是数字"),
        ("没有数字，就不变。", "没有数字，就不变。"),
    ],
)
def test_mandarin(written: str, spoken: str):
    assert said(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("on 2024-03-05", "on March fifth, twenty twenty-four"),
        ("on 3/5/2024", "on March fifth, twenty twenty-four"),
        ("on 25/12/2023", "on December twenty-fifth, twenty twenty-three"),
        ("March 5, 2024", "March fifth, twenty twenty-four"),
        ("5th of May 2020", "the fifth of May, twenty twenty"),
        ("in 1984", "in nineteen eighty-four"),
        ("the 1990s", "the nineteen nineties"),
        ("at 3:30 pm", "at three thirty P M"),
        ("at 12:05", "at twelve oh five"),
        ("at 9 a.m. sharp", "at nine A M sharp"),
        ("it rose 12.5%", "it rose twelve point five percent"),
        ("10%-20% off", "ten to twenty percent off"),
        ("it is $1,299.50", "it is one thousand two hundred and ninety-nine dollars and fifty cents"),
        ("$3.5 million", "three point five million dollars"),
        ("for $1 or £0.99", "for one dollar or ninety-nine pence"),
        ("call 555-123-4567", "call five five five, one two three, four five six seven"),
        ("+1 (555) 123-4567", "plus one, five five five, one two three, four five six seven"),
        ("5 km and 1 kg", "five kilometers and one kilogram"),
        ("at -5 °C", "at minus five degrees Celsius"),
        ("pages 10-20", "pages ten to twenty"),
        ("from 1990-1995", "from nineteen ninety to nineteen ninety-five"),
        ("3/4 and 1/2", "three quarters and one half"),
        ("2½ cups", "two and a half cups"),
        ("10² and x^3", "ten squared and x cubed"),
        ("try v1.2.3", "try version one point two point three"),
        ("at 192.168.0.1", "at one nine two point one six eight point zero point one"),
        ("Chapter IV", "Chapter four"),
        ("World War II", "World War two"),
        ("Louis XIV", "Louis the fourteenth"),
        ("I am, and so is X", "I am, and so is X"),
        ("No. 5 and #6", "number five and number six"),
        ("the 21st", "the twenty-first"),
        ("iPhone15 and A380", "iPhone fifteen and A three eight zero"),
        ("agent 007", "agent zero zero seven"),
        ("3+5=8, 10 < 20", "three plus five equals eight, ten is less than twenty"),
        ("see https://a.com/b", "see a dot com slash b"),
        ("mail bob@x.com now", "mail bob at x dot com now"),
        ("<b>bold</b> move", " bold  move"),
        ("salt & pepper", "salt and pepper"),
        ("it.It so.me", "it.It so.me"),
        ("nothing here changes, e.g. this.", "nothing here changes, e.g. this."),
    ],
)  # fmt: skip
def test_english(written: str, spoken: str):
    assert said(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Das sind nicht 25 Tage", "Das sind nicht fünfundzwanzig Tage"),
        ("Das ist für 1.299,50 €", "Das ist für eintausendzweihundertneunundneunzig Komma fünf null Euro"),
        ("Il y a 80% dans les 3,5", "Il y a quatre-vingts pour cent dans les trois virgule cinq"),
        ("25 яблок", "двадцать пять яблок"),
        ("25個のりんご", "二十五個のりんご"),
        ("사과 25개", "사과 이십오 개"),
    ],
)
def test_other_languages_count_in_their_own_words(written: str, spoken: str):
    assert said(written) == spoken


def test_each_sentence_is_read_in_its_own_language():
    assert said("我有3个。I have 3. 就3个。") == "我有三个。I have three. 就三个。"
    assert said("99") == "ninety-nine"
    assert said("99", fallback="zh") == "九十九"
    assert said("99", language="de") == "neunundneunzig"


def test_annotations_are_kept_and_their_places_found_again():
    text = "报道[j][ǐ]予3次[breath]，共12%<strong>好2</strong>。"
    spoken = normalise(text)
    assert spoken.text == "报道[j][ǐ]予三次[breath]，共百分之十二<strong>好二</strong>。"
    for token in tokens(spoken.text):
        start, end = spoken.source_span(token.start, token.end)
        if token.kind is not Kind.TEXT:
            assert text[start:end] == spoken.text[token.start : token.end]
    start = spoken.text.index("百分之十二")
    assert spoken.source_span(start, start + 5) == (text.index("12%"), text.index("12%") + 3)
    assert spoken.source_span(start + 1, start + 2) == (text.index("12%"), text.index("12%") + 3)


ALPHABET = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from(list("0123456789.,:/-+%$€¥@#&=<>[]()~^ 年月日个km²½①Ⅳ第aApmX\n")),
)


@settings(deadline=None)
@given(st.text(ALPHABET, max_size=60), st.sampled_from(["", "zh", "en", "de", "ru", "ja", "th"]))
def test_no_text_breaks_it_and_no_digit_is_left(text: str, language: str):
    spoken = normalise(text, language=language)
    # A digit in an annotation is not read.
    words = "".join(token.value for token in tokens(spoken.text) if token.kind is Kind.TEXT)
    assert not re.search(r"\d", words)
    start, end = spoken.source_span(0, len(spoken.text))
    assert 0 <= start <= end <= len(text)


@settings(deadline=None)
@given(
    st.text(
        st.characters(exclude_categories=["N", "S", "Cs"], exclude_characters="[]\\@#&*/'’%"), max_size=80
    )
)
def test_words_and_marks_are_not_touched(text: str):
    if not re.search(r"[IVXLC]{2}|www|\.", text):
        assert said(text) == text


def test_what_was_said_is_said_alike_again():
    for text in ("涨了12.5%，共¥25.50元，2024年3月5日下午3:30。", "On 3/5/2024 at 3:30 pm it rose 12.5%."):
        assert said(said(text)) == said(text)
