"""Which language a text is in, and how long it takes to say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tts.engine.catalogue import ENGINES
from tts.languages import LANGUAGES
from tts.text.characters import Script, has_speech, script_of, scripts_of_languages
from tts.text.cleaning import clean_text
from tts.text.estimate import MIN_AUDIO_MS, character_times_ms, estimate_audio_ms
from tts.text.language import detect_language, scripts_in


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("你好，世界！", "zh"),
        ("ㄅㄆㄇ", "zh"),
        ("今天是2024年5月。", "zh"),
        ("Hello, world!", "en"),
        ("Ça va très bien.", "en"),
        ("我用iPhone。", "mixed"),
        ("x光", "mixed"),
        ("こんにちは世界", "other"),
        ("Привет", "other"),
        ("你好 мир", "other"),
        ("12345", "other"),
        ("", "other"),
    ],
)
def test_language_is_told_by_script(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize(
    ("character", "script"),
    [
        ("a", Script.LATIN), ("Ａ", Script.LATIN), ("ß", Script.LATIN), ("ﬁ", Script.LATIN), ("ª", Script.LATIN),
        ("字", Script.HAN), ("𠮷", Script.HAN), ("々", Script.HAN), ("〇", Script.HAN), ("ㄅ", Script.BOPOMOFO),
        ("あ", Script.KANA), ("ア", Script.KANA), ("ｱ", Script.KANA), ("ー", Script.KANA), ("한", Script.HANGUL),
        ("я", Script.CYRILLIC), ("ω", Script.GREEK), ("م", Script.ARABIC), ("٣", Script.ARABIC),
        ("ש", Script.HEBREW), ("ก", Script.THAI), ("क", Script.DEVANAGARI), ("ਕ", Script.OTHER),
        ("5", None), ("５", None), ("²", None), ("½", None), ("µ", None), ("①", None), ("℃", None), ("。", None),
        (" ", None), ("\u0301", None), ("€", None), ("🎉", None), ("Ⅷ", None),
    ],
)  # fmt: skip
def test_scripts_of_characters(character: str, script: Script | None) -> None:
    assert script_of(character) is script


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.code)
def test_every_language_can_be_written_in_its_own_scripts(language: object) -> None:
    code, reading = language.code, language.reading  # type: ignore[attr-defined]
    assert scripts_in(reading) <= scripts_of_languages([code])
    assert clean_text(reading, supported_languages=[code], language=code).text == reading


def test_the_built_in_engine_refuses_what_it_cannot_say() -> None:
    languages = ENGINES["kokoro"].languages
    assert {"zh", "en"} <= set(languages)
    assert scripts_of_languages(languages) >= {Script.HAN, Script.LATIN}


# Measured with Kokoro-82M int8 at normal speed, mean of the styles jf_alpha and jm_kumo, silence trimmed.
MEASURED_MS = {
    "今天天气不错，我打算沿着河边慢慢走一圈，顺路买些新鲜的水果。": 7_270,
    "早上好！": 975,
    "声音是人与人之间最古老的桥梁它让距离变得温柔也让记忆有了温度每当夜深人静的时候": 9_080,
    "请在2024年5月18日之前完成，金额为3650元。": 6_190,
    "The weather is lovely today, so I am going to walk along the river, buy some fresh fruit, "
    "and look into the bookshop.": 6_715,
    "Good morning!": 835,
    "In 2024 it cost 3650 dollars, up from 1785 in 1999.": 9_385,
    "Electricity consumption increased dramatically throughout the industrial revolution": 4_955,
}


@pytest.mark.parametrize("text", MEASURED_MS, ids=lambda text: text[:12])
def test_the_estimate_is_near_what_was_measured(text: str) -> None:
    assert MEASURED_MS[text] * 0.85 <= estimate_audio_ms(text) <= MEASURED_MS[text] * 1.35


def test_rates() -> None:
    assert estimate_audio_ms("字" * 43) == pytest.approx(10_000, rel=0.01)
    assert estimate_audio_ms("word " * 30) == pytest.approx(150 / 15 * 1000, rel=0.12)
    assert estimate_audio_ms("I") == MIN_AUDIO_MS
    assert estimate_audio_ms("") == estimate_audio_ms("…!?") == 0


def test_a_row_of_marks_is_one_pause() -> None:
    assert estimate_audio_ms("好的好的！！！！！！") == estimate_audio_ms("好的好的！")
    assert estimate_audio_ms("好的好的，。") == estimate_audio_ms("好的好的。")
    assert estimate_audio_ms("好的。\n\n好的。") == estimate_audio_ms("好的。好的。")


@settings(deadline=None)
@given(st.text(max_size=200), st.text(max_size=200))
def test_longer_texts_take_longer(first: str, second: str) -> None:
    assert all(ms >= 0 for ms in character_times_ms(first))
    assert estimate_audio_ms(first + second) >= estimate_audio_ms(first)
    assert (estimate_audio_ms(first) > 0) == has_speech(first)
