"""Numbers in the other languages: counted by num2words, with the words for the signs beside them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tts.text.normalisation_web import Signs, web_rules
from tts.text.numbers_words import cardinal, decimal, digit_words
from tts.text.rewriting import Rule, rule


@dataclass(frozen=True)
class NumberWords:
    """`point` is what is said between a number and its fraction; `comma_point` whether that is written as a comma."""

    point: str
    percent: str
    to: str
    minus: str
    dot: str
    slash: str
    at: str
    comma_point: bool = True
    currencies: tuple[str, str, str, str] = ("dollar", "euro", "pound", "yuan")


_LANGUAGES: Final = {
    "de": NumberWords("Komma", "Prozent", "bis", "minus", "Punkt", "Schrägstrich", "at", True, ("Dollar", "Euro",
        "Pfund", "Yuan")),
    "es": NumberWords("coma", "por ciento", "a", "menos", "punto", "barra", "arroba", True, ("dólares", "euros",
        "libras", "yuanes")),
    "fr": NumberWords("virgule", "pour cent", "à", "moins", "point", "barre", "arobase", True, ("dollars", "euros",
        "livres", "yuans")),
    "it": NumberWords("virgola", "per cento", "a", "meno", "punto", "barra", "chiocciola", True, ("dollari", "euro",
        "sterline", "yuan")),
    "pt": NumberWords("vírgula", "por cento", "a", "menos", "ponto", "barra", "arroba", True, ("dólares", "euros",
        "libras", "yuans")),
    "ru": NumberWords("запятая", "процентов", "до", "минус", "точка", "косая черта", "собака", True, ("долларов",
        "евро", "фунтов", "юаней")),
    "ja": NumberWords("点", "パーセント", "から", "マイナス", "ドット", "スラッシュ", "アットマーク", False,
        ("ドル", "ユーロ", "ポンド", "元")),
    "ko": NumberWords("점", "퍼센트", "에서", "마이너스", "점", "슬래시", "골뱅이", False, ("달러", "유로",
        "파운드", "위안")),
    "en": NumberWords("point", "percent", "to", "minus", "dot", "slash", "at", False, ("dollars", "euros", "pounds",
        "yuan")),
}  # fmt: skip
_CURRENCY_SIGNS: Final = "$€£¥"


@functools.lru_cache(maxsize=16)
def rules_for(language: str) -> list[Rule]:
    """Return the rules for a language by ISO 639-1 code; English words where its own are not known."""
    language = language if language in _LANGUAGES else "en"
    words = _LANGUAGES[language]
    number = (
        r"\d{1,3}(?:[. \u202f]\d{3})+(?:,\d+)?|\d+(?:,\d+)?"
        if words.comma_point
        else r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
    )
    say = _number_sayer(language, words)
    signs = Signs(
        words={".": words.dot, "/": words.slash, "@": words.at, "-": words.minus},
        digits=lambda digits: digit_words(digits, language),
    )

    def money(match: re.Match[str], amount: int, sign: int) -> str:
        return f"{say(match[amount])} {words.currencies[_CURRENCY_SIGNS.index(match[sign])]}"

    def digits(match: re.Match[str]) -> str:
        return ", ".join(digit_words(group, language) for group in re.findall(r"\d+", match[0]))

    def dotted(match: re.Match[str]) -> str:
        return f" {words.dot} ".join(cardinal(part, language) for part in match[0].split("."))

    return [
        *web_rules(signs),
        rule(r"(?<![\d.])\+?\d{1,4}(?:[ /-]\d{2,5}){2,5}(?!\d)|(?<!\d)\+\d{7,15}(?!\d)", digits),
        rule(rf"([{_CURRENCY_SIGNS}])\s?({number})", lambda match: money(match, 2, 1)),
        rule(rf"({number})\s?([{_CURRENCY_SIGNS}])", lambda match: money(match, 1, 2)),
        rule(rf"([-−+]?(?:{number}))\s?%", lambda match: f"{say(match[1])} {words.percent}"),
        rule(rf"(?<![\d.,])({number})\s?[-–—]\s?({number})(?![\d-])", lambda m: f"{say(m[1])} {words.to} {say(m[2])}"),
        rule(r"(?<![\d:])(\d{1,2}):(\d{2})(?![\d:])", lambda m: f"{say(str(int(m[1])))} {say(str(int(m[2])))}"),
        rule(r"(?<![\d.])\d{1,4}(?:\.\d{1,4}){2,}", dotted),
        rule(rf"(?<!\w)[-−](?:{number})", lambda match: say(match[0])),
        rule(number, lambda match: say(match[0])),
    ]  # fmt: skip


def _number_sayer(language: str, words: NumberWords) -> Callable[[str], str]:
    thousands, point = (".", ",") if words.comma_point else (",", ".")

    def say(written: str) -> str:
        sign = f"{words.minus} " if written[0] in "-−" else ""
        bare = re.sub(rf"[{re.escape(thousands)} \u202f]", "", written.lstrip("+-−"))
        whole, _, fraction = bare.partition(point)
        return sign + decimal(whole, fraction, language, words.point)

    return say
