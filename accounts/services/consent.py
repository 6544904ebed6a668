"""Keeping what somebody agreed to."""

from __future__ import annotations

import uuid

from accounts.consent_statements import current_statement
from accounts.models import ConsentRecord, User, Workspace


def record_consent(
    *,
    workspace: Workspace,
    user: User,
    voice_id: uuid.UUID,
    clip_sha256: str,
    locale: str | None,
    address: str | None,
    spoken_sha256: str = "",
) -> ConsentRecord:
    """Store that `user` agreed to today's statement, in the words that `locale` showed.

    `spoken_sha256` is of the recording of the spoken consent, empty where there is none.

    Call in the transaction that makes the voice: there is no voice without consent and no consent without voice.
    """
    statement = current_statement(locale)
    return ConsentRecord.objects.create(
        workspace=workspace,
        user=user,
        voice_id=voice_id,
        statement_version=statement.version,
        statement_locale=statement.locale,
        statement_text=statement.text,
        clip_sha256=clip_sha256,
        spoken_sha256=spoken_sha256,
        address=address,
    )
