"""How a text is to be read: whether what was asked for can be had from the pool."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tts.engine.capabilities import FREE_INSTRUCTIONS
from tts.engine.capabilities import INSTRUCT as NEEDS_INSTRUCT
from tts.errors import (
    FreeInstructionNotSupported,
    InstructionMissing,
    InstructionsConflict,
    InstructionTooLong,
    ModeNotSupported,
)
from tts.selectors.devices import free_instructions_are_taken, instructions_are_taken
from tts.text.instructions import MAX_FREE_CHARACTERS

PLAIN: Final = "plain"
INSTRUCT: Final = "instruct"


def check_wording(*, mode: str, instruction: str, instruction_text: str) -> None:
    """Whether a request says how to read in one way. Asks nobody.

    Raises:
        InstructionMissing, InstructionsConflict, InstructionTooLong.
    """
    if instruction and instruction_text:
        raise InstructionsConflict
    if len(instruction_text) > MAX_FREE_CHARACTERS:
        raise InstructionTooLong(limit=MAX_FREE_CHARACTERS)
    if mode == INSTRUCT and not instruction and not instruction_text:
        raise InstructionMissing


def check_is_taken(*, mode: str, instruction: str, instruction_text: str, needs: Collection[str]) -> None:
    """Whether a device that takes work obeys it, with all that the text and its voice need beside. In the mode instruct
    without an instruction yet: whether any could be obeyed.

    Raises:
        ModeNotSupported, FreeInstructionNotSupported.
    """
    is_open = mode == INSTRUCT and not instruction and not instruction_text
    # What obeys own words obeys those of the list as well.
    if is_open and not instructions_are_taken(needs=needs):
        raise ModeNotSupported
    if instruction_text and not free_instructions_are_taken(needs=needs):
        raise FreeInstructionNotSupported
    if instruction and not instructions_are_taken(needs=needs):
        raise ModeNotSupported


def instruction_needs(*, instruction: str, instruction_text: str) -> set[str]:
    """What a device must offer for it, beside what the text and the voice need."""
    if instruction_text:
        return {NEEDS_INSTRUCT, FREE_INSTRUCTIONS}
    return {NEEDS_INSTRUCT} if instruction else set()
