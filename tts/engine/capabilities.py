"""What an engine can do, in words that every part of the pool reads: told once when it has loaded, kept on the device's
row, never asked of the engine's own code again. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tts.engine.errors import EngineError

POOL_SAMPLE_RATE_HZ = 24_000
"""What listeners and files are given; an engine whose model has another rate converts."""

PRESET, CLONE, INSTRUCT = "preset", "clone", "instruct"
MODES = (PRESET, CLONE, INSTRUCT)
FREE_INSTRUCTIONS = "free_instructions"
INSTRUCTIONS = ("none", "catalogue", "free")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
MAX_LANGUAGES = 700  # the largest open engines read about 600


@dataclass(frozen=True)
class Capabilities:
    """`languages` by ISO 639 code, at least one.

    `modes`: "preset" (the platform's voices), "clone" (a reference clip), "instruct" (a sentence that says how to
    read). `instructions`: "none", "catalogue" (those of a fixed list) or "free". `real_clone`: whether a clone is the
    speaker, or only moved towards him. `gpu_ms_per_audio_s`: what one second of speech takes, in milliseconds of the
    device, where the engine can tell. `obeys_speed`: whether it speaks at the speed that it is asked for; where not,
    its process changes the speed afterwards. `trims_edges`: whether what it sends begins and ends with speech (or with
    a rest that the text asks for); where not, its process takes the silence off. See `tts.engine.delivery`.
    """

    languages: tuple[str, ...]
    modes: tuple[str, ...] = (PRESET,)
    instructions: str = "none"
    real_clone: bool = False
    sample_rate_hz: int = POOL_SAMPLE_RATE_HZ
    gpu_ms_per_audio_s: int | None = None
    obeys_speed: bool = True
    trims_edges: bool = False

    def __post_init__(self) -> None:
        """
        Raises:
            EngineError: something in it cannot be true; says what.
        """
        unknown = sorted(set(self.modes) - set(MODES))
        if unknown or not self.modes:
            raise _wrong(f"the modes {unknown or 'are missing'}; there are {', '.join(MODES)}")
        if self.instructions not in INSTRUCTIONS:
            raise _wrong(f"instructions is one of {', '.join(INSTRUCTIONS)}")
        if (INSTRUCT in self.modes) != (self.instructions != "none"):
            raise _wrong('the mode "instruct" and instructions contradict each other')
        if not 0 < len(self.languages) <= MAX_LANGUAGES or not all(map(_LANGUAGE.fullmatch, self.languages)):
            raise _wrong('languages are ISO 639 codes such as "zh" or "en"')
        if self.sample_rate_hz != POOL_SAMPLE_RATE_HZ:
            raise _wrong(f"audio leaves an engine with {POOL_SAMPLE_RATE_HZ} samples a second: convert it")
        if self.gpu_ms_per_audio_s is not None and not 0 < self.gpu_ms_per_audio_s < 1_000_000:
            raise _wrong("gpu_ms_per_audio_s is a number of milliseconds above 0")

    def as_json(self) -> dict[str, Any]:
        """The capabilities as they travel and are stored."""
        return {**asdict(self), "languages": list(self.languages), "modes": list(self.modes)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Capabilities:
        """The capabilities of a frame or a device's row. Fields that this version does not know are left out.

        Raises:
            EngineError: they cannot be true.
        """
        known: dict[str, Any] = {key: stored[key] for key in cls.__dataclass_fields__ if key in stored}
        try:
            for listed in ("languages", "modes"):
                if listed in known:
                    known[listed] = tuple(str(one) for one in known[listed])
            return cls(**known)
        except TypeError as error:
            raise _wrong("they are not of the right types") from error

    def offers(self) -> list[str]:
        """What a segment may need that this engine has: its modes, `free_instructions`, and `language:xx`. See
        `needs_of`."""
        free = [FREE_INSTRUCTIONS] if self.instructions == "free" else []
        return sorted([*self.modes, *free, *(f"language:{language}" for language in self.languages)])


def needs_of(*, voice_kind: str, languages: tuple[str, ...] = (), instruct: bool = False) -> list[str]:
    """What a device must offer to speak a text: the counterpart of `Capabilities.offers`."""
    needs = {CLONE if voice_kind == CLONE else PRESET, *(f"language:{language}" for language in languages)}
    return sorted(needs | {INSTRUCT} if instruct else needs)


def _wrong(what: str) -> EngineError:
    return EngineError("capabilities_wrong", f"The engine says something of itself that cannot be: {what}.")
