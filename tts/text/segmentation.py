"""Cutting a text into segments: the pieces that one device speaks in one go.

Joined again, the segments are the text: nothing is lost and nothing doubled, spaces and line ends included. No cut
goes through an annotation, nor through what a span (`<strong>…</strong>`) holds.
"""

from __future__ import annotations

import bisect
import itertools
import re
from enum import IntEnum
from typing import Final

from tts.text.annotations import Kind, heard, tokens, whole_spans
from tts.text.characters import UNSPACED_SCRIPTS, has_speech, is_speakable, script_of, splits_character
from tts.text.estimate import character_times_ms
from tts.text.limits import (
    FIRST_SEGMENT_MS,
    MAX_SEGMENT_CHARACTERS,
    MAX_SEGMENT_MS,
    MAX_UNSPOKEN_RUN,
    MIN_SEGMENT_MS,
    PREFERRED_SEGMENT_MS,
)


class Cut(IntEnum):
    """How good a place is for a cut.

    FORBIDDEN is inside what a person sees as one character, BEFORE_SIGN between a word and the sign after it.
    """

    FORBIDDEN = 0
    BEFORE_SIGN = 1
    INSIDE_WORD = 2
    WORD = 3
    CLAUSE = 4
    SENTENCE = 5
    PARAGRAPH = 6


_CJK_SENTENCE_ENDS: Final = frozenset("。！？｡")
_LATIN_SENTENCE_ENDS: Final = frozenset(".!?")
_CJK_CLAUSE_ENDS: Final = frozenset("，、；：…—")
_LATIN_CLAUSE_ENDS: Final = frozenset(",;:")
_QUOTES_AND_BRACKETS: Final = frozenset("\"'”’」』）)]】》〉｝}›»")
# What belongs to the word after it.
_OPENING_BRACKETS: Final = frozenset("“‘「『（([【《〈｛{‹«¿¡")
_OPENING: Final = _OPENING_BRACKETS | frozenset("$€£¥￥#@")

# A full stop after one of these, or after a single letter, ends no sentence. Without their stops.
_ABBREVIATIONS: Final = frozenset(
    {
        "mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "etc", "e.g", "i.e", "no", "vol", "fig",
        "inc", "ltd", "co", "corp", "approx", "dept", "est", "gen", "col", "sgt", "capt", "rev", "hon", "gov", "sen",
        "a.m", "p.m", "u.s", "u.k", "ph.d", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep",
        "sept", "oct", "nov", "dec", "z.b", "bzw", "nr", "mme", "mlle", "sra", "srta",
    }
)  # fmt: skip
_LAST_WORD: Final = re.compile(r"[^\W\d_](?:[^\W\d_]|\.(?=[^\W\d_]))*$")
_WORD_REACH: Final = 24  # longer than every abbreviation above


def segment(
    text: str,
    *,
    max_characters: int = MAX_SEGMENT_CHARACTERS,
    max_ms: int = MAX_SEGMENT_MS,
    preferred_ms: int = PREFERRED_SEGMENT_MS,
    first_ms: int = FIRST_SEGMENT_MS,
) -> list[str]:
    """Return the segments of a cleaned text, in order; [] for "".

    No segment has more than `max_characters` or, by estimate, lasts more than `max_ms` (a single character
    may). Cuts are made after sentences where that keeps a segment within `preferred_ms` (`first_ms` for the
    first), else at the best place up to the maximum: after a clause, between words, and only where there is
    neither, inside one. Every segment of a text that `clean_text` returned has something to say.
    """
    return _Segmenter(text, max_characters=max_characters, max_ms=max_ms).run(
        preferred_ms=preferred_ms, first_ms=first_ms
    )


class _Segmenter:
    """The places where a text may be cut, how good each is, and how far a segment may reach from each."""

    def __init__(self, text: str, *, max_characters: int, max_ms: int) -> None:
        self._text = text
        self._heard = heard(text)
        self._whole = whole_spans(text)
        # The end of the text is a place too.
        self._cuts = _cuts_of(text)
        self._keep_annotations_whole()
        self._ms = [0, *itertools.accumulate(character_times_ms(text))]
        self._max_characters = max_characters
        self._max_ms = max_ms

    def run(self, *, preferred_ms: int, first_ms: int) -> list[str]:
        bounds = [0]
        while bounds[-1] < len(self._text):
            aim_ms = first_ms if len(bounds) == 1 else preferred_ms
            bounds.append(self._next_bound(bounds[-1], aim_ms=aim_ms, preferred_ms=preferred_ms))
        self._join(bounds, mute=True)
        self._join(bounds, mute=False)
        return [self._text[start:stop] for start, stop in itertools.pairwise(bounds)]

    def _keep_annotations_whole(self) -> None:
        """No cut inside an annotation; and a pause stands at the end of what it follows."""
        for start, end in self._whole:
            self._cuts[start + 1 : end] = [Cut.FORBIDDEN] * (end - start - 1)
        if self._whole:
            for token in tokens(self._text):
                if token.kind is Kind.PAUSE and token.start > 0 and self._cuts[token.end] != Cut.FORBIDDEN:
                    self._cuts[token.end] = max(self._cuts[token.end], self._cuts[token.start])
                    self._cuts[token.start] = Cut.FORBIDDEN

    def _out_of_annotation(self, position: int) -> int:
        """Return the end of the annotation that the position is inside, else the position."""
        index = bisect.bisect_left(self._whole, (position, 0)) - 1
        return max(position, self._whole[index][1]) if index >= 0 else position

    def _next_bound(self, start: int, *, aim_ms: int, preferred_ms: int) -> int:
        """Return where the segment from `start` ends."""
        limit = self._reach(start, self._max_ms)
        aim = min(self._reach(start, aim_ms), limit)
        if aim == len(self._text):
            return aim
        if limit == len(self._text) and not self._last(start, limit - 1, Cut.SENTENCE):
            # One sentence that fits is not cut at a comma only to be nearer to what is preferred.
            return limit
        least = self._reach(start, min(MIN_SEGMENT_MS, aim_ms // 4))
        half = self._reach(start, aim_ms // 2)
        preferred = min(self._reach(start, preferred_ms), limit)
        # The last place before the aim, or the first one after it: as near to the aim as that grade allows.
        return (
            self._last(half, aim, Cut.PARAGRAPH)
            or self._last(least, aim, Cut.SENTENCE)
            or self._first(aim, limit, Cut.SENTENCE)
            or self._last(half, aim, Cut.CLAUSE)
            or self._first(aim, limit, Cut.CLAUSE)
            or self._last(least, aim, Cut.CLAUSE)
            or self._last(least, preferred, Cut.WORD)
            or self._first(preferred, limit, Cut.WORD)
            or self._last(start, limit, Cut.INSIDE_WORD)
            or self._last(start, limit, Cut.BEFORE_SIGN)
            or self._out_of_annotation(limit)
        )

    def _reach(self, start: int, ms: int) -> int:
        """Return the last position that a segment of that length may end at; at least one character on."""
        # Room is left for signs without a word before and after it, which are joined to it later.
        room = max(1, self._max_characters - 2 * MAX_UNSPOKEN_RUN)
        stop = bisect.bisect_right(self._ms, self._ms[start] + ms) - 1
        return max(start + 1, min(stop, start + room, len(self._text)))

    def _last(self, low: int, high: int, grade: Cut) -> int:
        """Return the last place of at least that grade after `low` and up to `high`, else 0."""
        return next((at for at in range(high, low, -1) if self._cuts[at] >= grade), 0)

    def _first(self, low: int, high: int, grade: Cut) -> int:
        """Return the first place of at least that grade after `low` and up to `high`, else 0."""
        return next((at for at in range(low + 1, high + 1) if self._cuts[at] >= grade), 0)

    def _join(self, bounds: list[int], *, mute: bool) -> None:
        """Join segments without a word (`mute`) or too short ones to a neighbour, within the limits."""
        index = 0
        while len(bounds) > 2 and index < len(bounds) - 1:
            start, stop = bounds[index], bounds[index + 1]
            too_short = self._ms[stop] - self._ms[start] < MIN_SEGMENT_MS
            if not (not has_speech(self._heard[start:stop]) if mute else too_short):
                index += 1
            elif index > 0 and self._may_be_one(bounds[index - 1], stop, mute=mute):
                del bounds[index]
                index -= 1
            elif index + 2 < len(bounds) and self._may_be_one(start, bounds[index + 2], mute=mute):
                del bounds[index + 1]
            else:
                index += 1

    def _may_be_one(self, start: int, stop: int, *, mute: bool) -> bool:
        if stop - start > self._max_characters:
            return False
        # What has no word adds pauses to the estimate, but nothing to what is spoken.
        return mute or self._ms[stop] - self._ms[start] <= self._max_ms


def _cuts_of(text: str) -> list[Cut]:
    """How good a cut before each character is, and at the end. Nearly all characters stand between letters and spaces:
    those are told here, as `_cut_before` would tell them."""
    cuts = [Cut.FORBIDDEN] if text else []
    earlier, before = "", text[:1]
    for position in range(1, len(text)):
        after = text[position]
        if "\u4e00" <= before <= "\u9fff" and "\u4e00" <= after <= "\u9fff":
            cuts.append(Cut.WORD)
        elif "a" <= after <= "z" and ("a" <= before <= "z" or (before == " " and "a" <= earlier <= "z")):
            cuts.append(Cut.WORD if before == " " else Cut.INSIDE_WORD)
        elif after == " " and before < "\u0300":
            cuts.append(Cut.BEFORE_SIGN)
        else:
            cuts.append(_cut_before(text, position))
        earlier, before = before, after
    return [*cuts, Cut.PARAGRAPH]


def _cut_before(text: str, position: int) -> Cut:
    """Return how good a cut before that character is."""
    if position == 0:
        return Cut.FORBIDDEN
    before, after = text[position - 1], text[position]
    if before.isascii() and after.isascii() and before.isalnum() and after.isalnum():
        return Cut.INSIDE_WORD
    if splits_character(text, position):
        return Cut.FORBIDDEN
    if after.isspace() or (not before.isspace() and not is_speakable(after) and after not in _OPENING):
        return Cut.BEFORE_SIGN
    end = _last_sign(text, position)
    if before == "\n":
        return Cut.PARAGRAPH
    if _ends_sentence(text, end, spaced=before.isspace(), after=after):
        return Cut.SENTENCE
    if text[end] in _CJK_CLAUSE_ENDS or (
        text[end] in _LATIN_CLAUSE_ENDS and (before.isspace() or _is_wide(after))
    ):
        return Cut.CLAUSE
    if before.isspace():
        return Cut.WORD
    return Cut.WORD if _between_words(before, after) else Cut.INSIDE_WORD


def _last_sign(text: str, position: int) -> int:
    """Return the index of the last character before `position` that is no space, closing quote or bracket."""
    index = position - 1
    earliest = max(0, position - MAX_UNSPOKEN_RUN)
    while index > earliest and (text[index].isspace() or text[index] in _QUOTES_AND_BRACKETS):
        index -= 1
    return index


def _ends_sentence(text: str, end: int, *, spaced: bool, after: str) -> bool:
    """Whether the sign at `end` ends a sentence, with `after` beginning the next."""
    sign = text[end]
    if sign in _CJK_SENTENCE_ENDS:
        return True
    if sign not in _LATIN_SENTENCE_ENDS or not (spaced or _is_wide(after)):
        return False
    if sign != ".":
        return True
    if after.islower():
        return False
    word = _LAST_WORD.search(text[max(0, end - _WORD_REACH) : end])
    return word is None or (len(word.group()) > 1 and word.group().lower() not in _ABBREVIATIONS)


def _is_wide(character: str) -> bool:
    return script_of(character) in UNSPACED_SCRIPTS or character in _OPENING_BRACKETS


def _between_words(before: str, after: str) -> bool:
    """Whether words may be told apart here without a space:

    between Chinese characters, or where the script changes.
    """
    if before in _OPENING or before.isdigit() or after.isdigit():
        return False
    scripts = {script_of(before), script_of(after)}
    return bool(scripts & UNSPACED_SCRIPTS) or after in _OPENING_BRACKETS
