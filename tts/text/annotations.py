"""Annotations in a text: how something is said, laughter and breath, stress, pauses. Never read aloud.

    [hào] [hao4] [h][ào]           a Mandarin syllable in pinyin, in place of the character
    [R][IH1][K][ER0][D]            an English word in ARPAbet, in place of the word
    [breath] [laughter] …          a sound
    <strong>…</strong>             said with stress; <laughter>…</laughter>: said while laughing
    [pause 500ms] [pause 1.5s]     silence

Not every bracket is an annotation. The rule:

- An annotation is exactly what the inventory has: pinyin in small letters with one tone mark or a tone digit 1 to 5
  (0 is 5, the neutral tone); an initial with its final in the next bracket; brackets of ARPAbet side by side with at
  least one vowel, a single one only with its stress; a sound, in any case.
- A mistake, which is refused with its place, is what can hardly be meant otherwise: a bracket one letter away from a
  syllable, with a tone mark, or with a digit where it touches a Chinese character or another annotation; a bracket
  beside ARPAbet that is no phoneme; a name nearly that of a sound; a pause that is too long; a span that is not
  closed, not opened, empty, crossed or too long.
- Everything else is ordinary text and is read: [1], [见图3], [sic], [OK]. A backslash before the bracket makes any
  bracket ordinary: \\[breath].

Loaded by engines: clean for Python 3.10, no Django.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tts.text.annotation_inventory import MAX_PAUSE_MS, MAX_SPAN_CHARACTERS, SOUNDS, SPANS
from tts.text.annotation_readings import Bracket, Reading, read_chain
from tts.text.spelling import nearest


class Kind(enum.Enum):
    """What a token is."""

    TEXT = "text"
    PINYIN = "pinyin"
    ARPABET = "arpabet"
    SOUND = "sound"
    OPEN = "open"
    CLOSE = "close"
    PAUSE = "pause"


class Problem(enum.Enum):
    """What is wrong with an annotation."""

    PINYIN = "pinyin"
    ARPABET = "arpabet"
    SOUND = "sound"
    PAUSE = "pause"
    TAG = "tag"
    NOT_CLOSED = "not_closed"
    NOT_OPENED = "not_opened"
    EMPTY = "empty"
    TOO_LONG = "too_long"
    WORD_TOO_LONG = "word_too_long"


@dataclass(frozen=True)
class Token:
    """A stretch of a text, characters `start` to `end`.

    `value` is, for TEXT, the text itself; PINYIN: the syllable with its tone's digit, "hao4", "lve4"; ARPABET: the
    phonemes, "R IH1 K ER0 D"; SOUND, OPEN and CLOSE: the name; PAUSE: milliseconds.
    """

    kind: Kind
    start: int
    end: int
    value: str


@dataclass(frozen=True)
class Mistake:
    """What is wrong with characters `start` to `end`; `suggestion` is what was probably meant, or ""."""

    problem: Problem
    start: int
    end: int
    suggestion: str = ""


_BRACKET: Final = re.compile(r"(?<!\\)\[([^\[\]\n]{1,24})\]")
_TAG: Final = re.compile(r"(?<!\\)<(/?) ?([a-zA-Z]{4,10}) ?>")
_EITHER: Final = re.compile(rf"(?:{_BRACKET.pattern})+|{_TAG.pattern}")
_PAUSE: Final = re.compile(r"pause[ =:]?(\d{1,6}(?:\.\d{1,3})?) ?(ms|s)", re.IGNORECASE)
# Names of tags that are one or two letters from a span's, and mean something else in many texts.
_OTHER_TAGS: Final = frozenset({"string", "strings", "storing", "song", "struct", "stroke", "strike"})
_SOUND_STEMS: Final = {"laugh": "laughter", "breat": "breath", "cough": "cough", "sigh": "sigh"}
_SOUND_STEM: Final = re.compile(rf"({'|'.join(_SOUND_STEMS)})(?:h?(?:s|es|e|ed|er|ing)|h)?", re.IGNORECASE)
_KINDS: Final = {Reading.PINYIN: Kind.PINYIN, Reading.ARPABET: Kind.ARPABET}
_PROBLEMS: Final = {
    Reading.NOT_PINYIN: Problem.PINYIN,
    Reading.NOT_ARPABET: Problem.ARPABET,
    Reading.TOO_LONG: Problem.WORD_TOO_LONG,
}


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text, in order; put together, their places are the whole text.

    Never raises: what is mistaken is TEXT here (see `mistakes`).
    """
    return _scan(text)[0]


def mistakes(text: str) -> list[Mistake]:
    """Return every mistaken annotation of a text, in order."""
    return _scan(text)[1]


def mask(text: str, filler: str = " ") -> str:
    """Return the text with `filler` for every character of an annotation: same length, nothing of them left."""
    return "".join(
        token.value if token.kind is Kind.TEXT else filler * (token.end - token.start)
        for token in tokens(text)
    )


def heard(text: str) -> str:
    """Return the text with "x" for every character of an annotation that is a word, a space for every other one.

    Same length: what is there to say between two places can be asked of it.
    """
    words = (Kind.PINYIN, Kind.ARPABET)
    return "".join(
        token.value
        if token.kind is Kind.TEXT
        else ("x" if token.kind in words else " ") * (token.end - token.start)
        for token in tokens(text)
    )


def silence_ms(text: str) -> int:
    """Return how long all pauses of a text last together, at normal speed."""
    return sum(int(token.value) for token in tokens(text) if token.kind is Kind.PAUSE)


def whole_spans(text: str) -> list[tuple[int, int]]:
    """Return the stretches that must not be cut: every annotation, and every span from its opening to its closing."""
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    for token in tokens(text):
        if token.kind is Kind.OPEN:
            opened.append(token.start)
        elif token.kind is Kind.CLOSE:
            start = opened.pop()
            if not opened:
                spans.append((start, token.end))
        elif token.kind is not Kind.TEXT and not opened:
            spans.append((token.start, token.end))
    return spans


def counted_characters(text: str) -> int:
    """Return the length that limits and prices count: each annotation is one, a span's closing none."""
    length = 0
    for token in tokens(text):
        if token.kind is Kind.TEXT:
            length += token.end - token.start
        elif token.kind is not Kind.CLOSE:
            length += 1
    return length


def _scan(text: str) -> tuple[list[Token], list[Mistake]]:
    if "[" not in text and "<" not in text:
        return ([Token(Kind.TEXT, 0, len(text), text)] if text else []), []
    found: list[Token] = []
    wrong: list[Mistake] = []
    for match in _EITHER.finditer(text):
        if match[0].startswith("<"):
            _read_tag(match, found, wrong)
        else:
            _read_brackets(text, match, found, wrong)
    found, more = _balanced(text, found)
    return _with_text(text, found), sorted([*wrong, *more], key=lambda mistake: mistake.start)


def _read_tag(match: re.Match[str], found: list[Token], wrong: list[Mistake]) -> None:
    slash, name = match[2], match[3].lower()
    if name in SPANS:
        found.append(Token(Kind.CLOSE if slash else Kind.OPEN, match.start(), match.end(), name))
    elif name not in _OTHER_TAGS and (meant := nearest(name, SPANS, farthest=2)):
        wrong.append(Mistake(Problem.TAG, match.start(), match.end(), f"<{slash}{meant}>"))


def _read_brackets(text: str, match: re.Match[str], found: list[Token], wrong: list[Mistake]) -> None:
    """A run of brackets side by side: sounds and pauses by themselves, what is between them as pinyin or ARPAbet."""
    chain: list[Bracket] = []
    for bracket in _BRACKET.finditer(text, match.start(), match.end()):
        content = bracket[1]
        if content.lower() in SOUNDS:
            _read_phonemes(text, chain, found, wrong)
            found.append(Token(Kind.SOUND, bracket.start(), bracket.end(), content.lower()))
        elif pause := _PAUSE.fullmatch(content):
            _read_phonemes(text, chain, found, wrong)
            _read_pause(pause, bracket, found, wrong)
        elif meant := _meant_sound(content):
            _read_phonemes(text, chain, found, wrong)
            wrong.append(Mistake(Problem.SOUND, bracket.start(), bracket.end(), f"[{meant}]"))
        else:
            chain.append(Bracket(bracket.start(), bracket.end(), content))
    _read_phonemes(text, chain, found, wrong)


def _read_pause(
    pause: re.Match[str], bracket: re.Match[str], found: list[Token], wrong: list[Mistake]
) -> None:
    pause_ms = round(float(pause[1]) * (1 if pause[2].lower() == "ms" else 1000))
    if pause_ms > MAX_PAUSE_MS:
        wrong.append(
            Mistake(Problem.PAUSE, bracket.start(), bracket.end(), f"[pause {MAX_PAUSE_MS // 1000}s]")
        )
    else:
        found.append(Token(Kind.PAUSE, bracket.start(), bracket.end(), str(pause_ms)))


def _meant_sound(content: str) -> str:
    """The sound that a name was probably meant to be; "" for ordinary words."""
    name = content.lower().replace(" ", "_") if content.isascii() else ""
    if stem := _SOUND_STEM.fullmatch(name):
        return _SOUND_STEMS[stem[1].lower()]
    return nearest(name, SOUNDS, farthest=1 if len(name) < 7 else 2) if len(name) > 4 else ""


def _read_phonemes(text: str, chain: list[Bracket], found: list[Token], wrong: list[Mistake]) -> None:
    """Read and empty a chain of brackets that are no sounds."""
    if not chain:
        return
    for reading in read_chain(text, chain):
        if kind := _KINDS.get(reading.kind):
            found.append(Token(kind, reading.start, reading.end, reading.value))
        else:
            problem = _PROBLEMS[reading.kind]
            wrong.append(Mistake(problem, reading.start, reading.end, reading.value))
    chain.clear()


def _balanced(text: str, found: list[Token]) -> tuple[list[Token], list[Mistake]]:
    """The tokens without those tags that open or close nothing, and what is wrong with spans."""
    wrong: list[Mistake] = []
    kept: list[Token] = []
    opened: list[Token] = []
    dropped: set[int] = set()
    for token in found:
        if token.kind is Kind.OPEN:
            if any(token.value == earlier.value for earlier in opened):
                wrong.append(
                    Mistake(Problem.NOT_CLOSED, opened[-1].start, opened[-1].end, f"</{token.value}>")
                )
                dropped.add(opened.pop().start)
            opened.append(token)
        elif token.kind is Kind.CLOSE:
            if not opened or opened[-1].value != token.value:
                wrong.append(Mistake(Problem.NOT_OPENED, token.start, token.end, f"<{token.value}>"))
                dropped.add(token.start)
                continue
            opening = opened.pop()
            inside = text[opening.end : token.start]
            if not inside.strip():
                wrong.append(Mistake(Problem.EMPTY, opening.start, token.end))
            elif len(inside) > MAX_SPAN_CHARACTERS:
                wrong.append(Mistake(Problem.TOO_LONG, opening.start, token.end))
            else:
                continue
            dropped |= {opening.start, token.start}
    for token in opened:
        wrong.append(Mistake(Problem.NOT_CLOSED, token.start, token.end, f"</{token.value}>"))
        dropped.add(token.start)
    kept = [token for token in found if token.start not in dropped]
    return kept, wrong


def _with_text(text: str, found: Sequence[Token]) -> list[Token]:
    """The tokens with the text between them."""
    whole: list[Token] = []
    at = 0
    for token in found:
        if token.start > at:
            whole.append(Token(Kind.TEXT, at, token.start, text[at : token.start]))
        whole.append(token)
        at = token.end
    if at < len(text):
        whole.append(Token(Kind.TEXT, at, len(text), text[at:]))
    return whole
