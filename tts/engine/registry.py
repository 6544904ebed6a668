"""Which engines there are: those that come with the portal, and those that installed packages add by an entry point
of the group `voicepool.engines` (name: the engine's; value: `module:Class`).

Listing reads the packages' metadata alone. A class is imported when it is asked for, in the engine process, so that no
engine pays for another's libraries and a broken one breaks only itself.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tts.engine.base import Engine
from tts.engine.errors import EngineError

ENTRY_POINT_GROUP = "voicepool.engines"
REMOTE_ENGINE = "remote"
_BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "cosyvoice": "tts.engine.cosyvoice:CosyVoiceEngine",
        "kokoro": "tts.engine.kokoro:KokoroEngine",
        "remote": "tts.engine.remote:RemoteEngine",
        "simulated": "tts.engine.simulated:SimulatedEngine",
        "simulated-b": "tts.engine.simulated:OtherSimulatedEngine",
    }
)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,29}")


@dataclass(frozen=True)
class RegisteredEngine:
    """An engine of that name as this interpreter finds it. `package` is "" for those that come with the portal.

    `problem` says why it cannot be used, as far as that shows without importing it; "" where nothing does.
    """

    name: str
    target: str
    package: str = ""
    package_version: str = ""
    problem: str = ""


def registered_engines() -> dict[str, RegisteredEngine]:
    """Every engine by name. Imports none of them.

    A package cannot take the place of an engine that comes with the portal: its entry is listed as
    `<name>@<package>`, with the problem. Of two packages with one name, neither is used.
    """
    found = {name: RegisteredEngine(name, target) for name, target in _BUILT_IN.items()}
    for one in _added():
        if one.name in _BUILT_IN:
            aside = f"{one.name}@{one.package}"
            problem = (
                f"The package {one.package} gives its engine the name {one.name}, which the portal's own has."
            )
            found[aside] = RegisteredEngine(aside, one.target, one.package, one.package_version, problem)
        elif one.name in found and (found[one.name].package, found[one.name].target) != (
            one.package,
            one.target,
        ):
            both = " and ".join(sorted({found[one.name].package, one.package}))
            found[one.name] = RegisteredEngine(
                one.name, one.target, both, problem=f"More than one package has an engine {one.name}: {both}."
            )
        else:
            found[one.name] = one
    return found


def engines_for(*, remote: bool) -> list[RegisteredEngine]:
    """The engines that can be brought up on a device: those that packages add, and of the portal's own `remote` on a
    remote device, all others on any other."""
    return [
        one for one in registered_engines().values() if one.package or (one.name == REMOTE_ENGINE) == remote
    ]


def engine_class(name: str) -> type[Engine]:
    """The class of the engine of that name. Imports its libraries, which can take seconds.

    Raises:
        EngineError: there is no engine of that name, or its package is broken; says which, and how.
    """
    if name in _BUILT_IN:
        # Not even a package whose metadata are broken stands in the way of these.
        return _imported(RegisteredEngine(name, _BUILT_IN[name]))
    engines = registered_engines()
    if name not in engines:
        usable = sorted(key for key, one in engines.items() if not one.problem)
        raise EngineError("engine_unknown", f"There is no engine {name!r}; there are {', '.join(usable)}.")
    if engines[name].problem:
        raise EngineError("engine_broken", engines[name].problem)
    return _imported(engines[name])


def _added() -> list[RegisteredEngine]:
    """What packages add, in the order of their names."""
    added: list[RegisteredEngine] = []
    for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        package = (entry.dist.name if entry.dist is not None else "") or "unknown"
        version = entry.dist.version if entry.dist is not None else ""
        problem = ""
        if not _NAME.fullmatch(entry.name):
            problem = (
                f"The package {package} names its engine {entry.name!r}: names are at most 30 small letters, digits, "
                "dots, dashes and underscores."
            )
        added.append(RegisteredEngine(entry.name, entry.value, package, version, problem))
    return sorted(added, key=lambda one: (one.name, one.package))


def _imported(engine: RegisteredEngine) -> type[Engine]:
    module, _, attribute = engine.target.partition(":")
    origin = f" of the package {engine.package}" if engine.package else ""
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a package may fail in any way while it is imported
        raise EngineError(
            "engine_broken",
            f"The engine {engine.name}{origin} cannot be imported ({type(error).__name__} in {engine.target}).",
        ) from error
    if not (isinstance(found, type) and issubclass(found, Engine)):
        raise EngineError(
            "engine_broken", f"{engine.target}{origin} is not a class of engines (tts.engine.base.Engine)."
        )
    return found
