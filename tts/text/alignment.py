"""A text with stretches replaced, and the way back from the new text to the old one.

Whatever rewrites a text (markup, normalisation, dictionaries) returns an `Edited`, so that a place in what is spoken,
or in what is complained about, can be shown in what a person typed.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Characters `start` to `end` of the old text become `replacement`."""

    start: int
    end: int
    replacement: str


class Edited:
    """The new `text`. Made by `edit`."""

    def __init__(self, source: str, edits: list[Edit]) -> None:
        parts: list[str] = []
        # Where pieces begin, in the new and in the old text; a replacement is a piece of its own.
        self._new: list[int] = []
        self._old: list[int] = []
        self._is_copy: list[bool] = []
        self._old_length = len(source)
        at = length = 0
        for edit in [*edits, Edit(len(source), len(source), "")]:
            for piece, old, is_copy in (
                (source[at : edit.start], at, True),
                (edit.replacement, edit.start, False),
            ):
                if piece:
                    self._new.append(length)
                    self._old.append(old)
                    self._is_copy.append(is_copy)
                    parts.append(piece)
                    length += len(piece)
            at = edit.end
        self._ends = {edit.start: edit.end for edit in edits}
        self.text = "".join(parts)

    def source_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the stretch of the old text that characters `start` to `end` of the new one come from.

        A part of a replacement comes from all that it replaced.
        """
        return self._source_start(start), self._source_end(end, start)

    def _source_start(self, position: int) -> int:
        piece = bisect.bisect_right(self._new, position) - 1
        if piece < 0:
            return 0
        if self._is_copy[piece]:
            return self._old[piece] + position - self._new[piece]
        return self._old[piece]

    def _source_end(self, position: int, start: int) -> int:
        if position <= start:
            return self._source_start(start)
        piece = bisect.bisect_right(self._new, position - 1) - 1
        if self._is_copy[piece]:
            return self._old[piece] + position - self._new[piece]
        return self._ends[self._old[piece]]


def edit(source: str, edits: Iterable[Edit]) -> Edited:
    """Return the text with the edits made. They are in order and do not touch each other's characters.

    Raises:
        ValueError: they are out of order or overlap.
    """
    ordered = list(edits)
    at = 0
    for one in ordered:
        if not at <= one.start <= one.end <= len(source):
            raise ValueError("edits overlap or are out of order")
        at = one.end
    return Edited(source, ordered)
