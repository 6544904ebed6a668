"""The page of pronunciations: entries, versions, tables, and nothing lost or told to others."""

from __future__ import annotations

import logging

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import User, Workspace
from tests.cast import client_of
from tests.factories import make_job
from tests.pages.reading import text_of
from tts.models import PronunciationVersion, Voice
from tts.selectors.pronunciations import entries_of, newest_version
from tts.services.pronunciations import save_pronunciations
from tts.text.pronunciation import Entry

pytestmark = pytest.mark.django_db
PAGE = reverse("pronunciations")


def save(client: Client, word: str, replacement: str, version: int, before: str = "") -> int:
    fields = {"word": word, "replacement": replacement, "version": version, "before": before}
    return client.post(reverse("pronunciation_save"), fields).status_code


def words(workspace: Workspace) -> list[tuple[str, str]]:
    return [(entry.word, entry.replacement) for entry in entries_of(newest_version(workspace))]


def said_in(answer: object) -> str:
    """The page's text, without the space that a tag leaves before a colon."""
    return text_of(answer).replace(" :", ":")


def test_entries_are_added_changed_removed_and_brought_back(
    alice_client: Client, alice_workspace: Workspace
) -> None:
    assert save(alice_client, "重庆", "[chóng][qìng]", 0) == 302
    assert save(alice_client, "SQL", "sequel", 1) == 302
    assert save(alice_client, "SQL", "S Q L", 2, before="SQL") == 302
    assert words(alice_workspace) == [("SQL", "S Q L"), ("重庆", "[chóng][qìng]")]
    assert (
        alice_client.post(reverse("pronunciation_delete"), {"word": "重庆", "version": 3}).status_code == 302
    )
    page = alice_client.get(PAGE).content.decode()
    assert "removed: 重庆" in page
    assert "changed: SQL" in " ".join(page.split())
    restored = alice_client.post(reverse("pronunciation_restore", args=[2]), {"version": 4}, follow=True)
    assert "Version 2 is in force again" in restored.content.decode()
    assert words(alice_workspace) == [("SQL", "sequel"), ("重庆", "[chóng][qìng]")]
    assert newest_version(alice_workspace).number == 5  # type: ignore[union-attr]
    old = alice_client.get(PAGE, {"version": "1"}).content.decode()
    assert "This is version 1, as it was." in old
    assert "SQL" not in old.partition("versions-title")[0]


def test_a_mistake_is_marked_and_what_was_typed_stays(
    alice_client: Client, alice_workspace: Workspace
) -> None:
    save(alice_client, "a", "b", 0)
    fields = {"word": "好", "replacement": "很[hoa4]", "version": 1}
    answer = alice_client.post(reverse("pronunciation_save"), fields)
    page = answer.content.decode()
    assert answer.status_code == 400
    assert "很<mark>[hoa4]</mark>" in page
    assert "<code>[hao4]</code>" in page
    assert 'value="很[hoa4]"' in page
    assert words(alice_workspace) == [("a", "b")]


def test_what_another_page_saved_meanwhile_is_not_lost(
    alice_client: Client, alice_workspace: Workspace
) -> None:
    save(alice_client, "a", "b", 0)
    save(alice_client, "c", "d", 1)
    assert save(alice_client, "e", "f", 1) == 412
    assert alice_client.post(reverse("pronunciation_delete"), {"word": "a", "version": 1}).status_code == 412
    assert alice_client.post(reverse("pronunciation_restore", args=[1]), {"version": 1}).status_code == 412
    assert alice_client.post(reverse("pronunciation_delete"), {"word": "a"}).status_code == 412
    assert words(alice_workspace) == [("c", "d"), ("a", "b")]


def table(content: bytes, how: str = "add", version: int = 1) -> dict[str, object]:
    return {"table": SimpleUploadedFile("t.csv", content), "how": how, "version": version}


def test_a_table_goes_out_and_comes_back_as_it_was(alice_client: Client, alice_workspace: Workspace) -> None:
    entries = [Entry("-ism", "is him"), Entry("重庆", "[chóng][qìng]"), Entry('say "x"', "a, b")]
    save_pronunciations(workspace=alice_workspace, user=None, entries=entries, expected_number=0)
    content = alice_client.get(reverse("pronunciation_table")).content
    assert "'-ism" in content.decode()
    alice_client.post(reverse("pronunciation_delete"), {"word": "重庆", "version": 1})
    answer = alice_client.post(reverse("pronunciation_import"), table(content, "replace", 2))
    assert answer.status_code == 302
    assert entries_of(newest_version(alice_workspace)) == entries


def test_a_table_is_added_to_the_entries_in_whatever_encoding(
    alice_client: Client, alice_workspace: Workspace
) -> None:
    save(alice_client, "a", "b", 0)
    content = "重庆;[chóng][qìng]\r\na;c\r\n".encode("gb18030")
    assert alice_client.post(reverse("pronunciation_import"), table(content)).status_code == 302
    assert words(alice_workspace) == [("重庆", "[chóng][qìng]"), ("a", "c")]


@pytest.mark.parametrize(
    "content", [b"", b"one column\nonly", b"a,[hoa4]\n", b"a,b\na,c\n", bytes(3_000_000)]
)
def test_what_is_no_table_changes_nothing(
    content: bytes, alice_client: Client, alice_workspace: Workspace
) -> None:
    save(alice_client, "a", "b", 0)
    answer = alice_client.post(reverse("pronunciation_import"), table(content, "replace"))
    assert answer.status_code == 400
    assert "Nothing was changed." in answer.content.decode()
    assert words(alice_workspace) == [("a", "b")]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        # The header, empty lines and cells of several lines are lines of the file too.
        (b'word,replacement\n\n"two\nlines",b\nc,[hoa4]\nd,e\n', ["Line 5: c: [hoa4]"]),
        (b"a,b\r\nc,d\r\na,e\r\n", ["Line 3: a: a – this word is there twice"]),
        (b"a,b\rc,\r,d\r", ["Line 2: c:", "Line 3:"]),
        (b"a,b\n\none column\n", ["Line 3: This is no table"]),
        (b'a,b\nc,"' + b"x" * 200_000 + b'"\n', ["Line 2: This is no table"]),
    ],
    ids=["annotation", "twice", "old-line-ends", "one-column", "endless-cell"],
)
def test_a_fault_names_the_line_of_the_file(
    content: bytes, told: list[str], alice_client: Client, alice_workspace: Workspace
) -> None:
    save(alice_client, "before", "b", 0)
    answer = alice_client.post(reverse("pronunciation_import"), table(content))
    assert answer.status_code == 400
    shown = said_in(answer)
    assert [one for one in told if one not in shown] == []
    assert words(alice_workspace) == [("before", "b")]
    chinese = alice_client.post(
        reverse("pronunciation_import"), table(content), headers={"Accept-Language": "zh-hans"}
    )
    line = told[0].split(" ")[1].strip(":")
    assert f"第 {line} 行" in text_of(chinese)


def test_of_many_faults_ten_are_shown_and_the_others_counted(alice_client: Client) -> None:
    content = "".join(f"w{number},[hoa4]\n" for number in range(13)).encode()
    shown = said_in(alice_client.post(reverse("pronunciation_import"), table(content, version=0)))
    assert "Line 10: w9:" in shown
    assert "Line 11:" not in shown
    assert "3 more entries are at fault." in shown
    # What is typed came from no file.
    typed = alice_client.post(
        reverse("pronunciation_save"), {"word": "a", "replacement": "[hoa4]", "version": 0}
    )
    assert "a: [hoa4]" in said_in(typed)
    assert "Line " not in said_in(typed)


def test_a_word_is_heard_in_the_studio_without_standing_in_an_address(
    alice_client: Client, alice_workspace: Workspace, alice: User, alices_voice: Voice
) -> None:
    save(alice_client, "secretword", "x", 0)
    page = alice_client.get(PAGE).content.decode()
    assert 'name="text-0" value="secretword"' in page
    assert "secretword" not in "".join(
        page.split('href="')[1:][i].partition('"')[0] for i in range(page.count('href="'))
    )
    studio = alice_client.post(reverse("document_text"), {"chapter": "0", "text-0": "secretword"})
    assert "secretword</textarea>" in studio.content.decode()
    edit = alice_client.get(PAGE, {"edit": "0"}).content.decode()
    assert 'name="before" value="secretword"' in edit
    job = make_job(alice_workspace, alice, alices_voice, text="secretword")
    shown = alice_client.get(reverse("job", args=[job.pk])).content.decode()
    assert f"{PAGE}?version=1" in shown


def test_no_word_is_logged(
    alice_client: Client, alice_workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    save(alice_client, "secretword", "secretsaying", 0)
    save(alice_client, "secretword", "[hoa4]secretsaying", 1)
    assert [record.getMessage() for record in caplog.records if record.name.startswith("tts")]
    assert not [record for record in caplog.records if "secret" in str(vars(record))]


def test_others_have_their_own(alice_client: Client, charlie: User, alice_workspace: Workspace) -> None:
    save(alice_client, "secretword", "x", 0)
    save(alice_client, "another", "x", 1)
    charlies = client_of(charlie)
    assert "secretword" not in charlies.get(PAGE).content.decode()
    assert charlies.get(PAGE, {"version": "1"}).status_code == 404
    assert charlies.post(reverse("pronunciation_restore", args=[1]), {"version": 0}).status_code == 404
    assert (
        charlies.post(reverse("pronunciation_delete"), {"word": "secretword", "version": 0}).status_code
        == 302
    )
    assert PronunciationVersion.objects.count() == 2
    assert charlies.get(reverse("pronunciation_table")).content.decode().count("\n") == 1
