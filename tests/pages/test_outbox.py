"""The outbox page: what was mailed, for a browser on this machine and for nobody else."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.mail import EmailMessage, get_connection
from django.test import Client
from django.urls import reverse

from portal.outbox import SHOWN_MAILS, read_mails

ADDRESS = "/outbox/"


@pytest.fixture
def outbox(tmp_path: Path, settings: Any) -> Path:
    """The folder that mails are written to, as the embedded stack has it."""
    folder = tmp_path / "outbox"
    settings.VOICEPOOL = {**settings.VOICEPOOL, "OUTBOX": True}
    settings.EMAIL_FILE_PATH = folder
    return folder


def send(folder: Path, *subjects: str, body: str = "Open https://example.com/a?b=1&c=2 now.") -> None:
    """Mails through Django's own backend, in one file."""
    connection = get_connection("django.core.mail.backends.filebased.EmailBackend", file_path=folder)
    connection.send_messages(
        [EmailMessage(subject, body, "from@example.com", ["to@example.com"]) for subject in subjects]
    )


@pytest.mark.django_db
def test_mails_are_shown_with_links_that_can_be_opened(client: Client, outbox: Path) -> None:
    send(outbox, "欢迎使用声池", body="你好 <b>Wen</b>: https://example.com/a?b=1&c=2")
    page = client.get(ADDRESS, headers={"Host": "127.0.0.1:8000"}).content.decode()
    assert "<h2>欢迎使用声池</h2>" in page
    assert 'href="https://example.com/a?b=1&amp;c=2"' in page
    assert "你好 &lt;b&gt;Wen&lt;/b&gt;" in page
    assert "to@example.com" in page


@pytest.mark.django_db
def test_chinese_next_to_an_address_is_not_part_of_the_link(client: Client, outbox: Path) -> None:
    send(outbox, "验证", body="有人填写了 wen@example.com，因此发送。打开 https://example.com/a。再见")
    page = client.get(ADDRESS, headers={"Host": "127.0.0.1:8000"}).content.decode()
    assert (
        "有人填写了 wen@example.com，因此发送。打开 "
        '<a href="https://example.com/a">https://example.com/a</a>。再见</div>'
    ) in page
    assert "mailto:" not in page


@pytest.mark.django_db
def test_an_empty_outbox_says_so(client: Client, outbox: Path) -> None:
    response = client.get(ADDRESS, headers={"Host": "localhost:8000"})
    assert response.status_code == 200
    assert 'class="empty"' in response.content.decode()
    assert not outbox.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000", "voicepool.localhost"])
def test_a_browser_on_this_machine_may_read(client: Client, outbox: Path, address: str, host: str) -> None:
    assert client.get(ADDRESS, REMOTE_ADDR=address, headers={"Host": host}).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["192.168.1.7", "10.0.0.1", "8.8.8.8", "fe80::1", "::ffff:10.0.0.1", ""])
def test_another_machine_finds_nothing(client: Client, outbox: Path, address: str) -> None:
    send(outbox, "Secret")
    response = client.get(ADDRESS, REMOTE_ADDR=address, headers={"Host": "127.0.0.1"})
    assert response.status_code == 404
    assert "Secret" not in response.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-Ip", "X-Forwarded-Host", "Via"])
def test_what_comes_through_a_proxy_finds_nothing(client: Client, outbox: Path, header: str) -> None:
    response = client.get(ADDRESS, headers={"Host": "127.0.0.1", header: "127.0.0.1"})
    assert response.status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000"])
def test_a_page_elsewhere_whose_name_leads_here_finds_nothing(
    client: Client, outbox: Path, host: str
) -> None:
    assert client.get(ADDRESS, headers={"Host": host}).status_code == 404


@pytest.mark.django_db
def test_where_mail_is_really_sent_there_is_no_outbox(client: Client) -> None:
    assert client.get(ADDRESS, headers={"Host": "127.0.0.1"}).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["account_email_verification_sent", "account_reset_password_done"])
def test_pages_that_speak_of_mail_lead_to_it(client: Client, outbox: Path, name: str) -> None:
    link = f'href="{ADDRESS}"'
    assert link in client.get(reverse(name), headers={"Host": "127.0.0.1"}).content.decode()
    assert link not in client.get(reverse(name), headers={"Host": "voicepool.example"}).content.decode()


def test_the_newest_mail_comes_first(tmp_path: Path) -> None:
    for day, name in (
        (2, "20260102-000000-1.log"),
        (3, "20260103-000000-1.log"),
        (1, "20260101-000000-1.log"),
    ):
        date = f"Thu, 0{day} Jan 2026 08:00:00 -0000"
        (tmp_path / name).write_text(f"Subject: {day}\nTo: to@example.com\nDate: {date}\n\nText\n")
    mails = read_mails(tmp_path)
    assert [mail.subject for mail in mails] == ["3", "2", "1"]
    assert mails[0].sent_at == datetime(2026, 1, 3, 8, tzinfo=UTC)


def test_several_mails_of_one_file_are_told_apart(tmp_path: Path) -> None:
    send(tmp_path, "One", "Two", body="A line of dashes in a text:\n" + "-" * 78 + "\nand on.")
    mails = read_mails(tmp_path)
    assert sorted(mail.subject for mail in mails) == ["One", "Two"]
    assert all(mail.body.endswith("and on.") for mail in mails)


def test_a_mail_without_a_date_has_the_time_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "20260101-000000-1.log"
    path.write_bytes(b"Subject: Half")
    os.utime(path, (0, 1_700_000_000))
    [mail] = read_mails(tmp_path)
    assert (mail.subject, mail.body, mail.to) == ("Half", "", "")
    assert mail.sent_at == datetime.fromtimestamp(1_700_000_000, UTC)


def test_only_the_newest_are_read(tmp_path: Path) -> None:
    for number in range(SHOWN_MAILS + 5):
        (tmp_path / f"20260101-0000{number:02d}-1.log").write_text(f"Subject: {number}\n\nText\n")
    assert len(read_mails(tmp_path)) == SHOWN_MAILS
