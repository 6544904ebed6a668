"""The studio's helpers in a real browser: readings of a character, and how the text is read."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import ContextMaker
from tests.e2e.journeys import Account, wait_for
from tests.e2e.reading import serious_findings

TEXT = "😀 银行很大，\n他还在。"
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 780}


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def studio(request: pytest.FixtureRequest, new_context: ContextMaker, account: Account) -> Page:
    """The studio with a text, at both sizes."""
    page = new_context(storage_state=account.storage_state, viewport=request.param).new_page()
    page.goto("/studio/")
    page.fill("textarea[name=text]", TEXT)
    page.locator("#quote-spoken > summary").click()
    return page


def test_a_reading_is_chosen_by_keyboard_or_pointer_and_undone(studio: Page) -> None:
    field = studio.locator("textarea[name=text]")
    # Leaving the field asks for no second answer, which would close the menu.
    mark = studio.locator("[data-reading-of=还]")
    mark.locator("summary").focus()
    studio.keyboard.press("Enter")
    expect(mark.locator("[data-annotation]").first).to_be_visible()
    studio.keyboard.press("Escape")
    expect(mark.locator("[data-annotation]").first).to_be_hidden()
    expect(mark.locator("summary")).to_be_focused()
    studio.keyboard.press("Enter")
    studio.keyboard.press("Tab")
    studio.keyboard.press("Tab")
    studio.keyboard.press("Enter")
    expect(field).to_have_value("😀 银行很大，\n他[huán]在。")
    expect(field).to_be_focused()
    # The preview follows, and stays open; what is annotated is not asked for again.
    expect(studio.locator("[data-reading-of=还]")).to_have_count(0)
    studio.keyboard.press("Control+z")
    expect(field).to_have_value(TEXT)

    bank = studio.locator("[data-reading-of=行]")
    bank.locator("summary").click()
    choices = bank.locator("[data-annotation]")
    box = choices.last.bounding_box()
    assert box is not None
    assert studio.viewport_size is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= studio.viewport_size["width"]
    choices.last.click()
    expect(field).to_have_value("😀 银[xíng]很大，\n他还在。")


def test_instructions_are_shown_for_their_mode_alone_and_say_why_they_are_closed(studio: Page) -> None:
    part = studio.locator("[data-mode-part=instruct]")
    expect(part).to_be_hidden()
    studio.check("input[name=mode][value=instruct]", force=True)
    expect(part).to_be_visible()
    # The built-in engine takes none.
    expect(part.locator(".alert--warn")).to_be_visible()
    expect(part.locator("input[name=instruction]").first).to_be_disabled()
    # Said beside the price too, before anything is sent.
    expect(studio.locator("#quote .alert--warn")).to_be_visible()
    expect(studio.locator("#quote .figures")).to_have_count(0)
    expect(studio.locator(".htmx-request")).to_have_count(0)
    # Closed, it is read by a screen reader, searched, and scrolled by the keyboard all the same.
    assert serious_findings(studio) == []
    part.locator("input[type=search]").fill("四川")
    expect(part.locator("[data-words*=四川话]")).to_be_visible()
    expect(part.locator("[data-words*=Cantonese]")).to_be_hidden()
    part.locator("input[type=search]").fill("")
    studio.keyboard.press("Tab")
    expect(part.locator(".instruction__list")).to_be_focused()
    studio.keyboard.press("End")
    wait_for(studio, "document.querySelector('.instruction__list').scrollTop > 0")
    assert studio.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    studio.check("input[name=mode][value=plain]", force=True)
    expect(part).to_be_hidden()


def test_a_text_outlives_a_reload_and_another_page_until_it_is_emptied(studio: Page) -> None:
    field = studio.locator("textarea[name=text]")
    studio.check("input[name=mode][value=script]", force=True)
    studio.goto("/pronunciations/")
    studio.goto("/studio/")
    expect(field).to_have_value(TEXT)
    assert studio.locator("input[name=mode]:checked").get_attribute("value") == "script"
    # Its price comes with it.
    expect(studio.locator("#quote .figures")).to_be_visible()
    studio.fill("textarea[name=text]", "")
    studio.reload()
    expect(field).to_have_value("")


def test_who_signed_out_leaves_no_text_in_the_tab(studio: Page) -> None:
    assert "银行" in studio.evaluate("sessionStorage.getItem('studio-draft')")
    studio.context.clear_cookies(name="sessionid")
    studio.goto("/account/login/")
    assert studio.evaluate("sessionStorage.getItem('studio-draft')") is None


def test_a_text_that_another_class_takes_shows_where_to_choose_it(studio: Page) -> None:
    urgency = studio.locator("input[name=job_class][value=standard] + .choice__face")
    expect(urgency).to_be_hidden()
    studio.fill("textarea[name=text]", "很长的一句话。" * 1000)
    expect(urgency).to_be_visible()
    studio.check("input[name=job_class][value=standard]")
    expect(studio.locator("#quote .figures")).to_be_visible()
