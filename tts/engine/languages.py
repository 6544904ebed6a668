"""Which scripts a text is written in, and which language its Latin letters most likely are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


# The words that a sentence of a language can hardly do without. English wins a tie: it is what a mixed text holds.
_FUNCTION_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "en": _words(
            "the and is are was of to in that it you for with this have not be on what we they he she a an i"
        ),
        "es": _words("el los las una y es de que en por con para no se su al del qué cómo está muy pero"),
        "fr": _words(
            "le les une et est de que en dans pour avec ne pas se sur au aux du des je vous nous il elle ce qui"
        ),
        "it": _words(
            "il gli una e è di che in per con non si sul al del della dei sono questo come ho ma anche più"
        ),
        "pt": _words(
            "os as uma e é de que em por com para não se seu ao do da dos das no na você muito mas está"
        ),
        "de": _words(
            "der die das und ist von zu in den mit für nicht ein eine ich sie wir es auf dem im auch wie"
        ),
    }
)
_LETTERS: Mapping[str, str] = MappingProxyType(
    {"ñ": "es", "¿": "es", "¡": "es", "ß": "de", "ã": "pt", "õ": "pt"}
)
_SCRIPT_NAMES: Mapping[str, str] = MappingProxyType({"CJK": "han", "KATAKANA-HIRAGANA": "katakana"})
_WORD = re.compile(r"[^\W\d_]+")


def scripts_of(text: str) -> frozenset[str]:
    """The scripts of the letters in a text, in lower case: "han", "latin", "hiragana", "hangul", "cyrillic", …"""
    scripts: set[str] = set()
    for character in set(text):
        if unicodedata.category(character).startswith("L"):
            first = unicodedata.name(character, "UNKNOWN").split()[0]
            scripts.add(_SCRIPT_NAMES.get(first, first.lower()))
    return frozenset(scripts - {"modifier", "feminine", "masculine", "micro"})


def latin_language(text: str) -> str:
    """The likeliest language of a text's Latin letters; "en" where nothing tells otherwise."""
    words = [word.lower() for word in _WORD.findall(text)]
    scores = {language: sum(word in known for word in words) for language, known in _FUNCTION_WORDS.items()}
    for letter, language in _LETTERS.items():
        scores[language] += 2 * text.lower().count(letter)
    best = max(scores, key=lambda language: scores[language])
    return best if scores[best] > scores["en"] else "en"
