"""Waiting for conditions, and folders of our own that survive a path with spaces."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """Wait for a condition; the test fails when it does not come true in time."""

    def wait(condition: Callable[[], bool], *, timeout_s: float = 30.0, what: str = "the condition") -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"{what} did not come true within {timeout_s:g} s")
            time.sleep(0.02)

    return wait


@pytest.fixture
def closed_folder(tmp_path: Path) -> Path:
    """A folder that only its owner can enter, below another such folder, with a space in its path."""
    outer = tmp_path / "closed to others"
    outer.mkdir(mode=0o700)
    folder = outer / "data"
    folder.mkdir(mode=0o700)
    return folder
