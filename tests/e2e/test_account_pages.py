"""Accounts in a browser: rules that tick themselves off, colours, menus, dialogs, and the quick start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.password_validation import get_default_password_validators
from django.core.exceptions import ValidationError
from playwright.sync_api import Page, expect

from accounts.models import User
from tests.e2e.conftest import ContextMaker
from tests.e2e.journeys import Account
from tests.e2e.listening import assert_speech

# The rule of the page that each validator stands for.
RULES = {
    "MinimumLengthValidator": "length",
    "NumericPasswordValidator": "letters",
    "UserAttributeSimilarityValidator": "different",
    "CommonPasswordValidator": "common",
}
SHOWN_VERDICTS = """() => Object.fromEntries(
  [...document.querySelectorAll("[data-rule]")].map((rule) => [rule.dataset.rule, rule.dataset.met])
)"""
EMAIL = "wen.zhang@example.com"
PASSWORDS = [
    "short",
    "1234567890",
    "١٢٣٤٥٦٧٨٩٠",
    "wen.zhang@example.com",
    "WENZHANG2024",
    "example.wen",
    "gnahznewelpmaxe",
    "qwertyuiop",
    "QwertyUiop",
    "🎵🎶🎵🎶🎵",
    "声池声池声池声池声池",
    "a pool of many voices",
    "zhang",
    "xwenx.xzhangx",
]


def judged_by_django(password: str) -> dict[str, str]:
    """Which rules the server finds fulfilled."""
    user = User(email=EMAIL)
    verdicts = {}
    for validator in get_default_password_validators():
        try:
            validator.validate(password, user)
            verdicts[RULES[type(validator).__name__]] = "yes"
        except ValidationError:
            verdicts[RULES[type(validator).__name__]] = "no"
    return verdicts


def test_rules_tick_themselves_off_as_the_server_will_judge(new_context: ContextMaker) -> None:
    page = new_context().new_page()
    page.goto("/account/signup/")
    with page.expect_response("**/common-passwords.json"):
        page.fill("#id_email", EMAIL)
    page.fill("#id_password1", "qwertyuiop")
    expect(page.locator("[data-rule=common][data-met=no]")).to_be_visible()
    seen, wanted = {}, {}
    for password in PASSWORDS:
        page.fill("#id_password1", password)
        seen[password] = page.evaluate(SHOWN_VERDICTS)
        wanted[password] = judged_by_django(password)
    # What is too short is not in the browser's list of common ones, and is refused for its length.
    for password, verdicts in wanted.items():
        if verdicts["length"] == "no":
            verdicts["common"] = seen[password]["common"]
    assert seen == wanted
    page.fill("#id_password1", "")
    assert page.locator("[data-rule][data-met]").count() == 0


def test_a_password_can_be_seen_and_hidden_again(new_context: ContextMaker) -> None:
    page = new_context().new_page()
    page.goto("/account/login/")
    button, field = page.locator("[data-password-toggle]"), page.locator("#id_password")
    before = button.get_attribute("aria-label")
    button.click()
    assert (field.get_attribute("type"), button.get_attribute("aria-pressed")) == ("text", "true")
    assert button.get_attribute("aria-label") != before
    button.click()
    assert (field.get_attribute("type"), button.get_attribute("aria-label")) == ("password", before)


def test_colours_change_at_once_and_are_then_drawn_by_the_server(new_context: ContextMaker) -> None:
    context = new_context(color_scheme="light")
    page = context.new_page()
    page.goto("/docs/")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click(".footer button[value=dark]")
    page.wait_for_function(f"{ground} !== {light!r}")
    assert page.locator(".footer button[value=dark]").get_attribute("aria-pressed") == "true"
    assert 'data-theme="dark"' in context.request.get("/docs/").text()
    page.click(".footer button[value=system]")
    page.wait_for_function(f"{ground} === {light!r}")


@pytest.mark.parametrize("scripts", [True, False])
def test_switches_work_with_and_without_scripts(new_context: ContextMaker, scripts: bool) -> None:
    page = new_context(java_script_enabled=scripts).new_page()
    page.goto("/docs/errors?from=here")
    page.click(".footer button[value='zh-hans']")
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    assert page.url.endswith("/docs/errors?from=here")
    page.click(".footer button[value=dark]")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_the_account_menu_opens_and_closes_by_keyboard(page: Page) -> None:
    page.goto("/settings/")
    menu = page.locator(".topbar details.menu").last
    menu.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(menu.locator(".menu__list")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(menu.locator(".menu__list")).to_be_hidden()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    page.click("h1")
    expect(menu.locator(".menu__list")).to_be_hidden()


def make_key(page: Page, name: str) -> str:
    page.goto("/developers/")
    page.fill("#id_name", name)
    page.click("form[action='/developers/'] [type=submit]")
    return page.inner_text("#new-key")


def test_a_key_is_copied_shown_once_and_revoked_after_a_question(
    new_context: ContextMaker, account: Account
) -> None:
    context = new_context(storage_state=account.storage_state)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    key = make_key(page, "Copied")
    page.click("[data-copy='#new-key']")
    expect(page.locator("#toasts .alert")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == key
    page.reload()
    expect(page.locator(".messages .alert--warn")).to_be_visible()
    assert key not in page.content()
    row = page.locator("tbody tr").filter(has_text="Copied")
    row.locator("[data-dialog-open]").click()
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("Copied")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(row.locator("[data-dialog-open]")).to_be_focused()
    page.keyboard.press("Enter")
    dialog.locator("[type=submit]").click()
    expect(page.locator("tbody tr").filter(has_text="Copied")).to_have_count(0)


def test_a_key_is_revoked_without_scripts(new_context: ContextMaker, account: Account) -> None:
    page = new_context(storage_state=account.storage_state, java_script_enabled=False).new_page()
    make_key(page, "Scriptless")
    page.locator("tbody tr").filter(has_text="Scriptless").locator("a[href^='#revoke-']").click()
    page.locator("dialog:target [type=submit]").click()
    expect(page.locator("tbody tr").filter(has_text="Scriptless")).to_have_count(0)


@pytest.mark.parametrize("language", ["python", "node"])
def test_the_quick_start_speaks_as_it_stands(page: Page, tmp_path: Path, language: str) -> None:
    programs = {"python": sys.executable, "node": shutil.which("node")}
    program = programs[language]
    if program is None:
        pytest.skip("Node.js is not installed.")
    key = make_key(page, f"Quick start in {language}")
    page.click(f".tabs__tab input[value={language}]")
    code = page.inner_text(f"#example-{language}")
    assert key in code
    script = tmp_path / {"python": "speak.py", "node": "speak.mjs"}[language]
    script.write_text(code, encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "VOICEPOOL_API_KEY": key}
    subprocess.run([program, script], cwd=tmp_path, env=environment, check=True, timeout=120)
    assert_speech((tmp_path / "speech.wav").read_bytes(), at_least_s=1.0, at_most_s=12.0)
