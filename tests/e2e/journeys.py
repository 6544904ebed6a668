"""What customers do, step by step, as several tests need it. Bound to structure, not to words: words get translated."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

PASSWORD = "correct horse battery staple"
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Account:
    email: str
    storage_state: Any


def wait_for(page: Page, condition: str) -> None:
    """Wait until this JavaScript expression is true. Playwright's own way needs eval, which our policy forbids."""
    deadline = time.monotonic() + PATIENCE_S
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"never came true: {condition}"
        page.wait_for_timeout(50)


def sign_up(page: Page, *, email: str) -> Account:
    """Sign up, read the mail in the outbox, confirm the address; ends signed in, in the studio."""
    page.goto("/account/signup/")
    page.fill("input[type=email]", email)
    page.fill("input[type=password]", PASSWORD)
    page.click("form[action='/account/signup/'] button[type=submit]")
    # The page after sign-up says where the mail is.
    page.click("main a[href*='/outbox/']")
    mail = page.locator("main li.card").filter(has_text=email).first
    link = mail.locator("a[href*='confirm-email']")
    page.goto(str(link.get_attribute("href")))
    page.click("main form button[type=submit]")
    page.wait_for_url("**/studio/**")
    return Account(email=email, storage_state=page.context.storage_state())


def upload_voice(page: Page, clip: Path, *, name: str) -> str:
    """Clone a voice from a file; returns the voice's path, whose page is open then."""
    page.goto("/voices/new/")
    page.fill("input[name=name]", name)
    page.set_input_files("input[name=clip]", clip)
    page.check("input[name=consent]")
    page.click("#save-voice")
    page.wait_for_url(re.compile(r"/voices/[0-9a-f-]{36}/"))
    return re.sub(r"\?.*", "", page.url)


def speak(page: Page, text: str, *, voice_path: str = "") -> str:
    """Type, read the price, press Speak, and wait until it is spoken; returns the audio's path."""
    voice_id = re.search(r"[0-9a-f-]{36}", voice_path)
    page.goto(f"/studio/?voice={voice_id[0]}" if voice_id else "/studio/")
    page.fill("textarea[name=text]", text)
    expect(page.locator("#quote .figures")).to_be_visible()
    page.click("[data-submit]")
    page.wait_for_url("**/studio/?job=**")
    return wait_until_spoken(page)


def wait_until_spoken(page: Page) -> str:
    """Wait for the live part to show the end, and return the path of the audio in its player."""
    expect(page.locator("[data-live-state=succeeded]")).to_be_visible()
    source = page.locator("[data-live] [data-player] audio").get_attribute("src")
    assert source
    return source


def fetch(page: Page, path: str) -> bytes:
    """The file at `path`, with this browser's session."""
    response = page.context.request.get(path)
    assert response.status == 200
    assert response.headers["content-type"] == "audio/wav"
    return response.body()
