"""Lines that begin a chapter.

A line is a chapter's title where it is a Markdown heading of the first or second level (`# …`, `## …`), or where
nothing else stands on it than `第一章 …`, `第十二回：…`, `Chapter 1 …`, `Part II: …`, or a name such as 楔子 or
Epilogue. A line that ends like a sentence, or is longer than a title, is text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tts.text.limits import MAX_TITLE_CHARACTERS

_HEADING: Final = re.compile(r"[ \t]{0,3}(?P<marks>#{1,2})[ \t]+(?=\S)")
_NUMBER: Final = r"[〇零一二三四五六七八九十百千两0-9０-９]{1,9}"
_ENGLISH_NUMBER: Final = (
    r"(?:\d{1,4}|[IVXLCDM]{1,8}|[ivxlcdm]{1,8}|(?i:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty))"
)
_SIGN: Final = r"[:：、.．·—–-]"
_BARE: Final = re.compile(
    rf"第{_NUMBER}[章回卷部集篇幕](?:(?:\s*{_SIGN}+\s*|\s+)\S.*)?"
    rf"|(?i:chapter|part)\s+{_ENGLISH_NUMBER}(?:\s*{_SIGN}+\s*\S.*|\s+[^\Wa-z_].*)?"
    r"|序章|楔子|引子|尾声|终章|后记|前言|(?i:prologue|epilogue|foreword|afterword)"
)
_SENTENCE_ENDS: Final = frozenset("。.，,；;：:")


@dataclass(frozen=True)
class TitleLine:
    """A chapter's title: its marks ("#", "##" or "" where it needs none), and where in the line its words stand."""

    marks: str
    start: int
    end: int


def title_line(line: str) -> TitleLine | None:
    """The title that the line is; None where it is text."""
    found = _HEADING.match(line)
    if found is not None:
        start, end = found.end(), _end_of_heading(line)
        return TitleLine(found["marks"], start, end) if end - start <= MAX_TITLE_CHARACTERS else None
    title = line.strip()
    if not title or len(title) > MAX_TITLE_CHARACTERS or title[-1] in _SENTENCE_ENDS:
        return None
    if not _BARE.fullmatch(title):
        return None
    start = line.index(title)
    return TitleLine("", start, start + len(title))


def _end_of_heading(line: str) -> int:
    """Where a heading's words end: before the signs that may close it, as in `# Title #`.

    By hand: a pattern that looks for them behind each character takes minutes for a line of many spaces.
    """
    words = line.rstrip(" \t")
    without_signs = words.rstrip("#")
    bare = without_signs.rstrip(" \t")
    # They stand apart from the words, and are not those that begin the heading.
    is_closed = bare != without_signs and bare.lstrip(" \t") not in ("", "#", "##")
    return len(bare) if is_closed else len(words)
