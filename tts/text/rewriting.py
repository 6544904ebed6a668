"""Rules that rewrite a text: each claims stretches that no later one touches; what is left over can be asked for."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tts.text.alignment import Edit

Spoken = Callable[["re.Match[str]"], "str | None"]


@dataclass(frozen=True)
class Rule:
    """What a pattern becomes; None: it is not meant here, and later rules may have it."""

    pattern: re.Pattern[str]
    spoken: Spoken
    needs: frozenset[str]


def rule(pattern: str, spoken: Spoken, *, needs: str = "", ignore_case: bool = False) -> Rule:
    """Return the rule for a pattern. A text with none of the characters that it `needs` is not searched."""
    return Rule(re.compile(pattern, re.IGNORECASE if ignore_case else 0), spoken, frozenset(needs))


class Claims:
    """The stretches of a text that were rewritten so far, in order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] = []
        self._edits: list[Edit] = []

    @property
    def edits(self) -> Sequence[Edit]:
        return self._edits

    def is_free(self, start: int, end: int) -> bool:
        """Whether nothing of that stretch is claimed."""
        at = bisect.bisect_left(self._starts, end) - 1
        return at < 0 or self._edits[at].end <= start

    def claim(self, start: int, end: int, replacement: str) -> None:
        """Rewrite a free stretch. Words are set apart from letters and digits beside them."""
        self.claim_exactly(Edit(start, end, self._spaced(start, end, replacement.strip()) or replacement))

    def claim_exactly(self, edit: Edit) -> None:
        """Rewrite a free stretch, letter by letter as it is said."""
        at = bisect.bisect_left(self._starts, edit.start)
        self._starts.insert(at, edit.start)
        self._edits.insert(at, edit)

    def _spaced(self, start: int, end: int, words: str) -> str:
        if not words:
            return ""
        left = " " if start > 0 and _in_word(self._text[start - 1]) and _in_word(words[0]) else ""
        right = ""
        if end < len(self._text) and _in_word(self._text[end]) and _in_word(words[-1]):
            # A number after a number is set apart by the later one.
            after_number = self._text[end - 1].isalnum() and not self._text[end].isalpha()
            right = "" if after_number else " "
        return f"{left}{words}{right}"

    def gaps(self) -> Iterator[tuple[int, int]]:
        """The stretches that nobody has claimed."""
        at = 0
        for edit in list(self._edits):
            if edit.start > at:
                yield at, edit.start
            at = edit.end
        if at < len(self._text):
            yield at, len(self._text)


def _in_word(character: str) -> bool:
    """Whether a space tells words apart beside it: no Chinese and no kana."""
    return character.isalnum() and not "\u2e80" <= character <= "\u9fff"


def apply_rules(text: str, start: int, end: int, rules: Sequence[Rule], claims: Claims) -> None:
    """Apply the rules, first ones first, to what is free of characters `start` to `end`.

    Patterns see the whole text around it, but match inside only.
    """
    present = set(text[start:end])
    for one in rules:
        if one.needs and one.needs.isdisjoint(present):
            continue
        for match in one.pattern.finditer(text, start, end):
            if match.end() > match.start() and claims.is_free(match.start(), match.end()):
                spoken = one.spoken(match)
                if spoken is not None:
                    claims.claim(match.start(), match.end(), spoken)
