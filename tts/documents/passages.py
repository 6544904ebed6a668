"""A text as passages: what one speaker says in one chapter, in order.

Chapters are told by their titles (`tts.documents.chapters`), which are spoken too, as passages of their own. Speakers
are told by their names (`tts.documents.scripts`) where the text is read as a script: turns of one speaker that follow
each other are one passage, what stands before the first name of a chapter is the narrator's, and so are titles. An SSML
document is one passage. What has nothing to say (a turn of dots, a title of signs) is left out.

The text that is kept is made of the passages, with names and marks: read again it gives the same ones. Put together
without names and marks, the passages are what is spoken. Pure, no Django but for the refusals' texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tts.documents.chapters import title_line
from tts.documents.scripts import NARRATOR, name_key, turn_start
from tts.text.alignment import Edit, Edited, edit
from tts.text.annotations import Mistake, counted_characters
from tts.text.cleaning import (
    LINE_END,
    Place,
    check_request,
    clean_line,
    clean_part,
    is_spoken,
    nothing_to_say,
    refuse_other_scripts,
)
from tts.text.errors import AnnotationInvalid, TextTooManyParts, TooManySpeakers, too_long
from tts.text.limits import MAX_JOB_CHARACTERS, MAX_JOB_SEGMENTS, MAX_SPEAKERS
from tts.text.markup import is_fence, is_ssml_document

# What one round puts together (emphasis around a title, an invisible sign before a name) the next one finds.
_MOST_ROUNDS: Final = 8


@dataclass(frozen=True)
class Passage:
    """What is spoken in one go: cleaned, and never without anything to say. `chapter` counts from 0."""

    text: str
    speaker: str = NARRATOR
    chapter: int = 0
    is_title: bool = False


@dataclass(frozen=True)
class Chapter:
    """`title` is "" where the text begins without one."""

    title: str
    first_passage: int


@dataclass(frozen=True)
class ReadText:
    """A text that was read. `chapters` is empty where there is no title; `characters` counts what is spoken."""

    text: str
    passages: list[Passage]
    chapters: list[Chapter]
    characters: int

    @property
    def speakers(self) -> list[str]:
        """Those with a name, as they appear."""
        named = (passage.speaker for passage in self.passages if passage.speaker != NARRATOR)
        return list(dict.fromkeys(named))

    @property
    def spoken(self) -> str:
        """All that is spoken, without names and marks: what tells the languages."""
        return "\n".join(passage.text for passage in self.passages)


@dataclass
class _Piece:
    """A passage as it stands in a text: characters `start` to `end` of it, less what `left_out` names."""

    speaker: str
    start: int
    end: int
    # How it is written down: a title's marks, or the colon after a name.
    mark: str = ""
    is_title: bool = False
    left_out: list[Edit] = field(default_factory=list)

    def source(self, text: str) -> Edited:
        """The piece without what is left out."""
        edits = [Edit(one.start - self.start, one.end - self.start, "") for one in self.left_out]
        return edit(text[self.start : self.end], edits)

    def placed_in(self, text: str) -> Place:
        """Where characters of the source stand in the text."""
        source = self.source(text)

        def place(start: int, end: int) -> tuple[int, int]:
            first, last = source.source_span(start, end)
            return self.start + first, self.start + last

        return place


def read_text(
    raw: str,
    *,
    is_script: bool = False,
    supported_languages: Sequence[str] = (),
    language: str = "",
    max_characters: int = MAX_JOB_CHARACTERS,
) -> ReadText:
    """Return the passages of a text; the arguments are those of `clean_text`.

    Raises:
        TextRefused: every refusal of `clean_text`, with places in the whole text as it was sent; TextTooManyParts,
            TooManySpeakers.
    """
    check_request(
        raw, supported_languages=supported_languages, language=language, max_characters=max_characters
    )
    text, pieces = raw, _cut(raw, is_script)
    if len(pieces) > 2 * MAX_JOB_SEGMENTS:  # every second one may be empty
        raise TextTooManyParts(parts=len(pieces), limit=MAX_JOB_SEGMENTS)
    cleaned = _cleaned(text, pieces)
    for piece in pieces:
        refuse_other_scripts(piece.source(raw).text, supported_languages, piece.placed_in(raw))
    for _round in range(_MOST_ROUNDS):
        if not cleaned:
            raise nothing_to_say(raw)
        text = _written(cleaned)
        pieces = _cut(text, is_script)
        if _are_same(pieces, text, cleaned):
            break
        cleaned = _cleaned(text, pieces)
    passages = _passages(cleaned)
    characters = sum(counted_characters(passage.text) for passage in passages)
    if characters > max_characters:
        raise too_long(characters=characters, limit=max_characters)
    read = ReadText(text=text, passages=passages, chapters=_chapters(passages), characters=characters)
    if len(read.speakers) > MAX_SPEAKERS:
        raise TooManySpeakers(speakers=len(read.speakers), limit=MAX_SPEAKERS)
    return read


def _cut(text: str, is_script: bool) -> list[_Piece]:
    """The pieces of a text that is not cleaned yet. Those without words are among them."""
    if is_ssml_document(text):
        return [_Piece(NARRATOR, 0, len(text))]
    pieces: list[_Piece] = []
    spelled: dict[str, str] = {}
    current = _Piece(NARRATOR, 0, 0)
    fenced = False
    for start, end in _lines(text):
        line = text[start:end]
        fenced ^= is_fence(line)
        if not fenced and (title := title_line(line)):
            place = (start + title.start, start + title.end)
            pieces += [current, _Piece(NARRATOR, *place, mark=title.marks, is_title=True)]
            current = _Piece(NARRATOR, end, end)
            continue
        if is_script and (turn := turn_start(line)):
            name = clean_line(turn.speaker)
            name = spelled.setdefault(name_key(name), name)
            words_at = start + turn.words_at
            if name == current.speaker:
                current.left_out.append(Edit(start, words_at, ""))
            else:
                pieces.append(current)
                current = _Piece(name, words_at, words_at, mark=turn.colon)
        current.end = max(current.end, end)
    return [*pieces, current]


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends."""
    at = 0
    for match in LINE_END.finditer(text):
        yield at, match.start()
        at = match.end()
    yield at, len(text)


def _cleaned(text: str, pieces: Sequence[_Piece]) -> list[tuple[_Piece, str]]:
    """The pieces that have something to say, with their cleaned texts. Every mistake of all is told at once."""
    cleaned: list[tuple[_Piece, str]] = []
    wrong: list[Mistake] = []
    for piece in pieces:
        try:
            said = clean_part(piece.source(text).text, piece.placed_in(text))
        except AnnotationInvalid as error:
            wrong += error.mistakes
            continue
        if is_spoken(said):
            cleaned.append((piece, " ".join(said.split()) if piece.is_title else said))
    if wrong:
        raise AnnotationInvalid(mistakes=wrong)
    return cleaned


def _written(cleaned: Sequence[tuple[_Piece, str]]) -> str:
    """The text that is kept."""
    parts: list[str] = []
    for number, (piece, said) in enumerate(cleaned):
        if number:
            parts.append("\n\n" if piece.is_title or cleaned[number - 1][0].is_title else "\n")
        if piece.is_title:
            bare = title_line(said)
            marks = piece.mark or ("" if bare and not bare.marks else "#")
            parts.append(f"{marks} {said}" if marks else said)
        elif piece.speaker != NARRATOR:
            space = " " if piece.mark == ":" or said.startswith("//") else ""
            parts.append(f"{piece.speaker}{piece.mark}{space}{said}")
        else:
            parts.append(said)
    return "".join(parts)


def _are_same(pieces: Sequence[_Piece], text: str, cleaned: Sequence[tuple[_Piece, str]]) -> bool:
    """Whether the text that is kept reads as the passages that it was made of."""
    found = [
        (piece.speaker, piece.is_title, said) for piece in pieces if (said := piece.source(text).text.strip())
    ]
    return found == [(piece.speaker, piece.is_title, said) for piece, said in cleaned]


def _passages(cleaned: Sequence[tuple[_Piece, str]]) -> list[Passage]:
    chapter = 0
    passages: list[Passage] = []
    for piece, said in cleaned:
        chapter += int(piece.is_title and bool(passages))
        passages.append(Passage(said, piece.speaker, chapter, piece.is_title))
    return passages


def _chapters(passages: Sequence[Passage]) -> list[Chapter]:
    titles = [Chapter(passage.text, number) for number, passage in enumerate(passages) if passage.is_title]
    if titles and titles[0].first_passage:
        return [Chapter("", 0), *titles]
    return titles
