"""What is spoken for a segment, shown beside its price and given to the engine: one function for both."""

from __future__ import annotations

from tts.text.normalisation import normalise


def spoken_text(segment: str, *, language: str, voice_language: str) -> str:
    """Return the segment as it is spoken; its spaces at both ends are kept, its annotations too. Never raises.

    `language` is the one asked for, "" for none; a segment of digits alone is then read in the voice's.
    """
    return normalise(segment, language=language, fallback=voice_language or "en").text
