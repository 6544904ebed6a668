"""A real browser against the whole product: embedded servers, clock, node, and the built-in CPU engine.

Chromium is Debian's (or CHROMIUM names one). Where there is none these tests are skipped, and in CI they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.audio.clips import speech, wav
from tests.e2e.journeys import Account, sign_up
from tests.embedded.stack import Stack, environment_for_stack

ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
]
# The engine shares two cores with the browser and three servers.
PATIENCE_MS = 60_000
CLIP_SECONDS = 8.0
# htmx logs a request that a newer one replaced, or that ended as the page was left. A failed one says sendError.
ABORTED = ("htmx:sendAbort", "htmx:afterRequest")
expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/e2e" in item.nodeid:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.slow)


def _chromium() -> str:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path:
        return path
    reason = "There is no Chromium: install Debian's chromium, or name one in CHROMIUM."
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="package")
def chromium() -> str:
    return _chromium()


@pytest.fixture(scope="package")
def speech_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight seconds of somebody who speaks, as a WAV file."""
    path: Path = tmp_path_factory.mktemp("clips") / "speech.wav"
    path.write_bytes(wav(speech(CLIP_SECONDS)))
    return path


@pytest.fixture(scope="package")
def stack(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The product as `make run` starts it, with its real engine."""
    environment = environment_for_stack(VOICEPOOL_CPU_ENGINE="kokoro")
    running = Stack(tmp_path_factory.mktemp("e2e") / "data", environment=environment)
    try:
        running.wait_until_ready()
        yield running
    finally:
        running.close()


@pytest.fixture(scope="package")
def browser(chromium: str, speech_clip: Path) -> Iterator[Browser]:
    """One browser for all; its microphone hears the clip, over and over."""
    # The package's scope matters: while Playwright's loop is there, Django's database refuses this thread.
    with sync_playwright() as playwright:
        arguments = [*ARGUMENTS, f"--use-file-for-fake-audio-capture={speech_clip}"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        browser.close()


@dataclass
class Complaints:
    """What the browser says against a page: errors, warnings, refused content, uncaught exceptions."""

    lines: list[str] = field(default_factory=list)
    # Answers that a test provokes: the browser logs every one of them.
    expected_statuses: set[int] = field(default_factory=set)

    def watch(self, page: Page) -> None:
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self.lines.append(f"exception: {error}"))

    def _note(self, kind: str, text: str) -> None:
        if kind not in ("error", "warning") or text.startswith(ABORTED):
            return
        if any(
            f"status of {status} " in text or f"Code {status} " in text for status in self.expected_statuses
        ):
            return
        self.lines.append(f"{kind}: {text}")


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    found = Complaints()
    yield found
    assert found.lines == []


ContextMaker = Callable[..., BrowserContext]


@pytest.fixture
def new_context(stack: Stack, browser: Browser, complaints: Complaints) -> Iterator[ContextMaker]:
    """Makes browser contexts, each like another person's browser; every page in them is watched."""
    made: list[BrowserContext] = []

    def make(**options: Any) -> BrowserContext:
        context = browser.new_context(base_url=f"http://127.0.0.1:{stack.port}", locale="en-GB", **options)
        context.set_default_timeout(PATIENCE_MS)
        context.on("page", complaints.watch)
        made.append(context)
        return context

    yield make
    for context in made:
        context.close()


@pytest.fixture(scope="package")
def account(stack: Stack, browser: Browser) -> Account:
    """A customer who signed up, for the tests that only need somebody signed in."""
    context = browser.new_context(base_url=f"http://127.0.0.1:{stack.port}", locale="en-GB")
    try:
        return sign_up(context.new_page(), email="erin@example.com")
    finally:
        context.close()


@pytest.fixture
def page(new_context: ContextMaker, account: Account) -> Page:
    """A page of a browser in which the customer is signed in."""
    return new_context(storage_state=account.storage_state).new_page()
