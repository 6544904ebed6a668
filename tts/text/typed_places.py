"""The way back from Chinese characters of a cleaned or spoken text to where they were typed. Pure.

Cleaning leaves out and puts in its own signs, never the order of Chinese characters; so they are followed by their own
sequence, and none is followed where the sequences differ (a `<sub alias="…">`, numbers in words, a dictionary's word).
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from typing import Final

from tts.text.markup import without_markup
from tts.text.ssml import SsmlFault

_HAN: Final = re.compile(r"[〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def typed_places(raw: str, clean: str) -> dict[int, int]:
    """Return, for Chinese characters of what `clean_text` made of `raw`, by their index there, their index in `raw`.

    Those that were not typed as they stand are left out.
    """
    try:
        marked = without_markup(raw)
    except SsmlFault:
        return {}
    found: dict[int, int] = {}
    for at, source in _same(_han(marked.text), _han(clean)):
        start, end = marked.source_span(source, source + 1)
        if end == start + 1 and unicodedata.normalize("NFC", raw[start]) == clean[at]:
            found[at] = start
    return found


def spoken_places(text: str, spoken: str) -> dict[int, int]:
    """The same from what is spoken for a segment to the segment: by an index in `spoken` that in `text`."""
    ours, theirs = _han(text), _han(spoken)
    matcher = difflib.SequenceMatcher(None, _signs(ours), _signs(theirs), autojunk=False)
    return {
        theirs[block.b + offset][0]: ours[block.a + offset][0]
        for block in matcher.get_matching_blocks()
        for offset in range(block.size)
    }


def _han(text: str) -> list[tuple[int, str]]:
    return [(match.start(), unicodedata.normalize("NFC", match[0])) for match in _HAN.finditer(text)]


def _signs(characters: list[tuple[int, str]]) -> str:
    return "".join(sign for _, sign in characters)


def _same(before: list[tuple[int, str]], after: list[tuple[int, str]]) -> list[tuple[int, int]]:
    """Pairs of places, after and before, from both ends as far as the characters are the same."""
    shorter = min(len(before), len(after))
    first = next((n for n in range(shorter) if before[n][1] != after[n][1]), shorter)
    if first == len(before) == len(after):
        last = 0
    else:
        rest = shorter - first
        last = next((n for n in range(rest) if before[-1 - n][1] != after[-1 - n][1]), rest)
    pairs = [(after[n][0], before[n][0]) for n in range(first)]
    return [*pairs, *((after[n][0], before[n][0]) for n in range(-last, 0))]
