"""A script of several speakers as turns: `旁白：…`, `Alice: …`.

A line that begins with a name and a colon begins a turn; every line after it belongs to that turn, up to the next one.
What comes before the first turn is the narrator's. A name has at most 30 characters and no sentence mark, and is no web
address and no time of day, so that `https://…` and `12:30` are text. Names that differ only in case or in the width of
their letters are one speaker, spelled as it came first. A name may be emphasised or begin an item of a list, as in
`**Alice**: …`, `**Alice:** …` and `- Alice: …`.
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
class Turn:
    """What one speaker says in one go. `speaker` "" is the narrator; `line` counts from 1."""

    speaker: str
    text: str
    line: int


def parse_script(text: str) -> list[Turn]:
    """The turns of a script in order. Turns without words are left out; a text without any name is the narrator's."""
    speaker, line, words = NARRATOR, 1, list[str]()
    turns: list[Turn] = []
    spelled: dict[str, str] = {}
    for number, content in enumerate(text.splitlines(), start=1):
        found = turn_start(content)
        if found is None:
            words.append(content.strip())
            continue
        turns += _closed(speaker, words, line)
        speaker = spelled.setdefault(name_key(found.speaker), found.speaker)
        line, words = number, [content[found.words_at :].strip()]
    return turns + _closed(speaker, words, line)


@dataclass(frozen=True)
class TurnStart:
    """How a line begins a turn: who speaks, which colon was written, and where in the line the words begin."""

    speaker: str
    colon: str
    words_at: int


def speakers_of(turns: list[Turn]) -> list[str]:
    """The speakers as they appear, the narrator ("") among them where he says something."""
    return list(dict.fromkeys(turn.speaker for turn in turns))


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


def _closed(speaker: str, words: list[str], line: int) -> list[Turn]:
    said = "\n".join(words).strip()
    return [Turn(speaker, said, line)] if said else []


def name_key(name: str) -> str:
    """By what a name is told from others."""
    return unicodedata.normalize("NFKC", name).casefold()
