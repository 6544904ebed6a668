"""A new voice heard before it is saved, in a real browser: with scripts, and without."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.conftest import Complaints, ContextMaker
from tests.e2e.journeys import Account, fetch, wait_for, wait_until_spoken
from tests.e2e.listening import assert_speech
from tests.e2e.test_everybody import serious_findings

DRAFT = re.compile(r"/voices/[0-9a-f-]{36}/draft/")
SENTENCE = "Two boats are waiting for us."


def listen_first(page: Page, clip: Path, *, name: str) -> str:
    """Fill in the form and press the second button; returns the draft's path, whose page is open then."""
    page.goto("/voices/new/")
    page.fill("input[name=name]", name)
    page.select_option("select[name=language]", "en")
    page.set_input_files("input[name=clip]", clip)
    page.check("input[name=consent]")
    page.click("#listen-first")
    page.wait_for_url(DRAFT)
    return re.sub(r"^https?://[^/]+", "", page.url)


def test_listen_hear_say_another_sentence_and_save(page: Page, speech_clip: Path) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    address = listen_first(page, speech_clip, name="Heard first")
    expect(page.locator("h1")).to_have_text("Heard first")
    expect(page.locator(".report__item")).to_have_count(9)
    text, price = page.locator("textarea[name=text]"), page.locator("#draft-price")
    assert text.input_value().startswith("This is the new voice.")
    expect(price).to_contain_text(re.compile(r"\d"))
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert serious_findings(page) == []

    page.click("[data-submit]")
    first = fetch(page, wait_until_spoken(page))
    assert_speech(first, at_least_s=2.0, at_most_s=12.0)
    player = page.locator("[data-live] [data-player]")
    player.locator("[data-player-toggle]").click()
    wait_for(page, "document.querySelector('[data-live] audio').currentTime > 0.3")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert serious_findings(page) == []

    # Too long: the price says so before anything is pressed.
    text.fill("word " * 30)
    expect(price.locator(".alert--warn")).to_be_visible()
    text.fill(SENTENCE)
    expect(price.locator(".alert--warn")).to_have_count(0)
    source = str(page.locator("[data-live] audio").get_attribute("src"))
    text.press("Control+Enter")
    wait_for(page, f"!document.querySelector('[data-live] audio[src=\"{source}\"]')")
    second = fetch(page, wait_until_spoken(page))
    assert_speech(second, at_least_s=0.8, at_most_s=6.0)
    assert first != second

    page.goto("/voices/")
    page.click(f"a[href='{address}']")
    page.wait_for_url(DRAFT)
    page.click("#save-draft")
    page.wait_for_url(re.compile(r"/voices/[0-9a-f-]{36}/\?new=1"))
    expect(page.locator("h1")).to_have_text("Heard first")
    expect(page.locator(".job-list__item:not([data-version])")).to_have_count(2)
    page.goto("/voices/")
    assert page.locator(f"a[href='{address}']").count() == 0
    expect(page.locator("[data-own-voice]").filter(has_text="Heard first")).to_have_count(1)


def test_a_refused_recording_can_be_listened_to_after_another_try(
    page: Page, complaints: Complaints, tmp_path: Path, speech_clip: Path
) -> None:
    complaints.expected_statuses = {400}
    no_audio = tmp_path / "voice.wav"
    no_audio.write_text("This is a letter, not a recording. " * 40)
    page.goto("/voices/new/")
    page.fill("input[name=name]", "Second try")
    page.set_input_files("input[name=clip]", no_audio)
    page.check("input[name=consent]")
    page.click("#listen-first")
    expect(page.locator("#findings .alert--bad")).to_be_focused()
    page.set_input_files("input[name=clip]", speech_clip)
    page.check("input[name=shared][value=false]", force=True)
    page.click("#listen-first")
    page.wait_for_url(DRAFT)
    # Discarding asks, by the keyboard too.
    page.click("a[href='#discard-draft']")
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("Second try")
    dialog.locator("button[type=submit]").press("Enter")
    page.wait_for_url("**/voices/")
    assert page.locator("main a[href$='/draft/']").count() == 0


def test_without_scripts(new_context: ContextMaker, account: Account, speech_clip: Path) -> None:
    page = new_context(storage_state=account.storage_state, java_script_enabled=False).new_page()
    address = listen_first(page, speech_clip, name="Heard without scripts")
    page.fill("textarea[name=text]", SENTENCE)
    page.click("button[name=show_price]")
    expect(page.locator("#draft-price")).to_contain_text(re.compile(r"\d"))
    assert page.input_value("textarea[name=text]") == SENTENCE
    page.click("[data-submit]")
    page.wait_for_url(f"**{address}#test")
    for _ in range(600):
        if page.locator("[data-live-state=succeeded]").count():
            break
        page.reload()
    source = page.locator("[data-live] audio[controls]").get_attribute("src")
    assert_speech(fetch(page, str(source)), at_least_s=0.8, at_most_s=6.0)
    page.goto("/voices/")
    page.click("a[href='#discard-draft']")
    page.click("#discard-draft button[type=submit]")
    page.wait_for_url("**/voices/")
    assert page.locator("main a[href$='/draft/']").count() == 0
