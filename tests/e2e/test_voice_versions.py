"""A recording replaced, compared and taken back, in a real browser."""

from __future__ import annotations

import os
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.journeys import wait_for
from tests.e2e.test_everybody import serious_findings

VOICE = re.compile(r"/voices/[0-9a-f-]{36}/(\?new=1)?$")


def send(page: Page, clip: Path, button: str) -> None:
    page.set_input_files("input[name=clip]", clip)
    page.fill("textarea[name=transcript]", "Seven sisters wash their dishes.")
    page.check("input[name=consent]")
    page.click(button)
    page.wait_for_url(VOICE)


def fits(page: Page, name: str) -> None:
    """At this width: nothing stands out, and nothing is wrong for those who do not see it."""
    if folder := os.environ.get("VOICEPOOL_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious_findings(page) == []


def test_replace_hear_go_back_and_delete(page: Page, speech_clip: Path) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/voices/new/")
    page.fill("input[name=name]", "Twice recorded")
    send(page, speech_clip, "#save-voice")
    page.click("#versions a:has-text('Replace the recording')")
    expect(page.locator("h1")).to_contain_text("Twice recorded")
    fits(page, "replace-phone")
    send(page, speech_clip, "#save-recording")
    versions = page.locator("[data-version]")
    expect(versions).to_have_count(2)
    expect(versions.first).to_contain_text("Speaks now")
    fits(page, "versions-phone")
    page.locator("[data-version='1'] [data-player-toggle]").click()
    wait_for(page, "document.querySelector(\"[data-version='1'] audio\").currentTime > 0.3")
    page.click("[data-version='1'] button:has-text('Use this one again')")
    expect(page.locator("[data-version='1']")).to_contain_text("Speaks now")
    page.set_viewport_size({"width": 1280, "height": 900})
    fits(page, "versions-desktop")
    page.click("[data-version='2'] [data-dialog-open]")
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("Delete version 2 of “Twice recorded”?")
    dialog.locator("button[type=submit]").click()
    expect(versions).to_have_count(1)
