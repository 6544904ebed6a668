"""Which language is a text in? Told by its script, which is enough to choose how an engine reads it."""

from __future__ import annotations

from enum import Enum

from tts.text.characters import Script, script_of


class TextLanguage(str, Enum):  # noqa: UP042 - the engines' interpreters may be Python 3.10
    """`ENGLISH` stands for Latin letters; which language they spell cannot be told by script."""

    CHINESE = "zh"
    ENGLISH = "en"
    MIXED = "mixed"
    OTHER = "other"


_CHINESE_SCRIPTS = frozenset({Script.HAN, Script.BOPOMOFO})


def scripts_in(text: str) -> frozenset[Script]:
    """Return the scripts of all letters in a text; empty when it has none (digits only)."""
    return frozenset(script for character in set(text) if (script := script_of(character)) is not None)


_LANGUAGES_OF = {
    TextLanguage.CHINESE: ("zh",),
    TextLanguage.ENGLISH: ("en",),
    TextLanguage.MIXED: ("zh", "en"),
    TextLanguage.OTHER: (),
}


def languages_of(text: str, *, asked: str = "") -> tuple[str, ...]:
    """Which languages an engine must know to read a text: the one asked for, else what its script tells.

    Latin letters without a language asked for are taken for English; of other scripts nothing is said.
    """
    return (asked,) if asked else _LANGUAGES_OF[detect_language(text)]


def detect_language(text: str) -> TextLanguage:
    """Return Chinese, English, both in one text, or something else: further scripts, or no letters."""
    scripts = scripts_in(text)
    if not scripts or scripts - _CHINESE_SCRIPTS - {Script.LATIN}:
        return TextLanguage.OTHER
    if Script.LATIN not in scripts:
        return TextLanguage.CHINESE
    return TextLanguage.MIXED if scripts & _CHINESE_SCRIPTS else TextLanguage.ENGLISH
