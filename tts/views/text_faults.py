"""What is wrong in a text, shown where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portal.lib.errors import DomainError
from tts.text.errors import MISSING

# Enough on both sides to find the place again.
_AROUND = 12


@dataclass(frozen=True)
class TextFault:
    """The characters at fault with what stands around them, why, and what was probably meant ("": nothing is near,
    or the message says it)."""

    before: str
    fault: str
    after: str
    message: str
    suggestion: str


def text_faults(error: DomainError, text: str) -> list[TextFault]:
    """Return the faults that a refusal of that text tells the places of; [] where it tells none."""
    return [text_fault(mistake, text) for mistake in error.details().get("mistakes", [])]


def text_fault(mistake: Mapping[str, Any], text: str) -> TextFault:
    """One of a refusal's `mistakes` in the text that it is about."""
    return TextFault(
        before=text[max(0, mistake["start"] - _AROUND) : mistake["start"]],
        fault=text[mistake["start"] : mistake["end"]],
        after=text[mistake["end"] : mistake["end"] + _AROUND],
        message=mistake["message"],
        suggestion="" if mistake["problem"] in MISSING else mistake["suggestion"],
    )
