"""What kind of character is this? Scripts, speakability, and where a character that a person sees ends."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Collection
from enum import Enum
from typing import Final


class Script(str, Enum):  # noqa: UP042 - the engines' interpreters may be Python 3.10
    """The writing systems that are told apart; OTHER is any further one."""

    HAN = "han"
    KANA = "kana"
    HANGUL = "hangul"
    BOPOMOFO = "bopomofo"
    LATIN = "latin"
    CYRILLIC = "cyrillic"
    GREEK = "greek"
    ARABIC = "arabic"
    HEBREW = "hebrew"
    DEVANAGARI = "devanagari"
    THAI = "thai"
    OTHER = "other"


# First words of Unicode character names. Python knows no scripts, but every letter's name begins with its
# own.
_SCRIPT_BY_NAME: Final = {
    "CJK": Script.HAN,
    "IDEOGRAPHIC": Script.HAN,
    "HANGZHOU": Script.HAN,
    "HIRAGANA": Script.KANA,
    "KATAKANA": Script.KANA,
    "KATAKANA-HIRAGANA": Script.KANA,
    "HANGUL": Script.HANGUL,
    "BOPOMOFO": Script.BOPOMOFO,
    "LATIN": Script.LATIN,
    "FEMININE": Script.LATIN,
    "MASCULINE": Script.LATIN,
    "CYRILLIC": Script.CYRILLIC,
    "GREEK": Script.GREEK,
    "ARABIC": Script.ARABIC,
    "ARABIC-INDIC": Script.ARABIC,
    "EXTENDED": Script.ARABIC,
    "HEBREW": Script.HEBREW,
    "DEVANAGARI": Script.DEVANAGARI,
    "THAI": Script.THAI,
}

# Letters and digits that belong to no language: units, enclosed and mathematical forms.
_NEUTRAL_NAMES: Final = frozenset(
    {
        "DIGIT", "FULLWIDTH", "HALFWIDTH", "MODIFIER", "COMBINING", "MICRO", "KELVIN", "ANGSTROM", "OHM",
        "SUPERSCRIPT", "SUBSCRIPT", "VULGAR", "FRACTION", "ROMAN", "SMALL", "CIRCLED", "PARENTHESIZED",
        "DOUBLE", "NEGATIVE", "SQUARE", "SQUARED", "MATHEMATICAL", "DINGBAT", "DOUBLE-STRUCK", "SCRIPT",
        "BLACK-LETTER", "INFORMATION", "EULER", "ESTIMATED", "NUMERO", "TURNED", "PLANCK",
    }
)  # fmt: skip

# Languages by ISO 639-1 code, with what they are written in.
_SCRIPTS_BY_LANGUAGE: Final[dict[str, frozenset[Script]]] = {
    "zh": frozenset({Script.HAN, Script.BOPOMOFO}),
    "ja": frozenset({Script.HAN, Script.KANA}),
    "ko": frozenset({Script.HANGUL}),
    "ru": frozenset({Script.CYRILLIC}),
    "uk": frozenset({Script.CYRILLIC}),
    "el": frozenset({Script.GREEK}),
    "ar": frozenset({Script.ARABIC}),
    "fa": frozenset({Script.ARABIC}),
    "he": frozenset({Script.HEBREW}),
    "hi": frozenset({Script.DEVANAGARI}),
    "th": frozenset({Script.THAI}),
}
_LATIN_ONLY: Final = frozenset({Script.LATIN})

# No space between words: a line may end after any character of these.
UNSPACED_SCRIPTS: Final = frozenset({Script.HAN, Script.KANA, Script.THAI})

# Combining class of the sign that ties two Indic consonants into one.
_VIRAMA_CLASS: Final = 9

_ZERO_WIDTH_JOINER: Final = "\u200d"


def scripts_of_language(language: str) -> frozenset[Script]:
    """Return what a language is written in; Latin for every code that is not listed otherwise."""
    return _SCRIPTS_BY_LANGUAGE.get(language, _LATIN_ONLY)


def scripts_of_languages(languages: Collection[str]) -> frozenset[Script]:
    """Return every script that some of the languages is written in."""
    return frozenset().union(*map(scripts_of_language, languages))


@functools.lru_cache(maxsize=16_384)
def script_of(character: str) -> Script | None:
    """Return the script of a letter, mark or digit; None for what every language shares."""
    if character.isascii():
        return Script.LATIN if character.isalpha() else None
    if unicodedata.category(character)[0] not in "LMN":
        return None
    words = unicodedata.name(character, "").split()
    if not words:
        return Script.OTHER
    if words[0] in ("HALFWIDTH", "FULLWIDTH") and words[1] in _SCRIPT_BY_NAME:
        return _SCRIPT_BY_NAME[words[1]]
    if words[0] in _SCRIPT_BY_NAME:
        return _SCRIPT_BY_NAME[words[0]]
    return None if words[0] in _NEUTRAL_NAMES or unicodedata.category(character)[0] == "M" else Script.OTHER


def is_speakable(character: str) -> bool:
    """Whether a voice has something to say for this character alone: letters and digits, not signs."""
    return unicodedata.category(character)[0] in "LN"


def has_speech(text: str) -> bool:
    """Whether anything in the text can be spoken."""
    return any(map(is_speakable, text))


def splits_character(text: str, position: int) -> bool:
    """Whether a cut before `position` would go through what a person sees as one character."""
    before, after = text[position - 1], text[position]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    if "\u4e00" <= after <= "\u9fff" and before != _ZERO_WIDTH_JOINER:
        return False
    if unicodedata.combining(before) == _VIRAMA_CLASS and unicodedata.category(after)[0] == "L":
        return True
    if unicodedata.category(after)[0] == "M" or _ZERO_WIDTH_JOINER in (before, after):
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or (before, after) == ("\r", "\n"):
        return True
    if _is_flag_letter(before) and _is_flag_letter(after):
        start = position
        while start > 0 and _is_flag_letter(text[start - 1]):
            start -= 1
        return (position - start) % 2 == 1
    return _joins_hangul(before, after)


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _joins_hangul(before: str, after: str) -> bool:
    """Whether two conjoining jamo, or a syllable and one, are one syllable block."""
    leading, vowel, trailing = "\u1100" <= before <= "\u115f", _is_vowel(after), "\u11a8" <= after <= "\u11ff"
    syllable = "\uac00" <= after <= "\ud7a3"
    if leading:
        return "\u1100" <= after <= "\u115f" or vowel or syllable
    open_block = _is_vowel(before) or ("\uac00" <= before <= "\ud7a3" and (ord(before) - 0xAC00) % 28 == 0)
    if open_block:
        return vowel or trailing
    closed_block = "\u11a8" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    return closed_block and trailing


def _is_vowel(character: str) -> bool:
    return "\u1160" <= character <= "\u11a7"
