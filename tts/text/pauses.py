"""How long a speaker rests between two segments: by how the first one ends."""

from __future__ import annotations

from typing import Final

PARAGRAPH_PAUSE_MS: Final = 500
# The same as inside a segment (tts.engine.calls), so that a cut cannot be heard.
SENTENCE_PAUSE_MS: Final = 320
CLAUSE_PAUSE_MS: Final = 130

_SENTENCE_ENDS: Final = frozenset("。！？｡.!?…")
_CLAUSE_ENDS: Final = frozenset("，、；：,;:—")
_CLOSING: Final = "\"'”’」』）)]】》〉 \t"


def pause_after_ms(segment: str, *, speed: float = 1.0) -> int:
    """The silence after a segment, in milliseconds; 0 where it was cut inside a clause."""
    ending = segment.rstrip(_CLOSING)
    if ending.endswith("\n"):
        pause_ms = PARAGRAPH_PAUSE_MS
    elif ending[-1:] in _SENTENCE_ENDS and ending:
        pause_ms = SENTENCE_PAUSE_MS
    elif ending[-1:] in _CLAUSE_ENDS and ending:
        pause_ms = CLAUSE_PAUSE_MS
    else:
        pause_ms = 0
    return round(pause_ms / speed)
