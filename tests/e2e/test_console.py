"""The operators' console in a real browser: nothing the policy refuses, fresh by itself, and in nobody's way."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from portal.embedded.console import OPERATOR_EMAIL
from tests.e2e.conftest import Complaints, ContextMaker
from tests.e2e.journeys import Account, speak
from tests.e2e.test_everybody import serious_findings
from tests.embedded.stack import Stack

PLACES = [
    "/console/",
    "/admin/",
    "/admin/tts/device/",
    "/admin/tts/synthesisjob/",
    "/admin/billing/priceversion/add/",
]


@pytest.fixture(scope="package")
def operator_state(stack: Stack, browser: Browser) -> Any:
    """The cookies of somebody who signed in with what `make run` prints."""
    context = browser.new_context(base_url=f"http://127.0.0.1:{stack.port}", locale="en-GB")
    try:
        page = context.new_page()
        # Asked for the console first: the sign-in leads there.
        page.goto("/console/")
        page.fill("input[type=email]", OPERATOR_EMAIL)
        page.fill("input[type=password]", stack.folder.secrets.read("operator_password"))
        page.click("form[action^='/account/login/'] button[type=submit]")
        page.wait_for_url("**/console/")
        return context.storage_state()
    finally:
        context.close()


@pytest.fixture
def console(new_context: ContextMaker, operator_state: Any) -> Page:
    page = new_context(storage_state=operator_state).new_page()
    page.goto("/console/")
    return page


def as_of(page: Page) -> str:
    return str(page.locator("#console-fresh time").get_attribute("datetime"))


def wait_for_refresh(page: Page) -> None:
    before = as_of(page)
    expect(page.locator(f"#console-fresh time:not([datetime='{before}'])")).to_be_visible()


def test_records_and_console_break_no_rule_of_the_policy(
    new_context: ContextMaker, operator_state: Any
) -> None:
    """`complaints` fails the test for whatever the browser refused."""
    page = new_context(storage_state=operator_state).new_page()
    for place in PLACES:
        response = page.goto(place)
        assert response is not None
        assert response.status == 200
    page.goto("/console/")
    page.locator("#device-rows a").first.click()
    expect(page.locator("#device_form")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_console(
    new_context: ContextMaker, operator_state: Any, scheme: str
) -> None:
    page = new_context(storage_state=operator_state, color_scheme=scheme).new_page()
    page.goto("/console/")
    assert serious_findings(page) == []


@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
def test_the_console_does_not_scroll_sideways_on_a_phone(
    new_context: ContextMaker, operator_state: Any, language: str
) -> None:
    page = new_context(
        storage_state=operator_state,
        viewport={"width": 360, "height": 740},
        extra_http_headers={"Accept-Language": language},
    ).new_page()
    page.goto("/console/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_job_shows_up_by_itself_and_the_focus_stays(
    console: Page, new_context: ContextMaker, account: Account
) -> None:
    link = console.locator("#device-rows a").first
    link.focus()
    focused = link.get_attribute("id")
    console.evaluate("window.sameDocument = true")
    customer = new_context(storage_state=account.storage_state).new_page()
    job_id = speak(customer, "Two boats are waiting for us.").split("/")[2]
    row = console.locator("#job-rows tr").filter(has=console.locator(f"#job-{job_id}"))
    expect(row).to_contain_text(account.email)
    expect(row).to_contain_text("Done")
    assert console.evaluate("window.sameDocument") is True
    assert console.evaluate("document.activeElement.id") == focused


def test_refreshing_can_be_paused(console: Page) -> None:
    wait_for_refresh(console)
    pause = console.locator("[data-console-pause]")
    pause.click()
    expect(pause).to_have_attribute("aria-pressed", "true")
    requests: list[str] = []
    console.on("request", lambda request: requests.append(request.url))
    # Asking again is the page's own act here: whatever it does by itself would be among the requests first.
    before = as_of(console)
    console.wait_for_timeout(
        6_000
    )  # the pause must outlast a whole interval: there is nothing else to wait for
    assert requests == []
    assert as_of(console) == before
    pause.click()
    wait_for_refresh(console)


def test_selected_text_is_not_taken_away(console: Page) -> None:
    wait_for_refresh(console)
    console.evaluate("getSelection().selectAllChildren(document.querySelector('#device-rows th'))")
    requests: list[str] = []
    console.on("request", lambda request: requests.append(request.url))
    console.wait_for_timeout(6_000)  # as above
    assert requests == []
    console.evaluate("getSelection().removeAllRanges()")
    wait_for_refresh(console)


def test_a_server_that_does_not_answer_is_said(console: Page, complaints: Complaints) -> None:
    complaints.expected_statuses.add(503)
    stale = console.locator("[data-console-stale]")
    expect(stale).to_be_hidden()

    def refuse(route: Route) -> None:
        route.fulfill(status=503, body="")

    console.route("**/console/", refuse)
    expect(stale).to_be_visible()
    console.unroute("**/console/")
    expect(stale).to_be_hidden()


def test_without_scripts_the_page_is_refreshed_by_a_link(
    new_context: ContextMaker, operator_state: Any
) -> None:
    page = new_context(storage_state=operator_state, java_script_enabled=False).new_page()
    page.goto("/console/")
    expect(page.locator("[data-console-pause]")).to_be_hidden()
    before = as_of(page)
    page.click("main a.without-scripts")
    assert as_of(page) != before
