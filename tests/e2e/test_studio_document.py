"""A document in a real browser: from the file to the text that is spoken, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.documents.files import docx, epub, paragraph
from tests.e2e.conftest import Complaints, ContextMaker
from tests.e2e.journeys import Account, wait_for
from tests.e2e.reading import serious_findings
from tests.embedded.stack import Stack

WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 360, "height": 740}
BOOK = epub(
    ["<h1>第一章</h1><p>天黑了。</p>", "<h1>第二章</h1><p>有人敲门。</p>", "<h1>第三章</h1><p>没有人。</p>"]
)
ONE, TWO, THREE = "# 第一章\n\n天黑了。", "# 第二章\n\n有人敲门。", "# 第三章\n\n没有人。"
TYPED = "It was late."


def file(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


@pytest.fixture(params=[("en", WIDE), ("zh-hans", PHONE)], ids=["wide-english", "phone-chinese"])
def studio(request: pytest.FixtureRequest, new_context: ContextMaker, account: Account, stack: Stack) -> Page:
    language, viewport = request.param
    context = new_context(storage_state=account.storage_state, viewport=viewport)
    context.add_cookies(
        [{"name": "django_language", "value": language, "url": f"http://127.0.0.1:{stack.port}"}]
    )
    page = context.new_page()
    page.goto("/studio/")
    assert page.locator("html").get_attribute("lang") == language
    return page


def opened_by_keyboard(page: Page) -> None:
    page.locator("[data-dialog-open=document-dialog]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#document-dialog")).to_be_visible()


def chosen_numbers(page: Page) -> list[str]:
    return [
        str(box.get_attribute("value"))
        for box in page.locator("input[name=chapter]").all()
        if box.is_checked()
    ]


def test_chapters_are_chosen_by_keyboard_put_into_the_text_and_taken_back(studio: Page) -> None:
    field = studio.locator("textarea[name=text]")
    undo = studio.locator("[data-document-undo]")
    field.fill(TYPED)
    expect(undo).to_be_hidden()
    opened_by_keyboard(studio)
    assert serious_findings(studio) == []
    studio.set_input_files("#document-file", file("book.epub", BOOK))
    # What was found is told to who does not see it appear.
    expect(studio.locator(".chapters__title")).to_be_focused()
    assert chosen_numbers(studio) == ["0", "1", "2"]
    assert serious_findings(studio) == []
    assert studio.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")

    put = studio.locator("[data-put-text]")
    studio.locator("[data-choose=none]").press("Enter")
    expect(put).to_be_disabled()
    for number in ("0", "2"):
        studio.locator(f"input[name=chapter][value='{number}']").press("Space")
    expect(studio.locator("[data-chosen-sum]")).to_contain_text(str(len(ONE) + len(THREE) + 2))
    put.press("Enter")
    question = studio.locator("[data-question]")
    expect(question.locator("button").first).to_be_focused()
    assert serious_findings(studio) == []
    # The question is left without an answer, and asked again.
    question.locator("[data-question-close]").press("Enter")
    expect(question).to_be_hidden()
    expect(put).to_be_focused()
    expect(field).to_have_value(TYPED)
    put.press("Enter")
    question.locator("button[value=append]").press("Enter")

    expect(studio.locator("#document-dialog")).to_be_hidden()
    expect(field).to_be_focused()
    expect(field).to_have_value(f"{TYPED}\n\n{ONE}\n\n{THREE}")
    # The price follows as if it had been typed.
    expect(studio.locator("#quote .figures > div")).to_have_count(6)
    expect(undo).to_be_visible()
    undo.press("Enter")
    expect(field).to_have_value(TYPED)
    expect(undo).to_be_hidden()
    expect(field).to_be_focused()

    # Opened again, nothing of the earlier document is there.
    opened_by_keyboard(studio)
    expect(studio.locator(".chapters")).to_have_count(0)
    assert studio.locator("#document-file").input_value() == ""


def test_a_text_is_replaced_and_a_refusal_leaves_it_alone(studio: Page, complaints: Complaints) -> None:
    complaints.expected_statuses = {400}
    field = studio.locator("textarea[name=text]")
    field.fill(TYPED)
    opened_by_keyboard(studio)
    studio.set_input_files("#document-file", file("letter.docx", b"Sign in to read this letter."))
    expect(studio.locator("[data-document-found] .alert--bad")).to_be_focused()
    assert serious_findings(studio) == []
    expect(field).to_have_value(TYPED)
    studio.set_input_files("#document-file", file("letter.docx", docx(paragraph("有人敲门。"))))
    expect(studio.locator("[data-document-found] .alert--bad")).to_have_count(0)
    studio.locator("[data-put-text]").press("Enter")
    studio.locator("[data-question] button[value=replace]").press("Enter")
    expect(field).to_have_value("有人敲门。")


def test_a_file_is_dropped_on_the_text_and_words_are_not_taken_for_one(studio: Page) -> None:
    field = studio.locator("textarea[name=text]")
    dropped = """([selector, isFile]) => {
      const transfer = new DataTransfer();
      if (isFile) transfer.items.add(new File(["# One\\nWords."], "one.txt"));
      else transfer.setData("text/plain", "words");
      const event = new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
      document.querySelector(selector).dispatchEvent(event);
      return event.defaultPrevented;
    }"""
    assert studio.evaluate(dropped, [".editor__field", False]) is False
    expect(studio.locator("#document-dialog")).to_be_hidden()
    assert studio.evaluate(dropped, [".editor__field", True]) is True
    expect(studio.locator(".chapters__title")).to_be_focused()
    # Nothing was there before, so nothing is asked.
    studio.locator("[data-put-text]").press("Enter")
    expect(field).to_have_value("# One\n\nWords.")


def test_without_a_connection_the_dialog_says_so_and_another_try_works(
    studio: Page, complaints: Complaints, tmp_path: Path
) -> None:
    opened_by_keyboard(studio)
    studio.context.set_offline(True)
    studio.set_input_files("#document-file", file("book.epub", BOOK))
    failed = studio.locator("[data-document-failed]")
    expect(failed).to_be_visible()
    expect(studio.locator("[data-document-status]")).to_be_hidden()
    # The browser's own word for it.
    wait_for(studio, "!navigator.onLine")
    complaints.lines = [line for line in complaints.lines if "ERR_INTERNET_DISCONNECTED" not in line]
    studio.context.set_offline(False)
    studio.locator("#document-dialog form button[type=submit]").press("Enter")
    expect(studio.locator(".chapters__title")).to_be_focused()
    expect(failed).to_be_hidden()
