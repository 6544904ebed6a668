"""Text to phonemes to calls: nothing lost, nothing too long."""

from __future__ import annotations

import pytest

from tts.engine.calls import LONGEST_CALL, LONGEST_FIRST_CALL, SENTENCE_PAUSE_MS, plan_calls
from tts.engine.kokoro_model import vocabulary
from tts.engine.languages import latin_language, scripts_of
from tts.engine.numerals import write_out
from tts.engine.phonemes import Phonemizer, Phrase


@pytest.fixture(scope="module")
def phonemizer(tmp_path_factory: pytest.TempPathFactory) -> Phonemizer:
    return Phonemizer(tmp_path_factory.mktemp("dictionary"), frozenset(vocabulary()))


def without_spaces(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("2024年3月5日", "二零二四年三月五日"),
        ("2024-03-05", "二零二四年三月五日"),
        ("12:30开会", "十二点三十分开会"),
        ("下降30%", "下降百分之三十"),
        ("一共1,299.50元", "一共一千二百九十九点五零元"),
        ("¥25", "二十五元"),
        ("气温-5℃", "气温负五摄氏度"),
        ("3/4", "四分之三"),
        ("5-7天", "五到七天"),
        ("电话13812345678", "电话一三八一二三四五六七八"),
        ("007", "零零七"),
        ("12345678901234567890", "一二三四五六七八九零一二三四五六七八九零"),
        ("版本1.2.3", "版本一点二点三"),
        ("没有数字", "没有数字"),
    ],
)
def test_numbers_are_written_out_as_they_are_said(text: str, spoken: str):
    assert write_out(text) == spoken


def test_mandarin_has_tones_and_their_changes(phonemizer: Phonemizer):
    assert phonemizer.phonemes("你好。", "zh") == "ni↗xau↓."
    assert phonemizer.phonemes("不是", "zh") == "pu↗ʂɨ↘"
    assert phonemizer.phonemes("一样", "zh").startswith("i↗")
    assert phonemizer.phonemes("一二三", "zh").startswith("i→")


def test_english_is_written_as_the_model_has_learned_it(phonemizer: Phonemizer):
    assert phonemizer.phonemes("Hello, world!", "en") == "həlˈO, wˈɜɹld!"


def test_both_languages_stand_side_by_side(phonemizer: Phonemizer):
    mixed = phonemizer.phonemes("我用GPT写code。", "zh")
    assert mixed.index("wo↓") < mixed.index("ʤˌipˌitˈi") < mixed.index("ɕje↓") < mixed.index("kˈOd")


@pytest.mark.parametrize("text", ["Ｈｅｌｌｏ，ｗｏｒｌｄ！", "Hello, 😀 world!", "Hello,\u200b world!"])
def test_wide_letters_pictures_and_invisible_characters_do_not_matter(phonemizer: Phonemizer, text: str):
    assert phonemizer.phonemes(text, "en") == phonemizer.phonemes("Hello, world!", "en")


def test_a_point_inside_a_number_or_an_address_is_no_end_of_a_sentence(phonemizer: Phonemizer):
    assert "." not in phonemizer.phonemes("It is 3.5 at example.com", "en")
    assert len(plan_calls(phonemizer.phonemes("It is 3.5 at example.com", "en"))) == 1


def test_pinyin_is_obeyed(phonemizer: Phonemizer):
    assert phonemizer.phonemes("他好奇", "zh") != phonemizer.phonemes("他[hao3]奇", "zh")
    assert phonemizer.phonemes("[h][ào]", "zh") == phonemizer.phonemes("耗", "zh") == "xau↘"
    assert phonemizer.phonemes("银[hang2]", "zh").replace(" ", "") == phonemizer.phonemes("银行", "zh")
    assert phonemizer.phonemes("[lüe4]", "") == phonemizer.phonemes("略", "")


@pytest.mark.parametrize(
    ("word", "annotation"),
    [
        ("hello", "[HH][AH0][L][OW1]"),
        ("record", "[R][EH1][K][ER0][D]"),
        ("father", "[F][AA1][DH][ER0]"),
        ("choice", "[CH][OY1][S]"),
        ("bird", "[B][ER1][D]"),
        ("measure", "[M][EH1][ZH][ER0]"),
    ],
)
def test_arpabet_says_what_the_dictionary_does(phonemizer: Phonemizer, word: str, annotation: str):
    assert phonemizer.phonemes(f"a {annotation}.", "en") == phonemizer.phonemes(f"a {word}.", "en")


def test_sounds_and_tags_are_never_read(phonemizer: Phonemizer):
    plain = phonemizer.phonemes("It is very good.", "en")
    assert phonemizer.phonemes("It[breath] is <strong>very</strong> good[laughter].", "en") == plain


def test_a_pause_parts_the_phrases(phonemizer: Phonemizer):
    assert phonemizer.phrases("好。[pause 700ms]好。[pause 1s]", "zh") == [
        Phrase("xau↓.", 700),
        Phrase("xau↓.", 1000),
    ]
    assert phonemizer.phrases("[breath]", "zh") == []


def test_a_new_line_ends_a_sentence(phonemizer: Phonemizer):
    assert phonemizer.phonemes("第一行\n第二行", "zh").count(".") == 1


@pytest.mark.parametrize(
    "text",
    [
        "我们在山里走了很久才看见那条河" * 48,
        "今天天气很好，我们一起去公园散步吧。" * 40,
        "pneumonoultramicroscopicsilicovolcanoconiosis" * 20,
        "a, b, c, d. " * 60,
        "好" * 720,
    ],
)
def test_calls_hold_every_phoneme_and_none_is_too_long(phonemizer: Phonemizer, text: str):
    phonemes = phonemizer.phonemes(text, "")
    calls = plan_calls(phonemes)
    assert without_spaces("".join(call.phonemes for call in calls)) == without_spaces(phonemes)
    assert max(len(call.phonemes) for call in calls) <= LONGEST_CALL + 20
    assert calls[-1].pause_ms == 0


def test_720_characters_give_720_syllables(phonemizer: Phonemizer):
    phonemes = phonemizer.phonemes("我们在山里走了很久才看见那条河" * 48, "zh")
    # Every syllable here but the light 们, 里 and 了 has exactly one tone.
    assert sum(phonemes.count(tone) for tone in "→↗↘↓") == 48 * 12


def test_a_long_first_sentence_without_marks_begins_with_a_short_call():
    calls = plan_calls("wo↓mən " * 100)
    assert len(calls[0].phonemes) <= LONGEST_FIRST_CALL


def test_a_sentence_is_followed_by_a_pause():
    calls = plan_calls("wo↓mən tsou↓ ba. ni↗xau↓ ma wo↓mən. tsou↓ wo↓mən ba.")
    assert calls[0].pause_ms == SENTENCE_PAUSE_MS


def test_short_pieces_are_spoken_with_their_neighbours():
    assert len(plan_calls("a, b, c, d, e.")) == 1


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is the station?", "en"),
        ("¿Dónde está la estación?", "es"),
        ("Je ne sais pas où est la gare.", "fr"),
        ("Dove sono gli altri della classe?", "it"),
        ("Você não está muito cansado?", "pt"),
        ("Ich weiß nicht, wo der Bahnhof ist.", "de"),
        ("OpenAI API", "en"),
        ("", "en"),
    ],
)
def test_the_language_of_latin_letters_is_told_by_small_words(text: str, language: str):
    assert latin_language(text) == language


def test_scripts_are_those_of_letters():
    assert scripts_of("你好 hello, 1！😀") == {"han", "latin"}
    assert scripts_of("こんにちはカ") == {"hiragana", "katakana"}
    assert scripts_of("한Я") == {"hangul", "cyrillic"}


@pytest.mark.parametrize(
    ("text", "tones"),
    [
        # 一 and 不, before each tone, at the end of a word, in numbers, between two of the same verb.
        ("一天", "↘→"), ("一本", "↘↓"), ("一样", "↗↘"), ("一个", "↗↘"),
        ("统一思想", "↓→→↓"), ("第一次", "↘→↘"),
        ("不去", "↗↘"), ("不来", "↘↗"),
        ("价格不贵", "↘↗↗↘"), ("想一想", "↓↓"), ("好不好", "↓↓"),
        # Third tones: in a word, before the next word, and not over a border where a speaker may rest.
        ("九点", "↗↓"), ("展览馆", "↗↗↓"), ("很有名", "↗↓↗"), ("我想买书", "↗↗↓→"), ("水果很甜", "↗↓↓↗"),
        # Light syllables have no tone.
        ("妈妈", "→"), ("看看", "↘"), ("天天", "→→"), ("喜欢", "↓"),
        ("手里", "↓"), ("早点儿", "↗↓"), ("女儿", "↓↗"), ("笑得很好", "↘↗↓"),
    ],
)  # fmt: skip
def test_tones_are_said_as_people_say_them(phonemizer: Phonemizer, text: str, tones: str):
    phonemes = phonemizer.phonemes(text, "zh")
    assert "".join(mark for mark in phonemes if mark in "→↗↘↓") == tones
