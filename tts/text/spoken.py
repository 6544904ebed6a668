"""What is spoken for a segment, shown beside its price and given to the engine: one function for both."""

from __future__ import annotations

from tts.text.normalisation import normalise
from tts.text.pronunciation import NOTHING, Dictionary


def spoken_text(
    segment: str, *, language: str, voice_language: str, pronunciations: Dictionary = NOTHING
) -> str:
    """Return the segment as it is spoken; its spaces at both ends are kept, its annotations too. Never raises.

    `language` is the one asked for, "" for none; a segment of digits alone is then read in the voice's.
    `pronunciations` are the workspace's own, which go before everything else.
    """
    pronounced = pronunciations.apply(segment).text
    return normalise(pronounced, language=language, fallback=voice_language or "en").text
