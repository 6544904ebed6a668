"""The main job, in a real browser: sign up, clone a voice, type, listen."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.conftest import Complaints, ContextMaker
from tests.e2e.journeys import fetch, sign_up, speak, upload_voice, wait_for, wait_until_spoken
from tests.e2e.listening import assert_speech, decode

ENGLISH = "The lake is quiet this morning, and two boats are waiting for us."
CHINESE = "今天早上湖面很安静，两条小船正在等我们。"


def test_sign_up_clone_type_listen(new_context: ContextMaker, speech_clip: Path) -> None:
    page = new_context(viewport={"width": 1280, "height": 860}).new_page()
    sign_up(page, email="alice@example.com")

    voice_path = upload_voice(page, speech_clip, name="Alice’s voice")
    expect(page.locator("h1")).to_have_text("Alice’s voice")
    expect(page.locator(".report__item")).to_have_count(9)
    clip = assert_speech(fetch(page, f"{voice_path}audio"), at_least_s=7.9, at_most_s=8.1)
    assert clip.speech_share > 0.7

    english = fetch(page, speak(page, ENGLISH, voice_path=voice_path))
    assert_speech(english, at_least_s=2.0, at_most_s=9.0)
    chinese = fetch(page, speak(page, CHINESE, voice_path=voice_path))
    assert_speech(chinese, at_least_s=2.0, at_most_s=9.0)
    assert english != chinese

    listen_in_the_page(page)
    the_receipt_adds_up(page)


def listen_in_the_page(page: Page) -> None:
    """Press play, hear time pass, jump by the keyboard."""
    player = page.locator("[data-live] [data-player]")
    player.locator("[data-player-toggle]").click()
    wait_for(page, "document.querySelector('[data-live] audio').currentTime > 0.4")
    expect(player).to_have_attribute("data-playing", "")
    player.locator("[data-player-toggle]").click()
    expect(player).not_to_have_attribute("data-playing", "")
    seek = player.locator("[data-player-seek]")
    seek.press("End")
    duration = page.evaluate("document.querySelector('[data-live] audio').duration")
    assert page.evaluate("document.querySelector('[data-live] audio').currentTime") > duration - 0.1
    seek.press("ArrowLeft")
    wait_for(
        page, f"Math.abs(document.querySelector('[data-live] audio').currentTime - {duration - 1}) < 0.1"
    )


def the_receipt_adds_up(page: Page) -> None:
    page.locator("[data-live] a[href^='/jobs/'][href$='/']").click()
    page.wait_for_url("**/jobs/*/")
    amounts = page.locator(".receipt dd").all_inner_texts()
    held, released, amount = (float(re.sub(r"[^0-9.]", "", text)) for text in amounts[-3:])
    assert amount > 0
    assert round(held - released, 6) == amount


def test_record_with_the_microphone(page: Page) -> None:
    page.goto("/voices/new/")
    page.fill("input[name=name]", "From the microphone")
    page.select_option("select[name=language]", "en")
    reading = page.locator("[data-reading=en]")
    expect(reading).to_be_visible()
    page.click("[data-part=start]")
    wait_for(page, "Number(document.querySelector('[data-part=elapsed]').textContent) >= 5")
    assert float(page.locator("[data-part=meter]").evaluate("meter => meter.value")) > 0.2
    page.click("[data-part=stop]")
    expect(page.locator("[data-part=listen]")).to_be_visible()
    expect(page.locator("textarea[name=transcript]")).to_have_value(reading.inner_text().strip())
    # It can be heard before it is sent.
    wait_for(page, "document.querySelector('[data-part=listen]').readyState > 0")
    page.check("input[name=consent]")
    page.click("#save-voice")
    page.wait_for_url(re.compile(r"/voices/[0-9a-f-]{36}/"))
    assert_speech(fetch(page, re.sub(r"\?.*", "audio", page.url)), at_least_s=4.5, at_most_s=7.0)


def test_a_refused_recording_keeps_the_form(
    page: Page, complaints: Complaints, tmp_path: Path, speech_clip: Path
) -> None:
    complaints.expected_statuses = {400}
    no_audio = tmp_path / "voice.wav"
    no_audio.write_text("This is a letter, not a recording. " * 40)
    page.goto("/voices/new/")
    page.fill("input[name=name]", "Second try")
    page.fill("textarea[name=transcript]", "What is said.")
    page.set_input_files("input[name=clip]", no_audio)
    found = page.locator("[data-voice-check] [data-found]")
    expect(found.locator(".alert--bad")).to_be_visible()
    page.check("input[name=consent]")
    page.click("#save-voice")
    expect(page.locator("#findings .alert--bad")).to_be_focused()
    expect(page.locator("input[name=name]")).to_have_value("Second try")
    expect(page.locator("textarea[name=transcript]")).to_have_value("What is said.")
    page.set_viewport_size({"width": 360, "height": 740})
    page.set_input_files("input[name=clip]", speech_clip)
    # The report is there before anything is saved, and fits a phone.
    expect(found.locator(".report__item")).to_have_count(9)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.click("#save-voice")
    page.wait_for_url(re.compile(r"/voices/[0-9a-f-]{36}/"))
    expect(page.locator("h1")).to_have_text("Second try")


def test_live_progress_say_again_and_delete(page: Page) -> None:
    source = speak(page, ENGLISH)
    first = fetch(page, source)
    page.click("[data-live] form[action$='/repeat/'] button")
    wait_for(page, f"!document.querySelector('[data-live] audio[src=\"{source}\"]')")
    second = fetch(page, wait_until_spoken(page))
    assert len(decode(second)[0]) > 24_000
    assert first != second

    page.goto("/history/?q=boats")
    rows = page.locator(".jobs tbody tr")
    expect(rows.first).to_be_visible()
    before = rows.count()
    rows.first.locator("[data-dialog-open]").click()
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("boats")
    dialog.locator("button[type=submit]").click()
    page.wait_for_url("**/history/?q=boats")
    expect(rows).to_have_count(before - 1)


def test_a_running_job_is_heard_live_and_canceled(page: Page) -> None:
    page.goto("/studio/")
    page.fill("textarea[name=text]", " ".join([ENGLISH] * 8))
    page.click("[data-submit]")
    page.wait_for_url("**/studio/?job=**")
    expect(page.locator("[data-live-state=running]")).to_be_visible()
    # The beginning can be heard while the rest is being spoken.
    expect(page.locator("[data-listen-live]")).to_be_visible()
    page.evaluate("document.querySelector('[data-listen-live] audio').play()")
    wait_for(page, "document.querySelector('[data-listen-live] audio').currentTime > 0.3")
    assert page.locator("[data-live-state]").get_attribute("data-live-state") == "running"
    page.click("[data-live] form[action$='/cancel/'] button")
    expect(page.locator("[data-live-state=canceled]")).to_be_visible()
    assert page.locator("[data-live] audio").count() == 0
