"""Engine name to class. The class is imported when it is asked for, so that no engine pays for another's
libraries."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType

from tts.engine.base import Engine

_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "cosyvoice": "tts.engine.cosyvoice:CosyVoiceEngine",
        "kokoro": "tts.engine.kokoro:KokoroEngine",
        "simulated": "tts.engine.simulated:SimulatedEngine",
        "simulated-b": "tts.engine.simulated:OtherSimulatedEngine",
    }
)


def engine_class(name: str) -> type[Engine]:
    """The class of the engine of that name. Imports its libraries, which can take seconds.

    Raises:
        LookupError: there is no engine of that name.
    """
    if name not in _CLASSES:
        raise LookupError(f"There is no engine {name!r}; there are {', '.join(sorted(_CLASSES))}.")
    module, _, attribute = _CLASSES[name].partition(":")
    found: type[Engine] = getattr(importlib.import_module(module), attribute)
    return found
