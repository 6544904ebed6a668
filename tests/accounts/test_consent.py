"""The words of consent, and the record of who agreed to them."""

from __future__ import annotations

import hashlib
import uuid

import pytest

from accounts.consent_statements import CURRENT_VERSION, STATEMENTS, current_statement
from accounts.models import ConsentRecord, User, Workspace
from accounts.services.consent import record_consent

# Of every wording that was ever shown: a record quotes it, so it may never change. A new wording adds a line.
SHOWN = {
    ("1", "en"): "b78228a6c42176a9",
    ("1", "zh-hans"): "635ff6c373429a20",
}


def test_no_wording_that_was_ever_shown_has_changed() -> None:
    known = {
        (version, locale): hashlib.sha256(text.encode()).hexdigest()[:16]
        for version, texts in STATEMENTS.items()
        for locale, text in texts.items()
    }
    assert known == SHOWN


def test_today_there_is_a_wording_in_both_languages() -> None:
    assert set(STATEMENTS[CURRENT_VERSION]) == {"en", "zh-hans"}


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("en", "en"),
        ("zh-hans", "zh-hans"),
        ("zh-Hans", "zh-hans"),
        ("zh-CN", "zh-hans"),
        ("zh_Hans", "zh-hans"),
        ("fr", "en"),
        ("", "en"),
        (None, "en"),
    ],
)
def test_the_statement_is_shown_in_the_readers_language_or_in_english(asked: str | None, shown: str) -> None:
    statement = current_statement(asked)
    assert (statement.version, statement.locale) == (CURRENT_VERSION, shown)
    assert statement.text == STATEMENTS[CURRENT_VERSION][shown]


def test_a_record_keeps_the_exact_words_and_who_agreed(alice: User, alice_workspace: Workspace) -> None:
    voice_id = uuid.uuid4()
    record_consent(
        workspace=alice_workspace,
        user=alice,
        voice_id=voice_id,
        clip_sha256="c" * 64,
        locale="zh-hans",
        address="2001:db8::7",
    )
    record = ConsentRecord.objects.get(voice_id=voice_id)
    assert (record.workspace, record.user) == (alice_workspace, alice)
    assert (record.statement_version, record.statement_locale) == (CURRENT_VERSION, "zh-hans")
    assert record.statement_text == STATEMENTS[CURRENT_VERSION]["zh-hans"]
    assert (record.clip_sha256, record.address) == ("c" * 64, "2001:db8::7")
