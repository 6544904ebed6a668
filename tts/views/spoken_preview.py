"""What will be spoken, beside the price, with the characters that have several readings marked where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tts.services.quoting import Quote, SegmentPlan
from tts.text.annotations import mask
from tts.text.polyphones import KnownReading, Polyphone, polyphones
from tts.text.typed_places import spoken_places, typed_places

# A quote comes with every pause of somebody who types: each mark brings a menu.
MAX_MARKS: Final = 200
# A book is not marked: finding the places in all of it takes longer than its price may.
MAX_MARKED_CHARACTERS: Final = 100_000
LEAST_OF_A_SPEAKER: Final = 4
_OTHER_WRITING: Final = re.compile(r"[\u3041-\u30ff\uac00-\ud7a3]")


@dataclass(frozen=True)
class Choice:
    """A reading as the menu offers it. `annotation` stands for the character in the text."""

    pinyin: str
    example: str
    annotation: str


@dataclass(frozen=True)
class Piece:
    """A stretch of what is spoken. With `choices` it is one character, the first of them the reading that it has.

    `start` is where the character stands in the text field: UTF-16 units, as scripts of pages count, a new line as one.
    """

    text: str
    choices: tuple[Choice, ...] = ()
    start: int = 0


@dataclass(frozen=True)
class SpokenPreview:
    """`segments` are those of the quote's preview, `marks` how many characters are marked in them."""

    segments: list[list[Piece]]
    marks: int


def spoken_preview(raw: str, quote: Quote) -> SpokenPreview:
    """What is spoken for a text as it came from the form. Never raises."""
    marks = _Marks(raw, quote)
    segments = [list(marks.pieces(part)) for part in quote.preview]
    return SpokenPreview(segments=segments, marks=marks.count)


class _Marks:
    """Gives out marks, in the order of the text, until there are MAX_MARKS."""

    def __init__(self, raw: str, quote: Quote) -> None:
        self.count = 0
        self._raw = raw
        self._text, self._at = quote.text, 0
        self._is_chinese = quote.language in ("", "zh") and len(raw) <= MAX_MARKED_CHARACTERS
        self._typed = typed_places(raw, quote.text) if self._is_chinese else {}
        # The last place that was counted to, in the text as it came and in the field.
        self._counted, self._units = 0, 0

    def pieces(self, part: SegmentPlan) -> Iterator[Piece]:
        """A segment of the quote, which come in order."""
        spoken, written = part.spoken, 0
        for one, typed in self._marked(part):
            self.count += 1
            if one.at > written:
                yield Piece(spoken[written : one.at])
            yield Piece(one.character, _choices(one), self._place_in_field(typed))
            written = one.at + 1
        if written < len(spoken):
            yield Piece(spoken[written:])

    def _marked(self, part: SegmentPlan) -> Iterator[tuple[Polyphone, int]]:
        """The characters to mark, with the index at which each was typed."""
        at = self._text.find(part.text, self._at)
        # A speaker's name may hold the same few characters.
        if at < 0 or (part.speaker and len(part.text.strip()) < LEAST_OF_A_SPEAKER):
            return
        self._at = at + len(part.text)
        if not self._is_chinese or _OTHER_WRITING.search(part.spoken):
            return
        places = spoken_places(part.text, part.spoken)
        for one in polyphones(mask(part.spoken)):
            typed = self._typed.get(at + places[one.at]) if one.at in places else None
            if typed is not None and self.count < MAX_MARKS:
                yield one, typed

    def _place_in_field(self, typed: int) -> int:
        if typed < self._counted:
            self._counted, self._units = 0, 0
        between = self._raw[self._counted : typed].replace("\r\n", "\n")
        self._units += len(between.encode("utf-16-le")) // 2
        self._counted = typed
        return self._units


def _choices(one: Polyphone) -> tuple[Choice, ...]:
    return tuple(map(_choice, (one.reading, *one.others)))


def _choice(reading: KnownReading) -> Choice:
    # A neutral tone has no mark: it is written by its number.
    has_mark = any(not letter.isascii() and letter != "ü" for letter in reading.pinyin)
    written = reading.pinyin if has_mark else f"{reading.pinyin.replace('ü', 'v')}5"
    return Choice(pinyin=reading.pinyin, example=reading.example, annotation=f"[{written}]")
