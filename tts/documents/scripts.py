"""How lines of a script name who speaks: `旁白：…`, `Alice: …`. What is made of them: `tts.documents.passages`.

A line that begins with a name and a colon begins a turn. A name has at most 30 characters and no sentence mark, and is
no web address and no time of day, so that `https://…` and `12:30` are text. Names that differ only in case or in the
width of their letters are one speaker, spelled as it came first. A name may be emphasised or begin an item of a list,
as in `**Alice**: …`, `**Alice:** …` and `- Alice: …`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

NARRATOR = ""
# Names that scripts give to whoever tells the story, as `name_key` spells them: without a voice of its own, such a
# speaker is the narrator.
NARRATOR_NAMES = frozenset({"旁白", "叙述", "叙述者", "解说", "narrator", "narration"})
MAX_NAME_CHARACTERS = 30
MAX_NAME_WORDS = 4
_TURN = re.compile(
    r"\s*(?:[-*+>][ \t]+)?(?P<marks>\*{1,3}|_{1,3})?(?P<name>[^:：\n]{1,60})(?P<colon>[:：])(?!//)"
    r"(?:(?P=marks))?\s*(?P<rest>.*)"
)
_IN_BRACKETS = re.compile(r"[（(][^（()）]*[)）]\s*$")
# Marks that end or divide sentences: what holds one is a sentence with a colon in it.
_NO_NAME = re.compile(r"[.。!！?？,，;；、…\"“”《》<>\[\]{}#*|`\\]")
_ADDRESS = re.compile(r"^(https?|ftp|mailto|file)$", re.IGNORECASE)


@dataclass(frozen=True)
class TurnStart:
    """How a line begins a turn: who speaks, which colon was written, and where in the line the words begin."""

    speaker: str
    colon: str
    words_at: int


def turn_start(line: str) -> TurnStart | None:
    """How the line begins a turn; None where it does not."""
    match = _TURN.fullmatch(line)
    if match is None:
        return None
    name = match["name"].strip()
    if match["marks"]:
        name = name.removesuffix(match["marks"])
    # "Alice (whispering):" is Alice.
    name = " ".join(_IN_BRACKETS.sub("", name).split())
    if not name or len(name) > MAX_NAME_CHARACTERS or len(name.split()) > MAX_NAME_WORDS:
        return None
    if _NO_NAME.search(name) or _ADDRESS.match(name) or not any(sign.isalpha() for sign in name):
        return None
    return TurnStart(name, match["colon"], match.start("rest"))


def name_key(name: str) -> str:
    """By what a name is told from others."""
    return unicodedata.normalize("NFKC", name).casefold()
