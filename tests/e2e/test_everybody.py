"""The pages for everybody: screen readers, phones, keyboards, browsers without scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import Complaints, ContextMaker
from tests.e2e.journeys import Account, fetch, speak, upload_voice, wait_for
from tests.e2e.listening import assert_speech
from tests.e2e.reading import serious_findings
from tests.embedded.stack import Stack

SENTENCE = "Two boats are waiting for us."
VISITOR_PAGES = ["/", "/account/login/", "/account/signup/", "/account/password/reset/", "/outbox/"]
CUSTOMER_PAGES = [
    "/studio/",
    "/voices/",
    "/voices/new/",
    "/history/",
    "/developers/",
    "/settings/",
    "/usage/",
    "/billing/",
    "/billing/ledger/",
    "/billing/plan/",
    "/billing/settings/",
    "/billing/top-up/",
    "/billing/methods/",
    "/billing/payments/",
    "/billing/invoices/",
]


@pytest.fixture(scope="package")
def furnished(account: Account, stack: Stack, browser: Browser, speech_clip: Path) -> list[str]:
    """Addresses of a customer's pages with something on them: a voice, a job."""
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{stack.port}", locale="en-GB", storage_state=account.storage_state
    )
    try:
        page = context.new_page()
        voice = upload_voice(
            page, speech_clip, name="A narrator with a long name that has to be cut somewhere"
        )
        job = re.sub(r"audio$", "", speak(page, SENTENCE, voice_path=voice))
        return [
            *CUSTOMER_PAGES,
            re.sub(r"^https?://[^/]+", "", voice),
            job,
            f"/studio/?job={job.split('/')[2]}",
        ]
    finally:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    new_context: ContextMaker, account: Account, furnished: list[str], scheme: str
) -> None:
    found = {}
    for state, addresses in ((None, VISITOR_PAGES), (account.storage_state, furnished)):
        page = new_context(storage_state=state, color_scheme=scheme).new_page()
        for address in addresses:
            page.goto(address)
            if findings := serious_findings(page):
                found[address] = findings
    assert found == {}


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_nothing_scrolls_sideways_on_a_phone(
    new_context: ContextMaker, stack: Stack, account: Account, furnished: list[str], language: str
) -> None:
    too_wide = {}
    cookie = {"name": "django_language", "value": language, "url": f"http://127.0.0.1:{stack.port}"}
    for state, addresses in ((None, VISITOR_PAGES), (account.storage_state, furnished)):
        context = new_context(storage_state=state, viewport={"width": 360, "height": 740})
        context.add_cookies([cookie])
        page = context.new_page()
        for address in addresses:
            page.goto(address)
            assert page.locator("html").get_attribute("lang") == language
            width = page.evaluate("document.documentElement.scrollWidth")
            if width > 360:
                too_wide[address] = width
    assert too_wide == {}


def focused(page: Page) -> str:
    """Which control has the focus: its name, data attribute or address."""
    return str(
        page.evaluate(
            """() => {
              const element = document.activeElement;
              const marks = ["data-submit", "data-player-toggle", "data-player-seek"];
              const mark = marks.find((name) => element.hasAttribute(name));
              return mark ?? element.getAttribute("name") ?? element.getAttribute("href") ?? element.tagName;
            }"""
        )
    )


def tab_to(page: Page, wanted: str, *, at_most: int = 40) -> None:
    for _ in range(at_most):
        page.keyboard.press("Tab")
        if focused(page) == wanted:
            return
    raise AssertionError(f"{wanted} was not reached by the keyboard; the focus is on {focused(page)}")


def test_the_main_job_by_keyboard_alone(page: Page) -> None:
    page.goto("/studio/")
    page.keyboard.press("Tab")
    assert focused(page) == "#content"
    page.keyboard.press("Enter")
    tab_to(page, "text")
    page.keyboard.type(SENTENCE)
    tab_to(page, "voice")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("input[name=voice]:checked").get_attribute("value")
    expect(page.locator("#quote .figures")).to_be_visible()
    tab_to(page, "data-submit")
    page.keyboard.press("Enter")
    page.wait_for_url("**/studio/?job=**")
    expect(page.locator("[data-live-state=succeeded]")).to_be_visible()
    assert page.locator("input[name=voice]:checked").get_attribute("value") == chosen
    # The address led to the job: the next control is in it.
    page.keyboard.press("Tab")
    assert focused(page) == "data-player-toggle"
    page.keyboard.press("Space")
    wait_for(page, "document.querySelector('[data-live] audio').currentTime > 0.2")
    page.keyboard.press("Tab")
    assert focused(page) == "data-player-seek"
    page.keyboard.press("Home")
    page.keyboard.press("PageUp")
    wait_for(
        page, "(audio => audio.ended || audio.currentTime > 1)(document.querySelector('[data-live] audio'))"
    )


def test_the_main_job_without_scripts(
    new_context: ContextMaker, account: Account, complaints: Complaints, speech_clip: Path, tmp_path: Path
) -> None:
    complaints.expected_statuses = {400}
    context = new_context(storage_state=account.storage_state, java_script_enabled=False)
    page = context.new_page()

    page.goto("/voices/new/")
    assert not page.locator("[data-recorder]").is_visible()
    empty = tmp_path / "empty.wav"
    empty.write_bytes(b"")
    page.fill("input[name=name]", "Without scripts")
    page.check("input[name=consent]")
    page.set_input_files("input[name=clip]", empty)
    page.click("#save-voice")
    expect(page.locator("#findings .alert--bad")).to_be_visible()
    assert page.input_value("input[name=name]") == "Without scripts"
    page.set_input_files("input[name=clip]", speech_clip)
    page.click("#save-voice")
    expect(page.locator("h1")).to_have_text("Without scripts")
    voice_id = str(re.search(r"[0-9a-f-]{36}", page.url)[0])  # type: ignore[index]

    page.goto(f"/studio/?voice={voice_id}")
    page.fill("textarea[name=text]", SENTENCE)
    page.click("button[name=show_price]")
    expect(page.locator("#quote .figures")).to_be_visible()
    assert page.input_value("textarea[name=text]") == SENTENCE
    page.click("[data-submit]")
    expect(page.locator("[data-live-state]")).to_be_visible()
    for _ in range(600):
        if page.locator("[data-live-state=succeeded]").count():
            break
        page.reload()
    source = page.locator("[data-live] audio[controls]").get_attribute("src")
    assert_speech(fetch(page, str(source)), at_least_s=0.8, at_most_s=5.0)

    page.goto(f"/voices/{voice_id}/")
    page.click("a[href='#delete-voice']")
    page.click("#delete-voice button[type=submit]")
    page.wait_for_url("**/voices/")
    assert page.locator(f"a[href='/voices/{voice_id}/']").count() == 0
