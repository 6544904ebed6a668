"""Cutting a text into the pieces that one device speaks in one go."""

from __future__ import annotations

import re

from tts.text.limits import MAX_SEGMENT_CHARACTERS

SENTENCE = re.compile(r"[^。！？!?.\n]*[。！？!?.\n]+|[^。！？!?.\n]+$")


def segment(text: str, *, max_characters: int = MAX_SEGMENT_CHARACTERS) -> list[str]:
    parts: list[str] = []
    for sentence in SENTENCE.findall(text):
        while len(sentence) > max_characters:
            parts.append(sentence[:max_characters])
            sentence = sentence[max_characters:]
        if parts and len(parts[-1]) + len(sentence) <= max_characters:
            parts[-1] += sentence
        else:
            parts.append(sentence)
    return [part for part in parts if part.strip()]
