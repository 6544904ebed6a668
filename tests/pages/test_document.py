"""A document for the Studio: the page, the part that scripts ask for, and the way without scripts."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.documents.files import epub
from tts.models import SynthesisJob
from tts.text.limits import MAX_LONG_JOB_CHARACTERS

pytestmark = pytest.mark.django_db
PART = {"X-Part": "document"}
BOOK = epub(
    ["<h1>One &amp; only</h1><p>Hello &lt;b&gt;.</p>", "<h1>Two</h1><p>World.</p>"], title="The &lt;book&gt;"
)


@pytest.fixture(autouse=True)
def _patience(settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "DOCUMENTS_PER_MINUTE": 1000}


def upload(content: bytes) -> dict[str, object]:
    return {"document": SimpleUploadedFile("secret-name", content)}


def texts_of(page: str) -> dict[str, str]:
    found = re.findall(r'<textarea name="text-(\d+)" hidden readonly>\n(.*?)</textarea>', page, re.DOTALL)
    return {number: unescape(text) for number, text in found}


def test_the_studio_leads_to_a_page_that_works_without_scripts(alice_client: Client) -> None:
    studio = alice_client.get(reverse("studio")).content.decode()
    assert f'href="{reverse("document")}"' in studio
    assert 'id="document-dialog"' in studio
    page = alice_client.get(reverse("document")).content.decode()
    assert 'enctype="multipart/form-data"' in page
    assert "txt, md, docx, epub, at most 10 MiB" in page


def test_chapters_are_chosen_and_put_into_the_text(alice_client: Client) -> None:
    page = alice_client.post(reverse("document"), upload(BOOK)).content.decode()
    assert "The &lt;book&gt;</h2>" in page
    assert "One &amp; only" in page
    assert "secret-name" not in page
    texts = texts_of(page)
    assert texts == {"0": "# One & only\n\nHello <b>.", "1": "# Two\n\nWorld."}
    fields = {f"text-{number}": text for number, text in texts.items()}
    both = alice_client.post(reverse("document_text"), {**fields, "chapter": ["0", "1"]}).content.decode()
    assert "# One &amp; only\n\nHello &lt;b&gt;.\n\n# Two\n\nWorld.</textarea>" in both
    one = alice_client.post(reverse("document_text"), {**fields, "chapter": ["1"]}).content.decode()
    assert "# Two\n\nWorld.</textarea>" in one
    assert "One &amp; only" not in one
    none = alice_client.post(reverse("document_text"), fields)
    assert (none.status_code, none["Location"]) == (302, reverse("document"))
    assert not SynthesisJob.objects.exists()


def test_scripts_get_the_part_alone(alice_client: Client) -> None:
    answer = alice_client.post(reverse("document"), upload(BOOK), headers=PART)
    assert answer["X-Part"] == "document"
    part = answer.content.decode()
    assert "<html" not in part
    assert part.count("checked") == 2


def test_a_refusal_says_what_to_do_on_the_page_and_in_the_part(alice_client: Client) -> None:
    for headers in ({}, PART):
        answer = alice_client.post(reverse("document"), upload(b"%PDF-1.7"), headers=headers)
        assert answer.status_code == 400
        assert "Save it as one of these and upload that: txt, md, docx, epub." in answer.content.decode()
    chinese = alice_client.post(reverse("document"), {}, headers={**PART, "Accept-Language": "zh-CN"})
    assert (chinese.status_code, "文件是空的" in chinese.content.decode()) == (400, True)


def test_of_a_long_document_as_many_chapters_are_chosen_as_one_job_takes(alice_client: Client) -> None:
    chapter = "x" * (MAX_LONG_JOB_CHARACTERS // 2 - 20)
    long = "".join(f"# {number}\n{chapter}\n" for number in range(4)).encode()
    page = alice_client.post(reverse("document"), upload(long), headers=PART).content.decode()
    assert re.findall(r'value="(\d)" data-characters="\d+" checked', page) == ["0", "1"]
    assert "One job takes at most" in page
    assert len(texts_of(page)) == 4


def test_a_page_without_scripts_carries_what_the_server_takes_back(alice_client: Client) -> None:
    chapter = "长" * 180_000
    long = "".join(f"# {number}\n{chapter}\n" for number in range(5)).encode()
    page = alice_client.post(reverse("document"), upload(long)).content.decode()
    carried = texts_of(page)
    assert list(carried) == ["0", "1"]
    assert "Divide the document to get at the others" in page
    fields = {f"text-{number}": text for number, text in carried.items()}
    studio = alice_client.post(reverse("document_text"), {**fields, "chapter": ["0"]})
    assert studio.status_code == 200
    assert chapter in studio.content.decode()
    part = alice_client.post(reverse("document"), upload(long), headers=PART).content.decode()
    assert len(texts_of(part)) == 5
