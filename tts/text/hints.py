"""What looks as if it was meant as an annotation and is none: told beside the price, not refused, read as it stands.

    [hao] [haoo]    pinyin without its tone, right or nearly, where it touches a Chinese character

`annotations` refuses what can hardly be meant otherwise; this can: [link] beside Chinese is a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tts.text.annotation_inventory import SYLLABLES, with_tone
from tts.text.annotations import Kind, tokens
from tts.text.spelling import nearest

_TONELESS: Final = re.compile(r"(?<!\\)\[([a-zü]{1,7})\]")
_MOST: Final = 5


@dataclass(frozen=True)
class Hint:
    """What is written, and what would be obeyed."""

    written: str
    meant: str


def hints_of(text: str) -> list[Hint]:
    """Each once, in their order, at most five. `meant` has the third tone; which it is, is for the writer to say."""
    found: dict[str, Hint] = {}
    for token in tokens(text):
        if token.kind is not Kind.TEXT:
            continue
        for match in _TONELESS.finditer(token.value):
            letters = match[1].replace("ü", "v")
            at = token.start + match.start()
            if not _touches_chinese(text, at, at + len(match[0])):
                continue
            meant = letters if letters in SYLLABLES else nearest(letters, SYLLABLES, farthest=1)
            if meant and len(found) < _MOST:
                found[match[0]] = Hint(match[0], f"[{with_tone(meant, 3)}]")
    return list(found.values())


def _touches_chinese(text: str, start: int, end: int) -> bool:
    return any("\u3400" <= text[at] <= "\u9fff" for at in (start - 1, end) if 0 <= at < len(text))
