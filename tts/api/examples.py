"""Examples and lists of refusals for the OpenAPI file."""

from __future__ import annotations

from typing import Final

from drf_spectacular.utils import OpenApiExample

from portal.lib.errors import DomainError
from tts.text import errors as text_errors

# Every refusal of a text, whatever tts.text comes to refuse.
TEXT_REFUSALS: Final[list[type[DomainError]]] = [
    kind
    for kind in vars(text_errors).values()
    if isinstance(kind, type)
    and issubclass(kind, DomainError)
    and "code" in vars(kind)
    and kind is not DomainError
]

JOB_EXAMPLES: Final = [
    OpenApiExample(
        "one sentence",
        value={"voice_id": "7d2c1f0e-58d1-4c6e-9a52-0f0f5b7f4a11", "text": "你好，很高兴认识你。"},
        request_only=True,
    ),
    OpenApiExample(
        "all options",
        value={
            "voice_id": "7d2c1f0e-58d1-4c6e-9a52-0f0f5b7f4a11",
            "text": "The same seed sounds the same again.",
            "language": "en",
            "job_class": "batch",
            "mode": "plain",
            "speed": 1.1,
            "seed": 7,
            "response_format": "mp3",
            "sample_rate_hz": 44100,
            "loudness_lufs": -16.0,
        },
        request_only=True,
    ),
    OpenApiExample(
        "a script",
        value={
            "voice_id": "7d2c1f0e-58d1-4c6e-9a52-0f0f5b7f4a11",
            "text": "# The box\n\nNarrator: It was dark.\nAlice: Who is there?\nBob: Me.",
            "mode": "script",
            "cast": {
                "Alice": "0b0c7c5e-1c1f-4f0e-8d8e-3f1a2b4c5d6e",
                "Bob": "5d1f2a3b-9c8d-4e7f-a6b5-1c2d3e4f5a6b",
            },
            "job_class": "standard",
        },
        request_only=True,
    ),
]
