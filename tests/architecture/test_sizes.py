"""Small modules with one job, short functions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.sources import APPS, ROOT, module_name, product_sources

MODULE_LINES = 400
FUNCTION_LINES = 50


@pytest.mark.parametrize("folder", [*APPS, "tests"])
def test_no_module_has_more_than_400_lines(folder: str) -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in product_sources(folder)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MODULE_LINES
    }
    assert long == {}


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The function's lines without its docstring: what is explained at length is not long for it."""
    first = function.body[0]
    explained = ast.get_docstring(function) is not None
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if explained else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def long_functions(path: Path) -> list[str]:
    return [
        f"{module_name(path)}.{node.name}: {code_lines(node)} lines"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and code_lines(node) > FUNCTION_LINES
    ]


@pytest.mark.parametrize("folder", APPS)
def test_no_function_has_more_than_50_lines_of_code(folder: str) -> None:
    assert [name for path in product_sources(folder) for name in long_functions(path)] == []
