"""Subtitles from what was spoken when: SRT and WebVTT; chapters as WebVTT."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Two lines on a screen. A Chinese character is as wide as two letters.
LINE_WIDTH = 42
LINES = 2
# A cue that is shorter than this cannot be read; it stays until the next one begins.
SHORTEST_MS = 700
_ENDS = re.compile(r"[.。!！?？…]+[”\"’')）」』]*\s*|[,，;；:：、]+\s*|\s+")


@dataclass(frozen=True)
class SpokenPart:
    """A piece of text and when it is heard, in milliseconds from the beginning. `speaker` "" is not written."""

    text: str
    start_ms: int
    end_ms: int
    speaker: str = ""


def cues_of(parts: Iterable[SpokenPart], *, named: bool = False) -> list[SpokenPart]:
    """The parts as cues that fit on a screen: longer ones are divided at sentences, clauses or words.

    A divided part's time is shared by the width of the text. The cues are in order and do not overlap; together they
    say the text. `named` leaves room in each for its speaker's name.

    Raises:
        ValueError: a part ends before it begins, or begins before the one before it.
    """
    cues: list[SpokenPart] = []
    for part in parts:
        if part.end_ms < part.start_ms or (cues and part.start_ms < cues[-1].start_ms):
            raise ValueError("parts come in order, and each ends after it begins")
        pieces = _pieces(" ".join(part.text.split()), before=_name(part) if named else "")
        whole = sum(map(_width, pieces)) or 1
        before = 0
        for piece in pieces:
            start = part.start_ms + (part.end_ms - part.start_ms) * before // whole
            before += _width(piece)
            end = part.start_ms + (part.end_ms - part.start_ms) * before // whole
            cues.append(SpokenPart(piece, start, end, part.speaker))
    return _readable(cues)


def srt(parts: Iterable[SpokenPart]) -> str:
    """The parts as SubRip: numbered, times with a comma."""
    blocks = [
        f"{number}\n{_time(cue.start_ms, ',')} --> {_time(cue.end_ms, ',')}\n{_said(cue)}\n"
        for number, cue in enumerate(cues_of(parts, named=True), start=1)
    ]
    return "\n".join(blocks)


def vtt(parts: Iterable[SpokenPart]) -> str:
    """The parts as WebVTT; a speaker is a voice span."""
    blocks = ["WEBVTT\n"]
    for cue in cues_of(parts):
        text = "\n".join(_escaped(line) for line in _lines(cue.text))
        voice = _escaped(" ".join(cue.speaker.split()))
        said = f"<v {voice}>{text}</v>" if voice else text
        blocks.append(f"{_time(cue.start_ms, '.')} --> {_time(cue.end_ms, '.')}\n{said}\n")
    return "\n".join(blocks)


def vtt_chapters(chapters: Iterable[SpokenPart]) -> str:
    """Chapters as WebVTT, as a track of the kind "chapters" takes them: one cue for each, its text the title."""
    blocks = ["WEBVTT\n"]
    for chapter in chapters:
        title = _escaped(" ".join(chapter.text.split()))
        blocks.append(f"{_time(chapter.start_ms, '.')} --> {_time(chapter.end_ms, '.')}\n{title}\n")
    return "\n".join(blocks)


def _said(cue: SpokenPart) -> str:
    # An arrow would be taken for a time.
    return "\n".join(_lines(f"{_name(cue)}{cue.text}".replace("-->", "→")))


def _name(part: SpokenPart) -> str:
    """What stands before the words where a format has no place for the speaker."""
    return f"{part.speaker}: " if part.speaker else ""


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _time(at_ms: int, mark: str) -> str:
    seconds, ms = divmod(at_ms, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{mark}{ms:03}"


def _readable(cues: Sequence[SpokenPart]) -> list[SpokenPart]:
    """Cues that are long enough to be read, as far as the next one leaves room, and never overlap."""
    made = []
    for number, cue in enumerate(cues):
        end = max(cue.end_ms, cue.start_ms + SHORTEST_MS)
        if number + 1 < len(cues):
            end = min(end, max(cue.start_ms, cues[number + 1].start_ms))
        made.append(SpokenPart(cue.text, cue.start_ms, end, cue.speaker))
    return made


def _pieces(text: str, *, before: str = "") -> list[str]:
    """The text in pieces that fit in two lines, `before` in front of each; joined by nothing, they are the text but for
    spaces at the joints."""
    pieces: list[str] = []
    current, fill = "", _Fill.of(before)
    for word in _words(text):
        grown = fill.grown(word)
        if current and grown.lines > LINES:
            cut = _best_cut(current)
            pieces.append(current[:cut].strip())
            current = current[cut:].lstrip()
            fill = _Fill.of(before + current)
            grown = fill.grown(word)
        current, fill = current + word, grown
    return [*pieces, current.strip()] if current.strip() else pieces


@dataclass(frozen=True)
class _Fill:
    """How many lines words take, and how wide the last one is: `_lines` counted word by word."""

    lines: int = 0
    width: int = 0

    @classmethod
    def of(cls, text: str) -> _Fill:
        """How a text fills them."""
        return functools.reduce(cls.grown, _words(text), cls())

    def grown(self, word: str) -> _Fill:
        if self.width and self.width + _width(word.rstrip()) > LINE_WIDTH:
            return _Fill(self.lines + 1, _width(word))
        return _Fill(max(self.lines, 1), self.width + _width(word))


def _best_cut(text: str) -> int:
    """Behind the last sentence in the text's second half, else the last clause there, else its end."""
    for ends in ".。!！?？…", ",，;；:：、":
        places = [match.end() for match in _ENDS.finditer(text) if match.group()[0] in ends]
        places = [place for place in places if place >= len(text) // 2]
        if places:
            return places[-1]
    return len(text)


def _words(text: str) -> list[str]:
    """Words with the space after them; wide characters and over-long words one by one."""
    words: list[str] = []
    for word in re.findall(r"\S+\s*", text):
        parts = re.findall(r"[\u2e80-\uffef]\W*|[^\u2e80-\uffef]+", word)
        for part in parts:
            words += [part] if _width(part) <= LINE_WIDTH else list(part)
    return words


def _lines(text: str) -> list[str]:
    """The text broken into lines of at most LINE_WIDTH."""
    lines: list[str] = []
    current = ""
    for word in _words(text):
        if current and _width((current + word).rstrip()) > LINE_WIDTH:
            lines.append(current.rstrip())
            current = ""
        current += word
    return [*lines, current.rstrip()] if current.strip() else lines


def _width(text: str) -> int:
    return sum(map(_sign_width, text))


@functools.lru_cache(maxsize=16_384)
def _sign_width(sign: str) -> int:
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
