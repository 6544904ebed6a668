"""The API reference in a real browser: it is drawn from our own files, and nothing breaks the security policy."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.api.contract import openapi
from tests.e2e.conftest import ContextMaker
from tests.embedded.stack import Stack


def test_the_reference_shows_every_operation_without_help_from_elsewhere(
    new_context: ContextMaker, stack: Stack
) -> None:
    page = new_context().new_page()
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
    page.goto("/api/v1/docs")
    operations = sum(len(methods) for methods in openapi()["paths"].values())
    expect(page.locator(".opblock")).to_have_count(operations)
    page.locator("#operations-jobs-jobs_create .opblock-summary-control").click()
    expect(page.locator("#operations-jobs-jobs_create")).to_contain_text("insufficient_credit")
    assert asked == {f"127.0.0.1:{stack.port}"}
