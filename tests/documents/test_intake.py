"""The process that reads uploads: what it may not do, what it loads, and what its parent makes of its end."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from portal.lib import confinement
from portal.lib.confinement import ChildAnswer
from tests.documents.files import docx, epub, paragraph
from tts.documents import intake
from tts.documents.blocks import Document
from tts.documents.errors import (
    REFUSAL_BY_CODE,
    DocumentEmpty,
    DocumentEncrypted,
    DocumentFormatNotSupported,
    DocumentHasNoText,
    DocumentRefused,
    DocumentsNotRead,
    DocumentTooComplex,
    DocumentTooLarge,
    DocumentTooLong,
    DocumentUnreadable,
)
from tts.documents.limits import MAX_UPLOAD_BYTES
from tts.documents.refusal import Reason

ROOT = Path(__file__).resolve().parents[2]


def opened(content: bytes, name: str = "document") -> Document:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        file.seek(0)
        return intake.open_document(file, size_bytes=len(content), name=name)


def test_every_kind_is_read_by_the_locked_in_child():
    for content in (
        docx(paragraph("One", "1") + paragraph("你好。")),
        epub(["<h1>One</h1><p>你好。</p>"]),
        "# One\n你好。".encode(),
        "# One\n你好。".encode("gb18030"),
    ):
        assert [(chapter.title, chapter.body) for chapter in opened(content).chapters] == [("One", "你好。")]
    assert (
        opened("Il était une fois à l'été.".encode("cp1252")).chapters[0].body == "Il était une fois à l'été."
    )


def test_the_child_loads_no_django():
    done = subprocess.run(
        [
            sys.executable, "-s", "-c",
            "import sys, tts.documents.reading_child; print([m for m in ('django', 'numpy') if m in sys.modules])",
        ],
        cwd=ROOT, env=confinement.ENVIRONMENT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


def test_the_locked_in_child_gets_no_more_memory_and_no_file():
    code = """
import json, os
from portal.lib.confinement import lock_in
lock_in(parent_pid=os.getppid(), cpu_seconds=5, memory_bytes=64 * 1024 * 1024, output_bytes=1000)
def attempt(action):
    try:
        action()
    except BaseException as error:
        return type(error).__name__
    return "allowed"
print(json.dumps([attempt(lambda: open("/etc/hostname")), attempt(lambda: bytearray(100_000_000))]))
"""
    done = subprocess.run(
        [sys.executable, "-s", "-c", code],
        cwd=ROOT, env=confinement.ENVIRONMENT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == ["OSError", "MemoryError"]


def test_every_reason_has_words():
    assert set(REFUSAL_BY_CODE) == {reason.value for reason in Reason}
    for refusal in REFUSAL_BY_CODE.values():
        assert refusal().text()


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (b"", DocumentEmpty),
        (b"PK\x03\x04", DocumentUnreadable),
        (epub(["<div>" * 3000]), DocumentTooComplex),
        (b"word " * 400_100, DocumentTooLong),
    ],
)
def test_a_refusal_of_the_child_comes_back_with_its_code(content: bytes, refusal: type[DocumentRefused]):
    with pytest.raises(refusal):
        opened(content)


@pytest.mark.parametrize("name", ["book.docx", "BOOK.DOCX", "书.epub"])
def test_the_remains_of_an_archive_are_damaged_and_no_text(name: str):
    whole = docx(paragraph("你好。"))
    for remains in (
        b"Error 502: try again later.",
        b"# Title\nWords.",
        whole[4:],
        b"\xff\xfe\xff\x00\x81" * 40,
    ):
        with pytest.raises(DocumentUnreadable):
            opened(remains, name)


def test_a_name_takes_nothing_from_what_the_content_says():
    # A book under another program's name, a text under any, and more exact refusals.
    assert opened(epub(["<p>你好。</p>"]), "book.docx").chapters[0].body == "你好。"
    assert opened(docx(paragraph("你好。")), "book.txt").chapters[0].body == "你好。"
    assert opened("你好。".encode(), "docx").chapters[0].body == "你好。"
    for content, refusal in (
        (b"%PDF-1.7", DocumentFormatNotSupported),
        (docx(""), DocumentHasNoText),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), DocumentEncrypted),
    ):
        with pytest.raises(refusal):
            opened(content, "book.docx")


def test_a_file_that_is_too_large_is_not_looked_at():
    with pytest.raises(DocumentTooLarge):
        intake.open_document(io.BytesIO(), size_bytes=MAX_UPLOAD_BYTES + 1, name="")


def answer(content: bytes = b"", *, ready: bool = True, exit_status: int | None = 0) -> ChildAnswer:
    return ChildAnswer(ready=ready, exit_status=exit_status, content=content, complaint="", waited_ms=1)


@pytest.mark.parametrize(
    ("ended", "error"),
    [
        (answer(ready=False, exit_status=1), DocumentsNotRead),
        (answer(ready=False, exit_status=None), DocumentsNotRead),
        (answer(exit_status=None), DocumentTooComplex),
        (answer(exit_status=-9), DocumentTooComplex),
        (answer(exit_status=-11), DocumentUnreadable),
        (answer(b"not json"), DocumentUnreadable),
        (answer(b"[]"), DocumentUnreadable),
        (answer(b'{"code": "something_else"}'), DocumentUnreadable),
        (answer(b'{"title": "", "encoding": "", "chapters": []}'), DocumentUnreadable),
        (answer(b'{"title": 1, "encoding": "", "chapters": [["", "a"]]}'), DocumentUnreadable),
        (answer(b'{"title": "", "encoding": "", "chapters": [["", ["a"]]]}'), DocumentUnreadable),
    ],
)
def test_the_parent_believes_nothing_that_the_child_might_say(
    ended: ChildAnswer, error: type[Exception], monkeypatch: pytest.MonkeyPatch
):
    # The child is the one that was taken over: what it says is made up here.
    monkeypatch.setattr(intake, "ask_child", lambda *args, **named: ended)
    with pytest.raises(error):
        intake.open_document(io.BytesIO(b"x"), size_bytes=1, name="")


def test_nothing_of_a_document_is_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    opened(b"# Secret title\nThe secret words.")
    with pytest.raises(DocumentUnreadable):
        opened(b"PK\x03\x04 secret words")
    assert [record.getMessage() for record in caplog.records] == ["document_read", "document_refused"]
    assert not [record for record in caplog.records if "ecret" in str(vars(record))]


def test_no_process_is_left_behind():
    opened(b"words")
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
    assert not [command for command in commands if b"reading_child" in command]
