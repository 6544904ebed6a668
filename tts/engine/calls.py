"""A string of phonemes as calls to the model: none too long, broken where a speaker would break."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The model takes 510 phonemes. Calls stay far below: the customer hears the first one sooner, a cancel is obeyed
# between two of them, and memory grows with their length. About 12 s of speech.
LONGEST_CALL = 200
# Below that the model mumbles; such a piece is spoken with its neighbour.
SHORTEST_CALL = 12
# Where the first sentence has to be cut anyway, its first call is kept short: the first sound comes sooner.
LONGEST_FIRST_CALL = 90
# A call of this length ends with its sentence.
GOOD_CALL = 100

SENTENCE_PAUSE_MS = 320
CLAUSE_PAUSE_MS = 130
WORD_PAUSE_MS = 0

_PIECE = re.compile(r"[^;:,.!?—…]*[;:,.!?—…]+[”)]*\s*|[^;:,.!?—…]+")
_TONES = "→↗↘↓"
_JOINED_TO_THE_LAST = "ːʰʲ\u0303" + _TONES


@dataclass(frozen=True)
class Call:
    """What the model speaks in one go, and the silence after it at normal speed."""

    phonemes: str
    pause_ms: int


def plan_calls(phonemes: str) -> list[Call]:
    """The calls whose phonemes, put together, are the ones given (but for spaces at the joints)."""
    pieces: list[str] = []
    for piece in _PIECE.findall(phonemes):
        pieces += _cut(piece, is_first=not pieces)
    texts: list[str] = []
    current = ""
    for piece in pieces:
        if current and (len(current) + len(piece) > LONGEST_CALL or _is_enough(current, is_first=not texts)):
            texts.append(current)
            current = ""
        current += piece
    if current:
        texts.append(current)
    texts = _without_crumbs(texts)
    return [
        Call(text.strip(), _pause_ms(text) if index + 1 < len(texts) else 0)
        for index, text in enumerate(texts)
    ]


def _is_enough(text: str, *, is_first: bool) -> bool:
    """Whether a call may end here although more would fit."""
    if is_first:
        return len(text.strip()) >= SHORTEST_CALL
    return len(text) >= GOOD_CALL and _pause_ms(text) == SENTENCE_PAUSE_MS


def _cut(piece: str, *, is_first: bool) -> list[str]:
    """A piece without marks inside, cut at words, and within words where there is no other way."""
    parts: list[str] = []
    while len(piece) > LONGEST_CALL:
        longest = LONGEST_FIRST_CALL if is_first and not parts else LONGEST_CALL
        at = piece.rfind(" ", SHORTEST_CALL, longest) + 1
        if at == 0:
            at = longest
            while at > SHORTEST_CALL and piece[at] in _JOINED_TO_THE_LAST:
                at -= 1
        parts.append(piece[:at])
        piece = piece[at:]
    return [*parts, piece]


def _without_crumbs(texts: list[str]) -> list[str]:
    """Pieces too short to be spoken alone go to the one before, or the first to the one after."""
    merged: list[str] = []
    for text in texts:
        if merged and (len(text.strip()) < SHORTEST_CALL or len(merged[-1].strip()) < SHORTEST_CALL):
            merged[-1] += text
        else:
            merged.append(text)
    return merged


def _pause_ms(text: str) -> int:
    last = text.rstrip().rstrip("”)")[-1:]
    if last in ".!?…":
        return SENTENCE_PAUSE_MS
    return CLAUSE_PAUSE_MS if last and last in ";:,—" else WORD_PAUSE_MS
