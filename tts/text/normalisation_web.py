"""Addresses as they are read out: links, domains, e-mail. Alike in every language, but for the words of the signs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tts.text.rewriting import Rule, rule

_TOP_LEVELS: Final = (
    "com|org|net|edu|gov|info|io|ai|dev|app|cn|hk|tw|uk|us|de|fr|es|it|ru|jp|kr|eu|ch|br|co|me|tv|xyz"
)
_HOST: Final = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\.)+[a-zA-Z]{2,12}"
_PATH: Final = r"(?::\d{2,5})?(?:[/?#][A-Za-z0-9\-._~:/?#@!$&'*+,;=%]*[A-Za-z0-9/=])?"
_PIECES: Final = re.compile(r"[A-Za-z]+|\d+|[^A-Za-z\d]")
# What stands in a link for machines only: nobody says how a number is escaped.
_LONGEST_READ: Final = 120


@dataclass(frozen=True)
class Signs:
    """How the signs of an address are said in a language, and its digits."""

    words: Mapping[str, str]
    digits: Callable[[str], str]


def web_rules(signs: Signs) -> list[Rule]:
    """Return the rules for addresses."""

    def read(match: re.Match[str]) -> str:
        return read_address(match[0], signs)

    return [
        rule(rf"(?<![A-Za-z0-9_.+-])[A-Za-z0-9][A-Za-z0-9_.+-]*@{_HOST}(?![A-Za-z0-9-])", read, needs="@"),
        rule(
            rf"(?<![A-Za-z0-9/])(?:https?|ftp)://(?:{_HOST}|[\d.]+|localhost){_PATH}",
            read,
            ignore_case=True,
            needs="/",
        ),
        rule(rf"(?<![A-Za-z0-9@.-])www\.{_HOST}{_PATH}", read, ignore_case=True, needs="wW"),
        rule(
            rf"(?<![A-Za-z0-9_@.-])(?:[a-zA-Z0-9][a-zA-Z0-9-]*\.)+(?:{_TOP_LEVELS})(?![A-Za-z0-9-]){_PATH}",
            _domain(signs),
            needs=".",
        ),
    ]


def _domain(signs: Signs) -> Callable[[re.Match[str]], str | None]:
    def read(match: re.Match[str]) -> str | None:
        host = match[0].partition("/")[0]
        # "it.It", "so.me": two words with a forgotten space.
        is_words = not host.islower() or (
            len(host.partition(".")[0]) < 3 and len(host.rpartition(".")[2]) < 3
        )
        return None if is_words else read_address(match[0], signs)

    return read


def read_address(address: str, signs: Signs) -> str:
    """Return an address in words, without its scheme and a slash at its end."""
    bare = re.sub(r"^[a-z]+://", "", address, flags=re.IGNORECASE).rstrip("/")[:_LONGEST_READ]
    words = []
    for piece in _PIECES.findall(bare):
        if piece.isascii() and piece.isalpha():
            words.append(_letters(piece))
        elif piece.isdecimal():
            words.append(signs.digits(piece))
        elif word := signs.words.get(piece, ""):
            words.append(word)
    return " ".join(words)


def _letters(word: str) -> str:
    """ "www" letter by letter; words as words."""
    return " ".join(word.upper()) if word.lower() == "www" else word
