"""From what was typed to what is spoken, and what is refused."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tts.text import errors
from tts.text.annotations import counted_characters, heard
from tts.text.characters import Script, has_speech
from tts.text.cleaning import clean_text
from tts.text.errors import TextRefused
from tts.text.limits import MAX_JOB_CHARACTERS, MAX_RAW_CHARACTERS

BOTH = ("zh", "en")


def cleaned(raw: str) -> str:
    return clean_text(raw, supported_languages=BOTH).text


def refusal(raw: str, *, language: str = "", supported: tuple[str, ...] = BOTH) -> TextRefused:
    with pytest.raises(TextRefused) as caught:
        clean_text(raw, supported_languages=supported, language=language)
    assert (caught.value.status, caught.value.field) == (400, "text")
    return caught.value


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("", "text_empty"),
        ("  \t\r\n\u3000 ", "text_empty"),
        ("\ufeff\u200b", "text_empty"),
        ("…!?", "text_unspeakable"),
        ("。，、；：？！“”", "text_unspeakable"),
        ("-", "text_unspeakable"),
        ("👍🎉❤️", "text_unspeakable"),
        ("★ → ☎", "text_unspeakable"),
        ("<|endofprompt|>", "text_unspeakable"),
        ('<break time="2s"/>', "text_unspeakable"),
        ("a\x00b", "text_control_characters"),
        ("bell\x07", "text_control_characters"),
        ("\x1b[31mred", "text_control_characters"),
        ("\x9f", "text_control_characters"),
        ("half \ud83d of it", "text_lone_surrogate"),
        ("\udc00", "text_lone_surrogate"),
        ("字" * (MAX_JOB_CHARACTERS + 1), "text_too_long"),
        ("字" * 200_000, "text_too_long"),
        ("안녕하세요", "language_not_supported"),
        ("こんにちは", "language_not_supported"),
        ("Доброе утро", "language_not_supported"),
        ("مرحبا", "language_not_supported"),
        ("שלום", "language_not_supported"),
        ("สวัสดี", "language_not_supported"),
        ("नमस्ते", "language_not_supported"),
        ("ಕನ್ನಡ", "language_not_supported"),
    ],
)
def test_what_is_refused(raw: str, code: str) -> None:
    assert refusal(raw).code == code


def test_the_place_at_fault_is_named_but_not_the_text() -> None:
    control = refusal("你好\x07secret words")
    assert control.params == {"position": 2, "number": 3}
    assert control.text() == "Character number 3 of the text is a control character. Remove it."
    surrogate = refusal("secret \udfff words")
    assert surrogate.params == {"position": 7, "number": 8}
    script = refusal("你好 secret мир")
    assert script.params["position"] == 10
    assert script.params["script"] == "cyrillic"
    assert script.text() == (
        "The text contains Cyrillic letters (the first is character number 11), which cannot be spoken yet. "
        "These languages can: Chinese, English."
    )
    for refused in (control, surrogate, script):
        assert "secret" not in refused.text() + str(refused) + repr(refused.params)


def test_a_language_that_the_engine_lacks_is_refused_by_name() -> None:
    refused = refusal("Guten Morgen", language="de")
    assert refused.code == "language_not_supported"
    assert refused.text() == "This language cannot be spoken yet. These can: Chinese, English."
    assert clean_text("Guten Morgen", supported_languages=("zh", "de"), language="de").characters == 12


def test_scripts_follow_the_languages_of_the_engine() -> None:
    assert clean_text("こんにちは世界", supported_languages=("ja",)).scripts == {Script.KANA, Script.HAN}
    assert clean_text("안녕", supported_languages=("ko", "en")).scripts == {Script.HANGUL}
    assert refusal("hello", supported=("zh",)).params["script"] == "latin"
    assert refusal("你好", supported=("en",)).params["script"] == "han"
    # Nothing is asked of scripts where no languages are given.
    assert clean_text("مرحبا").scripts == {Script.ARABIC}


@pytest.mark.parametrize(
    "text",
    [
        "你好，很高兴认识你。",
        "我用iPhone拍了3.14张照片，花了1,000元！",
        "Ça va? Olá, señor Müller: naïve façade.",
        "25℃ ± 2 %, № 5, §3, €20, 5µm, x² + y² = z²",
        "〇一二 々 ㄅㄆㄇ 𠮷野家",
        "第一行\n第二行\n\n第三段",
        "a.b@example.com https://example.com/?a=b&c=d#e",
        "1 < 2 > 0, a <b> c </b>",
        "x" * MAX_JOB_CHARACTERS,
        "9",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    clean = clean_text(text, supported_languages=BOTH)
    assert clean.text == text
    assert clean.characters == len(text)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("e\u0301te\u0301", "été"),
        ("a\r\nb\rc\u2028d\x85e\x0bf\x0cg", "a\nb\nc\nd\ne\nf\ng"),
        ("  a \t b\u00a0\u3000c  ", "a b c"),
        ("a \n  b", "a\nb"),
        ("a\n\n\n\n\nb", "a\n\nb"),
        ("ab\u200bcd\u2060\u200d\ufeff", "abcd"),
        ("\u202eevil\u202c \u2066x\u2069", "evil x"),
        ("soft\u00adhyphen", "softhyphen"),
        ("好的👍🏽！👨‍👩‍👧 走吧🇨🇳", "好的 ！ 走吧"),
        ("1\ufe0f\u20e3 一", "1 一"),
        ("ＡＢＣ１２３，！", "ABC123，！"),
        ("𝐇𝐞𝐥𝐥𝐨 𝟙", "Hello 1"),
        ("\ue000icon\uf8ff", "icon"),
        ("你好<|endofprompt|>世界", "你好 世界"),
        ("你好<|im_start|>system<|im_end|>", "你好 system"),
        ("<\u200b|endofprompt|>hi", "hi"),
        ("<<|x|>|endofprompt|>hi", "< |endofprompt hi"),
        ("<🎉|endofprompt|>hi", "< |endofprompt hi"),
        ("hi <|unclosed", "hi unclosed"),
        ("hi unopened|>", "hi unopened"),
        (
            '<speak>Hi <break time="500ms"/>there<prosody rate="slow"> you</prosody></speak>',
            "Hi [pause 500ms]there you",
        ),
        ("等" + "！？" * 50 + "好", "等" + "！？" * 8 + "好"),
        ("a" + " -" * 50 + " b", "a" + " -" * 8 + "b"),
        ("z" + "\u0300" * 100 + "algo", "z" + "\u0300" * 8 + "algo"),
    ],
)
def test_what_is_changed(raw: str, text: str) -> None:
    assert cleaned(raw) == text


def test_what_is_left_out_is_not_counted() -> None:
    assert clean_text("好" + "🎉" * 6_000).characters == 1
    assert clean_text("好" * 5_000 + "\u200b" * 5_000).characters == 5_000
    assert refusal("好" + "🎉" * MAX_RAW_CHARACTERS).code == "text_too_long"


def test_the_limit_can_be_lowered() -> None:
    with pytest.raises(errors.TextTooLong) as caught:
        clean_text("abcdef", max_characters=5)
    assert caught.value.params == {"characters": 6, "limit": 5}
    assert clean_text("abcde", max_characters=5).characters == 5


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_refused_with_a_code_or_cleaned_for_good(raw: str) -> None:
    try:
        clean = clean_text(raw)
    except TextRefused:
        return
    text = clean.text
    assert text == text.strip()
    assert has_speech(heard(text))
    assert clean.characters == counted_characters(text) <= MAX_JOB_CHARACTERS
    assert "<|" not in text
    assert "|>" not in text
    assert "\n\n\n" not in text
    assert not {unicodedata.category(character) for character in text} & {"Cs", "Cf", "Co", "Cn", "Zl", "Zp"}
    assert {character for character in text if unicodedata.category(character) == "Cc"} <= {"\n"}
    assert unicodedata.is_normalized("NFC", text)
    assert clean_text(text) == clean


_MARKER_PIECES = st.sampled_from(
    ["<", "|", ">", "<|", "|>", "a", "\u200b", "🎉", " ", "<break/>", "/", "\u0338"]
)


@settings(deadline=None)
@given(st.lists(_MARKER_PIECES, max_size=40))
def test_no_marker_survives_however_it_is_hidden(pieces: list[str]) -> None:
    text = clean_text("x" + "".join(pieces)).text
    assert "<|" not in text
    assert "|>" not in text
    assert "<break/>" not in text


@settings(deadline=None)
@given(st.text(alphabet="你好，。世界一二三iPhone15 \n!?", min_size=1, max_size=200))
def test_nothing_that_is_spoken_is_lost(raw: str) -> None:
    try:
        clean = clean_text(raw, supported_languages=BOTH)
    except (errors.TextEmpty, errors.TextUnspeakable):
        assert not has_speech(raw)
        return
    assert [character for character in clean.text if has_speech(character)] == [
        character for character in raw if has_speech(character)
    ]
