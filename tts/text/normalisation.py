"""From what is written to what is said: numbers, dates, times, money, units, addresses, signs. Nothing else changes.

    spoken = normalise("涨了12.5%", language="")     # 涨了百分之十二点五

Each sentence is read in its own language: Chinese where it has a Chinese character (Japanese where the text has kana),
else by its script, else that of the request, else that of the text before it. Annotations are kept as they are.
What a customer pays and is limited by is the text as it was written: the spoken one is longer, and is our affair.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from tts.engine.languages import latin_language
from tts.text import normalisation_en, normalisation_zh
from tts.text.alignment import Edited, edit
from tts.text.annotations import mask, tokens
from tts.text.normalisation_other import rules_for
from tts.text.numbers_words import cardinal, digit_words, has_words
from tts.text.numbers_zh import spell_digits, spell_integer
from tts.text.rewriting import Claims, Rule, apply_rules
from tts.text.roman import roman_value

# Whatever any rule may change; most sentences of a book have nothing of it.
_ANYTHING: Final = re.compile(
    r"[\d@&#%^*+=<>\[\]\\×÷≈≠≤≥±℃℉°№‰％¥￥$€£₩₽₹⁰¹²³⁴-⁹₀-₉¼-¾⅐-↉①-⓿❶-➓㉈-㋿]|://|[A-Za-z0-9]\.[a-z]{2}|www\.|\b[IVXLC]+\b"
)
# A mark of ASCII ends a sentence before a space only: it stands inside addresses too.
_SENTENCE: Final = re.compile(r"(?:[^。！？!?\n]|[!?](?=[!-~]))*[。！？!?\n]*")
# Where a sentence of Latin letters may end inside one that has Chinese as well.
_LATIN_STOP: Final = re.compile(r"(?<=[A-Za-z0-9]\.) ")
_ADDRESS: Final = re.compile(r"\S+[@./-]\S+")
_HAN: Final = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA: Final = re.compile(r"[\u3041-\u30ff]")
_HANGUL: Final = re.compile(r"[\uac00-\ud7a3]")
_CYRILLIC: Final = re.compile(r"[\u0400-\u04ff]")
_LATIN: Final = re.compile(r"[A-Za-z\u00c0-\u024f]{2,}")
_HTML: Final = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]{0,10}(?: [^<>]{0,200})?/?>")
_BRACKET: Final = re.compile(r"\\?[\[\]]")
_FRACTION_SLASH: Final = "\u2044"
_LONGEST_REMAINDER_COUNT: Final = 4


def normalise(text: str, *, language: str = "", fallback: str = "en") -> Edited:
    """Return the text as it is spoken, and how it came about. Never raises; no digit is left.

    `language` is the one asked for ("": as the text is written), `fallback` that of a text without letters. Both are
    ISO 639-1 codes.
    """
    if not _ANYTHING.search(text):
        return edit(text, [])
    plain = mask(text) if "[" in text or "<" in text else text
    claims = Claims(plain)
    _claim_tags(plain, claims)
    for start, end, spoken in _stretches(plain, language, fallback):
        if _ANYTHING.search(plain, start, end):
            apply_rules(plain, start, end, _rules(spoken), claims)
            _claim_remainders(plain, start, end, spoken, claims)
    _claim_brackets(text, claims)
    return edit(text, claims.edits)


def _stretches(text: str, language: str, fallback: str) -> Iterator[tuple[int, int, str]]:
    """Where each language is spoken: sentences of a line that are in the same one are one stretch."""
    before = language or fallback
    has_kana = bool(_KANA.search(text))
    first = 0
    for start, end in _sentences(text):
        spoken = _language_of(text[start:end], language, before, has_kana=has_kana)
        if start > first and (spoken != before or text[start - 1] == "\n"):
            yield first, start, before
            first = start
        before = spoken
    if first < len(text):
        yield first, len(text), before


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    for match in _SENTENCE.finditer(text):
        if match.end() == match.start():
            continue
        start = match.start()
        if _HAN.search(match[0]):
            for stop in _LATIN_STOP.finditer(text, match.start(), match.end()):
                yield start, stop.end()
                start = stop.end()
        if start < match.end():
            yield start, match.end()


def _language_of(sentence: str, wanted: str, before: str, *, has_kana: bool) -> str:
    if _KANA.search(sentence):
        return "ja"
    if _HAN.search(sentence):
        return "ja" if wanted == "ja" or (has_kana and wanted != "zh") else "zh"
    if _HANGUL.search(sentence):
        return "ko"
    if _CYRILLIC.search(sentence):
        return wanted if wanted in ("ru", "uk") else "ru"
    if _LATIN.search(sentence):
        return (
            wanted
            if wanted and wanted not in ("zh", "ja", "ko", "ru")
            else latin_language(_ADDRESS.sub(" ", sentence))
        )
    return before


def _rules(language: str) -> Sequence[Rule]:
    if language == "zh":
        return normalisation_zh.RULES
    return normalisation_en.RULES if language == "en" or not has_words(language) else rules_for(language)


def _claim_remainders(text: str, start: int, end: int, language: str, claims: Claims) -> None:
    """What is left: ½ and ① and Ⅳ, superscripts, and digits of whatever script, so that none is without a word."""
    gaps = [(max(low, start), min(high, end)) for low, high in claims.gaps() if low < end and high > start]
    for low, high in gaps:
        for match in _REMAINDER.finditer(text, low, high):
            claims.claim(match.start(), match.end(), _said_remainder(text, match, language))


_REMAINDER: Final = re.compile(r"\d+|[⁰¹²³⁴-⁹₀-₉¼-¾⅐-↉①-⓿❶-➓㉈-㋿]")


def _said_remainder(text: str, match: re.Match[str], language: str) -> str:
    written = match[0]
    if written.isdecimal():
        return _said_digits(written, language)
    plain = unicodedata.normalize("NFKC", written).strip("().")
    if value := roman_value(plain.upper()):
        plain = str(value)
    if _FRACTION_SLASH in plain:
        return _said_fraction(text, match.start(), plain, language)
    digits = "".join(character for character in plain if character.isdecimal())
    return _said_digits(digits, language) if digits else plain


def _said_digits(digits: str, language: str) -> str:
    if language == "zh":
        return spell_integer(digits) if len(digits) <= _LONGEST_REMAINDER_COUNT else spell_digits(digits)
    return digit_words(digits, language) if len(digits) > 2 else cardinal(digits, language)


def _said_fraction(text: str, at: int, plain: str, language: str) -> str:
    over, _, under = plain.partition(_FRACTION_SLASH)
    after_number = at > 0 and text[at - 1].isdecimal()
    if language == "zh":
        return f"{'又' if after_number else ''}{spell_integer(under or '1')}分之{spell_integer(over or '1')}"
    said = normalise(f"{over or 1}/{under or 1}", fallback=language).text
    joint = "and " if after_number and language == "en" else ""
    return joint + (said.replace("one ", "a ", 1) if joint else said)


def _claim_tags(plain: str, claims: Claims) -> None:
    """Tags are never spoken."""
    for match in _HTML.finditer(plain) if "<" in plain else ():
        claims.claim(match.start(), match.end(), " ")


def _claim_brackets(text: str, claims: Claims) -> None:
    """Brackets that are no annotation are spoken as parentheses are, and backslashes before them never."""
    for token in tokens(text) if "[" in text or "]" in text else ():
        if token.kind.value != "text":
            continue
        for match in _BRACKET.finditer(text, token.start, token.end):
            if claims.is_free(match.start(), match.end()):
                claims.claim(match.start(), match.end(), "(" if match[0].endswith("[") else ")")
