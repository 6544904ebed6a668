"""From what was typed to what is spoken."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from tts.text.errors import TextControlCharacter, TextEmpty, TextLoneSurrogate, TextTooLong, TextUnspeakable
from tts.text.limits import MAX_JOB_CHARACTERS

MODEL_MARKER = re.compile(r"<\|[^|>]*\|>")


@dataclass(frozen=True)
class CleanText:
    text: str
    characters: int


def clean_text(raw: str, *, supported_languages: Sequence[str] = (), language: str = "") -> CleanText:
    for position, character in enumerate(raw):
        category = unicodedata.category(character)
        if category == "Cs":
            raise TextLoneSurrogate(position=position)
        if category == "Cc" and character not in "\n\r\t":
            raise TextControlCharacter(position=position)
    text = MODEL_MARKER.sub("", unicodedata.normalize("NFC", raw)).replace("\r\n", "\n").replace("\r", "\n").strip()
    if not text:
        raise TextEmpty
    if len(text) > MAX_JOB_CHARACTERS:
        raise TextTooLong(characters=len(text), limit=MAX_JOB_CHARACTERS)
    if not any(unicodedata.category(character)[0] in "LN" for character in text):
        raise TextUnspeakable
    return CleanText(text=text, characters=len(text))
