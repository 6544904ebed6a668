"""The operators' console in a real browser: nothing the policy refuses, fresh by itself, and in nobody's way."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from portal.embedded.console import OPERATOR_EMAIL
from tests.e2e.conftest import Complaints, ContextMaker
from tests.e2e.journeys import Account, speak
from tests.e2e.reading import serious_findings
from tests.embedded.stack import Stack

CONSOLE = [
    "/console/",
    "/console/devices/",
    "/console/queue/",
    "/console/jobs/",
    "/console/log/",
    "/console/log/?kind=requests",
    "/console/customers/",
    "/console/money/",
    "/console/money/pending/",
    "/console/money/vouchers/",
    "/console/prices/",
    "/console/prices/new/",
    "/console/plans/",
    "/console/plans/standard/",
    "/console/audit/",
]
PLACES = [
    *CONSOLE,
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
    page.goto("/console/devices/")
    page.locator(".device__name a").first.click()
    expect(page.locator("#time-account")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_console(
    new_context: ContextMaker, operator_state: Any, scheme: str
) -> None:
    page = new_context(storage_state=operator_state, color_scheme=scheme).new_page()
    found = {}
    for place in [*CONSOLE, "/console/devices/1/", "/console/devices/1/drain/"]:
        page.goto(place)
        if findings := serious_findings(page):
            found[place] = findings
    assert found == {}


@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
def test_the_console_does_not_scroll_sideways_on_a_phone(
    new_context: ContextMaker, operator_state: Any, language: str
) -> None:
    page = new_context(
        storage_state=operator_state,
        viewport={"width": 360, "height": 740},
        extra_http_headers={"Accept-Language": language},
    ).new_page()
    too_wide = {}
    for place in [*CONSOLE, "/console/devices/1/", "/console/devices/1/drain/"]:
        page.goto(place)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 360:
            too_wide[place] = width
    assert too_wide == {}


def test_a_job_shows_up_by_itself_and_the_focus_stays(
    console: Page, new_context: ContextMaker, account: Account
) -> None:
    customer = new_context(storage_state=account.storage_state).new_page()
    speak(customer, "One boat is waiting for us.")
    console.goto("/console/jobs/")
    link = console.locator("#job-rows a").first
    link.focus()
    focused = link.get_attribute("id")
    console.evaluate("window.sameDocument = true")
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
    console.evaluate("getSelection().selectAllChildren(document.querySelector('#latency-rows th'))")
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


def test_an_act_asks_in_a_dialog_and_its_outcome_shows_by_itself(console: Page) -> None:
    console.goto("/console/devices/")
    console.evaluate("window.sameDocument = true")
    act = console.locator("a[data-act][id$=-drain]")
    act.click()
    dialog = console.locator("#act-dialog")
    expect(dialog).to_be_visible()
    expect(dialog.locator("input[name=reason]")).to_be_focused()
    # The card behind it is drawn anew meanwhile, and the question stays; closed, the focus is back on the link.
    console.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(act).to_be_focused()
    assert console.evaluate("window.sameDocument") is True
    act.click()
    dialog.locator("input[name=reason]").fill("A test of the drain")
    dialog.locator("button[type=submit]").click()
    console.wait_for_url("**/console/devices/1/")
    row = console.locator("#command-rows tr").filter(has_text="A test of the drain").first
    expect(row.locator(".badge--ok")).to_be_visible()
    resume = console.locator("a[data-act][id$=-resume]")
    resume.click()
    dialog.locator("input[name=reason]").fill("The test is over")
    dialog.locator("button[type=submit]").click()
    row = console.locator("#command-rows tr").filter(has_text="The test is over").first
    expect(row.locator(".badge--ok")).to_be_visible()
    expect(console.locator("a[data-act][id$=-drain]")).to_be_visible()


def test_a_charts_values_are_read_with_the_arrow_keys_and_stay_chosen(console: Page) -> None:
    chart = console.locator("[data-chart=pool]")
    drawing = chart.locator("[data-chart-svg]")
    drawing.focus()
    readout = chart.locator("[data-chart-readout]")
    expect(readout).to_have_text(re.compile(r".+: .+"))
    console.keyboard.press("Home")
    first = readout.text_content()
    console.keyboard.press("ArrowRight")
    expect(readout).not_to_have_text(str(first))
    console.keyboard.press("ArrowLeft")
    expect(readout).to_have_text(str(first))
    wait_for_refresh(console)
    assert console.evaluate("document.activeElement.id") == "pool-svg"
    expect(chart.locator(".chart__column").first).to_have_attribute("data-chosen", "")
    chart.locator("summary").click()
    wait_for_refresh(console)
    expect(chart.locator("tbody tr").first).to_be_visible()


def test_an_act_without_scripts_is_a_page_of_its_own(
    new_context: ContextMaker, operator_state: Any, complaints: Complaints
) -> None:
    page = new_context(storage_state=operator_state, java_script_enabled=False).new_page()
    page.goto("/console/devices/")
    page.locator("a[id$=-restart_after_job]").click()
    page.locator("main form button[type=submit]").click()
    expect(page.locator(".field__error")).to_be_visible()
    page.fill("input[name=reason]", "A test without scripts")
    page.locator("main form button[type=submit]").click()
    page.wait_for_url("**/console/devices/1/")
    expect(page.locator("#command-rows")).to_contain_text("A test without scripts")
