"""The Job page's editor in a real browser: one segment said again by keyboard, the rest keeps its sound."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.conftest import Complaints, ContextMaker
from tests.e2e.journeys import Account, fetch, speak, wait_until_spoken
from tests.e2e.listening import assert_speech
from tests.e2e.reading import serious_findings
from tests.embedded.stack import Stack

WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 360, "height": 740}
TEXT = (
    "The first sentence of the report opens it for all who listen here today. "
    "The second one says how the weather was on the day before, in all of the country.\n\n"
    "The third paragraph is about the price of bread, which has not changed since last year."
)
OTHER_WORDS = "Bread is cheap again."
NO_END = "No <strong>end."


@pytest.fixture(scope="module")
def spoken(account: Account, stack: Stack, browser: Browser) -> str:
    """The address of the page of a job of several segments that was spoken."""
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{stack.port}", locale="en-GB", storage_state=account.storage_state
    )
    try:
        audio = speak(context.new_page(), TEXT)
        return audio[: audio.index("/audio")] + "/"
    finally:
        context.close()


@pytest.fixture(params=[("en", WIDE), ("zh-hans", PHONE)], ids=["wide-english", "phone-chinese"])
def job_page(
    request: pytest.FixtureRequest, new_context: ContextMaker, account: Account, stack: Stack, spoken: str
) -> Page:
    language, viewport = request.param
    context = new_context(storage_state=account.storage_state, viewport=viewport)
    context.add_cookies(
        [{"name": "django_language", "value": language, "url": f"http://127.0.0.1:{stack.port}"}]
    )
    page = context.new_page()
    page.goto(spoken)
    expect(page.locator("html")).to_have_attribute("lang", language)
    return page


def edit_link(page: Page, number: int) -> Locator:
    return page.locator(f"#segment-{number} a[href*='?edit=']")


def field(page: Page, number: int) -> Locator:
    return page.locator(f"#segment-{number} textarea[name=text]")


def price(page: Page, number: int) -> Locator:
    return page.locator(f"#segment-{number} form [role=status]")


def open_editor(page: Page, number: int) -> None:
    edit_link(page, number).press("Enter")
    expect(field(page, number)).to_be_focused()
    # It is open once: nothing there opens it anew, over what was typed.
    expect(edit_link(page, number)).to_have_count(0)


def test_an_editor_opens_and_is_left_by_keyboard_and_keeps_the_focus(job_page: Page) -> None:
    before = field(job_page, 1)
    open_editor(job_page, 1)
    assert serious_findings(job_page) == []
    assert job_page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    text = before.input_value()
    assert TEXT.startswith(text)
    # A second one is another editor: each has its own text and its own price.
    open_editor(job_page, 2)
    field(job_page, 2).fill(NO_END)
    expect(price(job_page, 2).locator(".alert--warn")).to_be_visible()
    expect(price(job_page, 1).locator("p")).to_have_count(0)
    expect(field(job_page, 1)).to_have_value(text)
    assert serious_findings(job_page) == []
    labels = [field(job_page, number).evaluate("field => field.labels.length") for number in (1, 2)]
    assert labels == [1, 1]
    job_page.locator("#segment-2 form a").press("Enter")
    expect(field(job_page, 2)).to_have_count(0)
    expect(edit_link(job_page, 2)).to_be_focused()
    # What is open elsewhere stays as it is.
    expect(field(job_page, 1)).to_have_value(text)
    open_editor(job_page, 2)
    assert field(job_page, 2).input_value() in TEXT


def test_one_segment_is_said_again_with_its_price_beforehand(job_page: Page, spoken: str) -> None:
    segments = job_page.locator(".segment__text")
    texts = segments.all_inner_texts()
    last = len(texts)
    assert last >= 2
    old_audio = job_page.locator("[data-live] [data-player] audio").get_attribute("src") or ""
    open_editor(job_page, last)
    language = job_page.locator("html").get_attribute("lang")
    words = f"{OTHER_WORDS} {language}."
    job_page.keyboard.press("Control+a")
    job_page.keyboard.type(words)
    expect(price(job_page, last).locator("p:not(.alert)")).to_be_visible()
    button = job_page.locator(f"#segment-{last} form button[type=submit]").first
    job_page.keyboard.press("Tab")
    job_page.keyboard.press("Tab")
    expect(button).to_be_focused()
    job_page.keyboard.press("Enter")
    job_page.wait_for_url(lambda url: "/jobs/" in url and not url.endswith((spoken, "/revise/")))
    audio = wait_until_spoken(job_page)
    assert segments.all_inner_texts() == [*texts[:-1], words]
    used_again = [row.locator(".muted.nowrap").count() for row in job_page.locator("li[id^=segment-]").all()]
    assert used_again == [1] * (last - 1) + [0]
    expect(job_page.locator(f"a[href='{spoken}']")).to_have_count(1)
    assert_speech(fetch(job_page, audio), at_least_s=2.0, at_most_s=40.0)
    assert fetch(job_page, audio) != fetch(job_page, old_audio)
    assert serious_findings(job_page) == []
    # The earlier one says what it said.
    job_page.goto(spoken)
    assert segments.all_inner_texts() == texts


def test_a_refusal_stands_beside_the_text_and_makes_no_job(
    job_page: Page, complaints: Complaints, spoken: str
) -> None:
    complaints.expected_statuses = {400}
    job_page.goto("/history/")
    jobs = job_page.locator(".jobs tbody tr").count()
    job_page.goto(spoken)
    open_editor(job_page, 1)
    job_page.keyboard.press("Control+a")
    job_page.keyboard.type(NO_END)
    expect(price(job_page, 1).locator(".alert--warn")).to_be_visible()
    job_page.locator("#segment-1 form button[type=submit]").first.press("Enter")
    job_page.wait_for_url("**/revise/")
    # The page came anew: the keyboard is where it goes on, and what is wrong is told with the field.
    expect(field(job_page, 1)).to_be_focused()
    expect(field(job_page, 1)).to_have_value(NO_END)
    expect(field(job_page, 1)).to_have_attribute("aria-invalid", "true")
    described = field(job_page, 1).get_attribute("aria-describedby")
    expect(job_page.locator(f"#{described} .alert--warn")).to_be_visible()
    assert serious_findings(job_page) == []
    # Other segments can be edited from here, and who leaves is on the job's page again.
    open_editor(job_page, 2)
    job_page.locator("#segment-1 form a").press("Enter")
    expect(edit_link(job_page, 1)).to_be_focused()
    job_page.goto("/history/")
    assert job_page.locator(".jobs tbody tr").count() == jobs


@pytest.mark.parametrize("scripts", [False], ids=["no-scripts"])
def test_without_scripts_it_is_opened_priced_and_left(
    new_context: ContextMaker, account: Account, spoken: str, scripts: bool
) -> None:
    page = new_context(storage_state=account.storage_state, java_script_enabled=scripts).new_page()
    page.goto(spoken)
    edit_link(page, 2).press("Enter")
    field(page, 2).fill(OTHER_WORDS)
    page.locator("#segment-2 button[name=show_price]").press("Enter")
    expect(price(page, 2).locator("p:not(.alert)")).to_be_visible()
    expect(field(page, 2)).to_have_value(OTHER_WORDS)
    page.locator("#segment-2 form a").press("Enter")
    expect(field(page, 2)).to_have_count(0)
    expect(edit_link(page, 2)).to_be_visible()
