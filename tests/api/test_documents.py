"""Documents over the API: chapters as texts of jobs, and nothing kept."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import User, Workspace
from tests.api.problems import assert_problem
from tests.cast import Api, api_of
from tests.documents.files import epub
from tests.security.rows import rows_but_for
from tts.documents.limits import MAX_UPLOAD_BYTES

DOCUMENTS = "/api/v1/documents"
BOOK = epub(["<h1>One</h1><p>Hello.</p>", "<h1>第二章</h1><p>你好[breath]。</p>"])


def form(content: bytes, **fields: Any) -> dict[str, Any]:
    return {"file": SimpleUploadedFile("../secret.pdf", content, content_type="application/pdf"), **fields}


@pytest.fixture(autouse=True)
def _patience(settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "DOCUMENTS_PER_MINUTE": 1000}


def test_a_document_comes_back_as_texts(alice_api: Api) -> None:
    answer = alice_api.post(DOCUMENTS, form(BOOK))
    assert answer.status_code == 200
    assert answer.json() == {
        "title": "A book",
        "encoding": "",
        "characters": 13 + 11,
        "chapters": [
            {"title": "One", "characters": 13, "text": "# One\n\nHello."},
            {"title": "第二章", "characters": 11, "text": "# 第二章\n\n你好[breath]。"},
        ],
    }


def test_a_plain_text_says_its_encoding(alice_api: Api) -> None:
    body = alice_api.post(DOCUMENTS, form("你好，世界。".encode("gb18030"))).json()
    assert (body["encoding"], body["chapters"][0]["text"]) == ("GB18030", "你好，世界。")


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 400, "document_empty"),
        (b"%PDF-1.7", 400, "document_format_not_supported"),
        (b"PK\x03\x04", 400, "document_unreadable"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            400,
            "document_encrypted",
        ),
        (bytes(MAX_UPLOAD_BYTES + 1), 413, "document_too_large"),
        (b"word " * 400_100, 400, "document_too_long"),
        (b"...", 400, "document_no_text"),
    ],
)
def test_what_is_not_read_is_refused_with_its_code_and_changes_nothing(
    content: bytes, status: int, code: str, alice_api: Api, charlie: User, charlie_workspace: Workspace
) -> None:
    before = rows_but_for(charlie, charlie_workspace)
    problem = assert_problem(alice_api.post(DOCUMENTS, form(content)), status, code, field="file")
    assert "secret" not in str(problem)
    if code == "document_too_long":
        assert "2,000,499" in problem["detail"]
    after = rows_but_for(charlie, charlie_workspace)
    # The key's last use is written with every request.
    assert {name for name in after if after[name] != before[name]} <= {"accounts.ApiKey"}


def test_a_text_that_is_called_a_document_of_word_is_a_damaged_one(
    alice_api: Api, charlie: User, charlie_workspace: Workspace
) -> None:
    before = rows_but_for(charlie, charlie_workspace)
    file = SimpleUploadedFile("report.docx", b"Please sign in to download this file.")
    assert_problem(alice_api.post(DOCUMENTS, {"file": file}), 400, "document_unreadable", field="file")
    after = rows_but_for(charlie, charlie_workspace)
    assert {name for name in after if after[name] != before[name]} <= {"accounts.ApiKey"}


def test_a_file_has_to_be_there_and_alone(alice_api: Api) -> None:
    assert_problem(alice_api.post(DOCUMENTS, {}), 400, "invalid_input", field="file")
    assert_problem(
        alice_api.post(DOCUMENTS, form(BOOK, language="en")), 400, "invalid_input", field="language"
    )


def test_a_workspace_has_so_many_documents_a_minute_and_others_theirs(
    alice_api: Api, charlie: User, settings: LazySettings
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "DOCUMENTS_PER_MINUTE": 2}
    for _ in range(2):
        assert alice_api.post(DOCUMENTS, form(b"words")).status_code == 200
    refused = alice_api.post(DOCUMENTS, form(b"words"))
    assert_problem(refused, 429, "too_many_documents")
    assert refused["Retry-After"] == "60"
    assert api_of(charlie).post(DOCUMENTS, form(b"words")).status_code == 200
