"""How long a speaker rests between two segments: by how the first one ends, and by what begins with the second one."""

from __future__ import annotations

from enum import Enum
from typing import Final

from tts.text.annotations import Kind, tokens

PARAGRAPH_PAUSE_MS: Final = 500
# The same as inside a segment (tts.engine.calls), so that a cut cannot be heard.
SENTENCE_PAUSE_MS: Final = 320
CLAUSE_PAUSE_MS: Final = 130


class Joint(Enum):
    """What a segment is followed by."""

    SAME = "same"
    SPEAKER = "speaker"
    TITLE_ENDS = "title_ends"
    CHAPTER = "chapter"


# As audio books do it: a breath more than after a sentence for another speaker, a look at the title, a page turned.
_LEAST_MS: Final = {Joint.SAME: 0, Joint.SPEAKER: 450, Joint.TITLE_ENDS: 900, Joint.CHAPTER: 1500}

_SENTENCE_ENDS: Final = frozenset("。！？｡.!?…")
_CLAUSE_ENDS: Final = frozenset("，、；：,;:—")
_CLOSING: Final = "\"'”’」』）)]】》〉 \t"


def pause_after_ms(segment: str, *, speed: float = 1.0, joint: Joint = Joint.SAME) -> int:
    """The silence after a segment, in milliseconds; 0 where it was cut inside a clause.

    Also 0 where the text itself says how long it is: the engine keeps such a silence.
    """
    ending = segment.rstrip(_CLOSING)
    if segment.rstrip().endswith((">", "]")):
        found = tokens(segment.rstrip())
        if found[-1].kind is Kind.PAUSE:
            return 0
        while found and found[-1].kind is not Kind.TEXT:
            found.pop()
        ending = segment[: found[-1].end].rstrip(_CLOSING) if found else ""
    if ending.endswith("\n"):
        pause_ms = PARAGRAPH_PAUSE_MS
    elif ending[-1:] in _SENTENCE_ENDS and ending:
        pause_ms = SENTENCE_PAUSE_MS
    elif ending[-1:] in _CLAUSE_ENDS and ending:
        pause_ms = CLAUSE_PAUSE_MS
    else:
        pause_ms = 0
    return round(max(pause_ms, _LEAST_MS[joint]) / speed)
