"""A script of several speakers in a real browser: a voice for each, heard beforehand, and the job spoken by them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.conftest import ContextMaker
from tests.e2e.journeys import Account, fetch, upload_voice, wait_for, wait_until_spoken
from tests.e2e.listening import assert_speech
from tests.e2e.reading import serious_findings
from tests.embedded.stack import Stack

WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 360, "height": 740}
ENGLISH = "Mary: Who is there?\nJohn: Nobody."
CHINESE = "小红：谁在那里？\n小明：没有人。"


@pytest.fixture(scope="module")
def own_voices(account: Account, stack: Stack, browser: Browser, speech_clip: Path) -> list[str]:
    """The ids of two voices that have a sample from the first moment on."""
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{stack.port}", locale="en-GB", storage_state=account.storage_state
    )
    try:
        page = context.new_page()
        addresses = [upload_voice(page, speech_clip, name=name) for name in ("First reader", "Second reader")]
        return [re.findall(r"[0-9a-f-]{36}", address)[0] for address in addresses]
    finally:
        context.close()


@pytest.fixture(
    params=[("en", WIDE, ENGLISH), ("zh-hans", PHONE, CHINESE)], ids=["wide-english", "phone-chinese"]
)
def studio(request: pytest.FixtureRequest, new_context: ContextMaker, account: Account, stack: Stack) -> Page:
    """The studio with a script and its price."""
    language, viewport, text = request.param
    context = new_context(storage_state=account.storage_state, viewport=viewport)
    context.add_cookies(
        [{"name": "django_language", "value": language, "url": f"http://127.0.0.1:{stack.port}"}]
    )
    page = context.new_page()
    page.goto("/studio/")
    page.locator("input[name=mode][value=script]").press("Space")
    page.fill("textarea[name=text]", text)
    expect(page.locator(".script__row")).to_have_count(2)
    settled(page)
    return page


def settled(page: Page) -> None:
    """Wait until the price of what stands there is on the page."""
    expect(page.locator("#quote .figures")).to_be_visible()
    expect(page.locator(".htmx-request")).to_have_count(0)


def names_of(page: Page) -> list[str]:
    return page.locator(".script__name .strong").all_inner_texts()


def is_playing(button: Locator) -> None:
    expect(button).to_have_attribute("aria-pressed", "true")


def is_silent(button: Locator) -> None:
    expect(button).to_have_attribute("aria-pressed", "false")


def test_each_speaker_gets_a_voice_by_keyboard_and_is_spoken_by_it(studio: Page) -> None:
    assert serious_findings(studio) == []
    assert studio.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    first, second = studio.locator("#cast-1"), studio.locator("#cast-2")
    # Two people are not given one voice.
    assert first.input_value() != second.input_value()
    names = names_of(studio)

    second.focus()
    studio.keyboard.press("End")
    chosen = second.input_value()
    with studio.expect_response("**/studio/quote/"):
        studio.keyboard.press("Home")
        studio.keyboard.press("End")
    settled(studio)
    # The price brought the list anew: what was chosen is chosen, and the keyboard is where it was.
    expect(second).to_have_value(chosen)
    expect(second).to_be_focused()
    # Another name in the text keeps what was chosen for those that stay.
    field = studio.locator("textarea[name=text]")
    text = field.input_value()
    field.fill(f"{text}\n{names[0]}: Good.\nAnn: Yes.")
    expect(studio.locator(".script__row")).to_have_count(3)
    expect(second).to_have_value(chosen)
    field.fill(text)
    expect(studio.locator(".script__row")).to_have_count(2)
    expect(second).to_have_value(chosen)
    settled(studio)

    voice_name = second.locator("option:checked").inner_text().partition(" · ")[0]
    studio.locator("[data-submit]").press("Enter")
    studio.wait_for_url("**/studio/?job=**")
    assert_speech(fetch(studio, wait_until_spoken(studio)), at_least_s=1.0, at_most_s=9.0)
    studio.locator("[data-live] a[href^='/jobs/'][href$='/']").click()
    studio.wait_for_url("**/jobs/*/")
    assert studio.locator(".segment__speaker").all_inner_texts() == names
    facts = studio.locator("dt", has_text=names[1]).locator("+ dd")
    expect(facts.first).to_have_text(voice_name)
    assert serious_findings(studio) == []


def choose(page: Page, speaker: int, voice: str) -> None:
    with page.expect_response("**/studio/quote/"):
        page.locator(f"#cast-{speaker}").select_option(voice)
    settled(page)


def test_a_voice_is_heard_before_it_is_chosen_and_one_at_a_time(own_voices: list[str], studio: Page) -> None:
    first, second = studio.locator("#cast-play-1"), studio.locator("#cast-play-2")
    choose(studio, 1, own_voices[0])
    choose(studio, 2, own_voices[1])
    first.press("Enter")
    is_playing(first)
    second.press("Enter")
    is_silent(first)
    is_playing(second)
    second.press("Enter")
    is_silent(second)

    # A price that comes while one sounds brings the buttons anew: the one that sounds says so, and stops it.
    first.press("Enter")
    is_playing(first)
    choose(studio, 2, own_voices[0])
    is_playing(first)
    wait_for(studio, "document.querySelectorAll('[data-cast-play][aria-pressed=true]').length === 1")
    first.press("Enter")
    is_silent(first)

    # Another voice than the one that sounds: silence, not the wrong name beside it.
    first.press("Enter")
    is_playing(first)
    choose(studio, 1, own_voices[1])
    is_silent(first)
    # Whoever speaks no more is not heard on.
    second.press("Enter")
    is_playing(second)
    studio.fill("textarea[name=text]", studio.locator("textarea[name=text]").input_value().partition("\n")[0])
    expect(studio.locator(".script__row")).to_have_count(1)
    is_silent(first)
    first.press("Enter")
    is_playing(first)
    # A player starts: one thing sounds at a time.
    studio.locator(".voice-option [data-player-toggle]").first.press("Enter")
    is_silent(first)
