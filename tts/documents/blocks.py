"""What every reader makes of a document: headings and paragraphs in order; and chapters made of them.

The rule of chapters. The two highest levels of headings that occur begin chapters; deeper ones are lines of the text.
A heading with nothing under it goes in front of the next lower one ("Part one, Chapter 1"); one that is followed by
another of its level or a higher one is left out: so is a list of contents. A heading above all others at the very
beginning, with nothing under it, is the document's title.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tts.documents.limits import MAX_CHAPTERS, MAX_DOCUMENT_CHARACTERS, MAX_DOCUMENT_TITLE_CHARACTERS
from tts.documents.refusal import Reason, Refused
from tts.text.annotations import counted_characters
from tts.text.limits import MAX_TITLE_CHARACTERS

HEADING_MARK: Final = "# "
_CHAPTER_LEVELS: Final = 2
_SPACES: Final = re.compile(r"[^\S\n]+")
_AROUND_LINE_END: Final = re.compile(r" *\n[ \n]*")
_INVISIBLE: Final = re.compile(
    "[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_HEADING_MARKS: Final = re.compile(r"^(?:#{1,6}[ \t]+)+", re.MULTILINE)
_CHINESE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True)
class Block:
    """A paragraph (level 0) or a heading (level 1, the highest, to 6)."""

    text: str
    level: int = 0


@dataclass(frozen=True)
class Chapter:
    """`title` "" is what stands before the first heading. `body` has a line for each paragraph."""

    title: str
    body: str

    @property
    def text(self) -> str:
        """The chapter as it stands in a text: its title as a heading."""
        return f"{HEADING_MARK}{self.title}\n\n{self.body}" if self.title else self.body

    @property
    def characters(self) -> int:
        """Its length as limits and prices count it."""
        return counted_characters(self.text)


@dataclass(frozen=True)
class Document:
    """What was read. `encoding` is that of a plain text, else ""."""

    title: str
    chapters: tuple[Chapter, ...]
    encoding: str = ""

    @property
    def characters(self) -> int:
        return sum(chapter.characters for chapter in self.chapters)


def tidy(text: str) -> str:
    """A paragraph's text with plain spaces, single line ends, and nothing invisible; what held no word is "".

    A line that would be taken for a heading is none any more.
    """
    plain = _INVISIBLE.sub("", text.replace("\t", " ").replace("\r", "\n"))
    plain = _AROUND_LINE_END.sub("\n", _SPACES.sub(" ", plain)).strip()
    return _HEADING_MARKS.sub("", plain) if any(sign.isalnum() for sign in plain) else ""


def document_of(blocks: Iterable[Block], *, title: str = "", encoding: str = "") -> Document:
    """Put blocks together.

    Raises:
        Refused: NO_TEXT, TOO_LONG, or TOO_COMPLEX for more chapters than anybody can choose from.
    """
    tidied = _tidied(blocks)
    characters = sum(len(block.text) for block in tidied)
    if characters > MAX_DOCUMENT_CHARACTERS:
        raise Refused(Reason.TOO_LONG, characters=characters)
    title = " ".join(tidy(title).split())[:MAX_DOCUMENT_TITLE_CHARACTERS]
    tidied, title = _without_title(tidied, title)
    chapters = _chapters(tidied)
    if not chapters:
        raise Refused(Reason.NO_TEXT)
    if len(chapters) > MAX_CHAPTERS:
        raise Refused(Reason.TOO_COMPLEX)
    return Document(title=title, chapters=tuple(chapters), encoding=encoding)


def _tidied(blocks: Iterable[Block]) -> list[Block]:
    made = []
    for block in blocks:
        text = unicodedata.normalize("NFC", tidy(block.text))
        if not text:
            continue
        if block.level and len(text) <= MAX_TITLE_CHARACTERS:
            made.append(Block(" ".join(text.split()), block.level))
        else:
            made.append(Block(text))
    return made


def _without_title(blocks: list[Block], title: str) -> tuple[list[Block], str]:
    """A first heading that is followed by a lower one at once is the title, and no chapter."""
    levels = [block.level for block in blocks[:2]]
    others = {block.level for block in blocks[1:]}
    if len(levels) == 2 and 0 < levels[0] < levels[1] and levels[0] not in others:
        return blocks[1:], title or blocks[0].text
    return blocks, title


def _chapters(blocks: list[Block]) -> list[Chapter]:
    levels = sorted({block.level for block in blocks if block.level})[:_CHAPTER_LEVELS]
    chapters: list[Chapter] = []
    headings: list[Block] = []
    lines: list[str] = []
    for block in blocks:
        if block.level not in levels:
            lines.append(block.text)
            continue
        if lines:
            chapters.append(_chapter(headings, lines))
            headings, lines = [], []
        headings = [heading for heading in headings if heading.level < block.level] + [block]
    return [*chapters, _chapter(headings, lines)] if lines else chapters


def _chapter(headings: list[Block], lines: list[str]) -> Chapter:
    title = ""
    for heading in headings:
        comma = "，" if _CHINESE.search(title) else ", "
        joined = f"{title}{comma}{heading.text}" if title else heading.text
        # A longer one would be no title to who reads the text (tts.documents.chapters).
        title = joined if len(joined) <= MAX_TITLE_CHARACTERS else heading.text
    return Chapter(title=title, body="\n".join(lines))
