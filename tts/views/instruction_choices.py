"""The studio's list of instructions: every word of it is ready, the template only places them."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from tts.selectors.devices import free_instructions_are_taken, instructions_are_taken
from tts.text.instructions import INSTRUCTIONS, KINDS, Instruction

KIND_NAMES: dict[str, str | Promise] = {
    "dialect": _("Dialect"),
    "emotion": _("Emotion"),
    "speed": _("Speed"),
    "volume": _("Volume"),
    "role": _("Role"),
}


@dataclass(frozen=True)
class InstructionChoice:
    """`name` in the reader's language, `other_name` in the other one. `words` is what the search looks through."""

    key: str
    name: str
    other_name: str
    words: str


@dataclass(frozen=True)
class InstructionGroup:
    name: str | Promise
    choices: list[InstructionChoice]


@dataclass(frozen=True)
class InstructionOffer:
    """What the pool's devices obey now: instructions of the list, and any in own words."""

    groups: list[InstructionGroup]
    is_taken: bool
    is_free_taken: bool


def instruction_offer() -> InstructionOffer:
    return InstructionOffer(
        groups=[
            InstructionGroup(
                KIND_NAMES[kind],
                [_choice(one, KIND_NAMES[kind]) for one in INSTRUCTIONS.values() if one.kind == kind],
            )
            for kind in KINDS
        ],
        is_taken=instructions_are_taken(),
        is_free_taken=free_instructions_are_taken(),
    )


def instruction_name(key: str) -> str:
    """An instruction's name in the reader's language; the key itself for one that there is no more."""
    known = INSTRUCTIONS.get(key)
    return _names(known)[0] if known else key


def _names(instruction: Instruction) -> tuple[str, str]:
    names = (instruction.english_name, instruction.chinese_name)
    return names[::-1] if (get_language() or "").startswith("zh") else names


def _choice(instruction: Instruction, kind_name: str | Promise) -> InstructionChoice:
    name, other = _names(instruction)
    words = f"{name} {other} {kind_name} {instruction.kind}"
    return InstructionChoice(key=instruction.key, name=name, other_name=other, words=words)
