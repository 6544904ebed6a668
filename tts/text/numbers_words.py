"""Numbers in the languages that are written with spaces, and in Japanese and Korean, by num2words.

num2words is imported when the first number is met: it reads all of its languages, 0.3 s and 5 MB.
"""

from __future__ import annotations

import functools
from typing import Any, Final

LONGEST_COUNT: Final = 15
_LANGUAGES: Final = frozenset(
    {"en", "de", "es", "fr", "it", "pt", "ru", "ja", "ko", "nl", "pl", "sv", "tr", "uk", "ar"}
)


def has_words(language: str) -> bool:
    """Whether numbers are said in that language; else in English."""
    return language in _LANGUAGES


@functools.lru_cache(maxsize=8192)
def _words(value: int, language: str, to: str) -> str:
    from num2words import num2words

    wanted: dict[str, Any] = {"to": to, "lang": language if language in _LANGUAGES else "en"}
    try:
        return str(num2words(value, **wanted)).replace(",", "")
    except (NotImplementedError, OverflowError, ValueError, TypeError, KeyError, IndexError):
        # Its languages differ in how far they count, and in what else they know.
        return _words(value, language, "cardinal") if to != "cardinal" else ""


def cardinal(digits: str, language: str = "en") -> str:
    """Return a whole number in words; very long ones and those with zeros before them digit by digit."""
    if len(digits) > LONGEST_COUNT or (len(digits) > 1 and int(digits[0]) == 0):
        return digit_words(digits, language)
    return _words(int(digits), language, "cardinal") or digit_words(digits, language)


def ordinal(digits: str, language: str = "en") -> str:
    """Return "twenty-first" for 21."""
    return _words(int(digits), language, "ordinal") if len(digits) <= LONGEST_COUNT else digit_words(digits)


def year(digits: str, language: str = "en") -> str:
    """Return "nineteen eighty-four" for 1984."""
    return _words(int(digits), language, "year")


def digit_words(digits: str, language: str = "en") -> str:
    """Return the digits one by one; other characters are left out."""
    return " ".join(_words(int(digit), language, "cardinal") for digit in digits if digit.isdecimal())


def decimal(whole: str, fraction: str, language: str, point: str) -> str:
    """Return a number with its fraction digit by digit, `point` between."""
    spoken = cardinal(whole or "0", language)
    return f"{spoken} {point} {digit_words(fraction, language)}" if fraction else spoken
