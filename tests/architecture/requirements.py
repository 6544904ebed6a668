"""What the requirement files ask for, and what that asks for in turn, by the packages that are installed."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.sources import ROOT

ALL = ROOT / "requirements.txt"
WEB = ROOT / "deploy" / "requirements-web.txt"
TESTS = ROOT / "tests" / "requirements.txt"


def lines_of(path: Path) -> list[str]:
    """The file's own lines without comments."""
    lines = (line.partition(" #")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def requirements_of(path: Path) -> list[Requirement]:
    """Every requirement of the file and of the files that it includes."""
    found: list[Requirement] = []
    for line in lines_of(path):
        if line.startswith("-r "):
            found += requirements_of((path.parent / line.removeprefix("-r ").strip()).resolve())
        else:
            found.append(Requirement(line))
    return found


def closure(path: Path) -> set[str]:
    """The canonical names of all packages that installing the file brings along."""
    wanted = [(str(canonicalize_name(item.name)), frozenset(item.extras)) for item in requirements_of(path)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while wanted:
        name, extras = wanted.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for text in metadata.requires(name) or []:
            item = Requirement(text)
            if item.marker is None or any(item.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                wanted.append((str(canonicalize_name(item.name)), frozenset(item.extras)))
    return {name for name, _ in seen}
