"""Which of the known words was meant? Loaded by engines: clean for Python 3.10."""

from __future__ import annotations

import functools
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], *, farthest: int) -> str:
    """Return the known word with the fewest slips of the keyboard to `word`, at most `farthest`; else "".

    Of several the one with the same letters (two were swapped), then the one that keeps the first letter.
    """
    if not word:
        return ""
    near = [
        (distance, sorted(other) != sorted(word), other[:1] != word[:1], other)
        for other in known
        if abs(len(other) - len(word)) <= farthest and (distance := slips(word, other)) <= farthest
    ]
    return min(near)[3] if near else ""


@functools.lru_cache(maxsize=4096)
def slips(one: str, other: str) -> int:
    """Return how many letters are wrong, missing, too many, or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, letter_there in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != letter_there))
            if i > 1 and j > 1 and (letter, one[i - 2]) == (other[j - 2], letter_there):
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
