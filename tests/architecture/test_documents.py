"""README, ARCHITECTURE and the runbook say what is there: variables, files, targets, addresses and commands."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from django.core.management import get_commands
from django.urls import Resolver404, resolve

from tests.architecture.sources import APPS, ROOT, product_sources

README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
RUNBOOK = (ROOT / "deploy" / "RUNBOOK.md").read_text(encoding="utf-8")
DOCUMENTS = {"README.md": README, "ARCHITECTURE.md": ARCHITECTURE, "deploy/RUNBOOK.md": RUNBOOK}
READERS = {"env_text", "env_bool", "env_int", "env_list", "env_matching"}
# Set by one process of ours for another, or for the tests of the stack; nobody configures them.
INTERNAL = {
    "DJANGO_SETTINGS_MODULE",
    "PORT",
    "VOICEPOOL_OUTBOX",
    "VOICEPOOL_ENGINE_PARENT",
    "VOICEPOOL_STACK",
    "XDG_CACHE_HOME",
}


def _name(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def variables_read(path: Path) -> set[str]:
    """The environment variables that a file reads by name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args:
            function = ast.unparse(node.func)
            if function in READERS or function in ("os.environ.get", "os.environ.setdefault"):
                found.add(_name(node.args[0]) or "")
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            found.add(_name(node.slice) or "")
    return found - {""}


def configuration() -> set[str]:
    paths = [
        path
        for path in [*product_sources(*APPS), ROOT / "deploy" / "gunicorn.conf.py"]
        if "embedded" not in path.parts and "commands" not in path.parts and path.name != "test.py"
    ]
    return set().union(*(variables_read(path) for path in paths)) - INTERNAL


def variables_documented() -> set[str]:
    table = README[README.index("## Configuration") : README.index("## In production")]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([A-Z][A-Z_]+)`", row.split("|")[1])}


def test_the_readme_names_every_variable_that_is_read_and_no_other() -> None:
    assert variables_documented() == configuration()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_that_are_named_exist(document: str) -> None:
    text = DOCUMENTS[document]
    linked = re.findall(r"\]\(([^)#:]+)\)", text)
    named = re.findall(r"`((?:portal|accounts|billing|tts|deploy|tests|templates|static)/[\w./-]+)`", text)
    missing = [name for name in {*linked, *named} if not (ROOT / name).exists()]
    assert missing == []
    assert linked or named


def test_modules_of_the_house_exist() -> None:
    """`models/{a,b}` in the drawing of the house are modules of the app on whose lines it stands."""
    drawing = ARCHITECTURE[
        ARCHITECTURE.index("```\nportal/") : ARCHITECTURE.index("**Imports point one way**")
    ]
    app, named = "", set()
    for line in drawing.splitlines():
        if top := re.match(r"(\w+)/ ", line):
            app = top.group(1)
        for folder, names in re.findall(r"(\w+)/\{([\w,]+)\}", line):
            parent = ROOT / app if (ROOT / app / folder).exists() else ROOT / app / "management"
            named |= {parent / folder / f"{name}.py" for name in names.split(",")}
    assert len(named) > 30
    assert {path for path in named if not path.exists()} == set()


def test_targets_of_make_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {
        target for text in DOCUMENTS.values() for target in re.findall(r"(?m)(?:^|`)make ([a-z-]+)", text)
    }
    assert {"run", "test", "check", "bench"} <= named
    assert [target for target in named if not re.search(rf"(?m)^{target}:", makefile)] == []


def test_addresses_that_are_named_exist() -> None:
    addresses = set(re.findall(r"`(/[a-z][\w/.-]*)`", README)) - {"/protected"}
    assert len(addresses) > 8
    missing = []
    for address in addresses:
        try:
            resolve(address)
        except Resolver404:
            missing.append(address)
    assert missing == []


def test_commands_that_are_named_exist() -> None:
    named = {name for text in DOCUMENTS.values() for name in re.findall(r"manage\.py ([a-z_]+)", text)}
    assert {"clock", "gpu_node", "bootstrap"} <= named
    assert named <= set(get_commands())


def test_benchmarks_that_are_named_exist() -> None:
    section = README[README.index("## Tests and figures") :]
    named = set(re.findall(r"(?m)^\| `(\w+)` \| `", section)) | set(re.findall(r"NAME=(\w+)", section))
    assert "start" in named
    assert {name for name in named if not (ROOT / "tests" / "bench" / f"{name}.py").exists()} == set()


@pytest.mark.parametrize("document", [*DOCUMENTS, "CHANGELOG.md"])
def test_documents_hold_nothing_unfinished(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert re.findall(r"TODO|FIXME|XXX|TBD|lorem", text) == []
    assert max(len(line) for line in text.splitlines()) < 420
