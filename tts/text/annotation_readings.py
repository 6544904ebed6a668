"""Reading brackets that stand side by side as pinyin or ARPAbet, as mistakes of these, or as ordinary text.

The rule stands in `tts.text.annotations`. Loaded by engines: clean for Python 3.10.
"""

from __future__ import annotations

import enum
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tts.text.annotation_inventory import (
    ARPABET,
    FINALS,
    INITIALS,
    MAX_PHONEMES,
    NEUTRAL_TONE,
    STRESSED_VOWELS,
    SYLLABLES,
    VOWELS,
    with_tone,
    without_tone,
)
from tts.text.spelling import nearest


class Reading(enum.Enum):
    """What brackets were read as."""

    PINYIN = "pinyin"
    ARPABET = "arpabet"
    NOT_PINYIN = "not_pinyin"
    NOT_ARPABET = "not_arpabet"
    TOO_LONG = "too_long"


@dataclass(frozen=True)
class Bracket:
    """One bracket: its place with the brackets, its content without."""

    start: int
    end: int
    content: str


@dataclass(frozen=True)
class ChainReading:
    """`value` is what an annotation says (see `annotations.Token`), or what a mistake was probably meant to be."""

    kind: Reading
    start: int
    end: int
    value: str


_PHONEME: Final = re.compile(r"([A-Z]{1,2})(\d?)")
_LETTERS_AND_TONE: Final = re.compile(r"([a-zü]{1,6})(\d?)")
_LONGEST_SYLLABLE: Final = 6


def read_chain(text: str, chain: Sequence[Bracket]) -> Iterator[ChainReading]:
    """Yield what the brackets are, in order; nothing for ordinary text."""
    at = 0
    while at < len(chain):
        stop = at
        while stop < len(chain) and _PHONEME.fullmatch(chain[stop].content):
            stop += 1
        if stop > at:
            yield from _arpabet(chain[at:stop])
            at = stop
            continue
        reading, used = _pinyin(text, chain, at)
        if reading is not None:
            yield reading
        at += used


def _arpabet(run: Sequence[Bracket]) -> Iterator[ChainReading]:
    """A run of brackets that look like phonemes: one word, its mistakes, or ordinary text."""
    contents = [bracket.content for bracket in run]
    vowels = [content for content in contents if _vowel(content)]
    if not vowels or (len(run) == 1 and contents[0] in VOWELS):
        return
    wrong = [bracket for bracket in run if bracket.content not in ARPABET]
    for bracket in wrong:
        yield ChainReading(Reading.NOT_ARPABET, bracket.start, bracket.end, _meant_phoneme(bracket.content))
    if not wrong and len(run) > MAX_PHONEMES:
        yield ChainReading(Reading.TOO_LONG, run[0].start, run[-1].end, "")
    elif not wrong:
        yield ChainReading(Reading.ARPABET, run[0].start, run[-1].end, " ".join(contents))


def _vowel(content: str) -> bool:
    """Whether it is a vowel, with whatever digit."""
    match = _PHONEME.fullmatch(content)
    return match is not None and match[1] in VOWELS


def _meant_phoneme(content: str) -> str:
    letters = content.rstrip("0123456789")
    if letters in VOWELS:
        return f"[{letters}1]"
    if letters in ARPABET:
        return f"[{letters}]"
    known = STRESSED_VOWELS if content != letters else ARPABET
    meant = nearest(content, known, farthest=1)
    return f"[{meant}]" if meant else ""


def _pinyin(text: str, chain: Sequence[Bracket], at: int) -> tuple[ChainReading | None, int]:
    """The bracket at that place, with the next one where the two are a syllable; and how many were looked at."""
    one = chain[at]
    letters, tone, has_tone = _letters_and_tone(one.content)
    if letters in INITIALS and not has_tone and at + 1 < len(chain):
        other = chain[at + 1]
        reading = _two_parts(text, one, other)
        if reading is not None:
            return reading, 2
        return None, 1
    if not letters or not has_tone:
        return None, 1
    if letters in SYLLABLES and tone:
        return ChainReading(Reading.PINYIN, one.start, one.end, f"{letters}{tone}"), 1
    # A digit makes a label of any word, so that it counts only where pinyin would stand.
    is_marked = not one.content[-1].isdigit()
    if is_marked or len(chain) > 1 or _touches_chinese(text, one.start, one.end):
        meant = letters if letters in SYLLABLES else nearest(letters, SYLLABLES, farthest=1)
        if meant:
            suggestion = f"[{with_tone(meant, tone)}]" if is_marked else f"[{meant}{tone or 4}]"
            return ChainReading(Reading.NOT_PINYIN, one.start, one.end, suggestion), 1
    return None, 1


def _two_parts(text: str, one: Bracket, other: Bracket) -> ChainReading | None:
    """An initial and what follows it: a syllable, a mistake, or None where the two have nothing to do."""
    initial = one.content
    final, tone, has_tone = _letters_and_tone(other.content)
    if not final or (not has_tone and not _touches_chinese(text, one.start, other.end)):
        return None
    if initial + final in SYLLABLES and (tone or not has_tone):
        return ChainReading(Reading.PINYIN, one.start, other.end, f"{initial}{final}{tone or NEUTRAL_TONE}")
    if not has_tone:
        return None
    finals = [known for known in FINALS if initial + known in SYLLABLES]
    meant = final if final in finals else nearest(final, finals, farthest=2)
    suggestion = f"[{initial}][{with_tone(meant, tone or 4)}]" if meant else ""
    return ChainReading(Reading.NOT_PINYIN, one.start, other.end, suggestion)


def _letters_and_tone(content: str) -> tuple[str, int, bool]:
    """The letters ("v" for ü), the tone (0: none, or none that there is), and whether a tone is written at all.

    No letters where the content does not look like pinyin.
    """
    spelled = unicodedata.normalize("NFC", content)
    if len(spelled) > _LONGEST_SYLLABLE + 1:
        return "", 0, False
    bare, tone = without_tone(spelled)
    match = _LETTERS_AND_TONE.fullmatch(bare)
    if match is None or (tone and match[2]):
        return "", 0, False
    letters = match[1].replace("ü", "v")
    if match[2]:
        digit = int(match[2])
        return letters, NEUTRAL_TONE if digit == 0 else digit if digit <= NEUTRAL_TONE else 0, True
    return letters, tone, bool(tone)


def _touches_chinese(text: str, start: int, end: int) -> bool:
    return any("\u3400" <= text[at] <= "\u9fff" for at in (start - 1, end) if 0 <= at < len(text))
