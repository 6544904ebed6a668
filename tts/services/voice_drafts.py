"""Hearing a voice before it is saved: its draft speaks a test sentence, an ordinary job, and is saved or discarded."""

from __future__ import annotations

import contextlib
import logging
import uuid
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from accounts.models import User, Workspace
from tts.errors import VoiceNotFound
from tts.models import Voice
from tts.selectors.voice_drafts import draft_of, former_draft_of
from tts.services.quotes import Quote
from tts.services.submit import JobRequest, Submission, quote_request, submit_job
from tts.services.voices import check_room, erase_voice, lock_voices
from tts.states import VoiceState
from tts.text.errors import SentenceTooLong
from tts.text.limits import MAX_TEST_CHARACTERS

logger = logging.getLogger(__name__)
KEPT: Final = timedelta(hours=24)
DELETED_AT_ONCE: Final = 200


def kept_until(draft: Voice) -> datetime:
    """When the clock deletes it."""
    return draft.created_at + KEPT


def quote_test(*, workspace: Workspace, user: User, voice_id: uuid.UUID, text: str) -> Quote:
    """What the draft's test of this sentence would cost. Stores nothing.

    Raises VoiceNotFound, SentenceTooLong, and as tts.services.submit.quote_request.
    """
    draft = draft_of(workspace, user, voice_id)
    return quote_request(workspace=workspace, user=user, request=_test(draft, text), draft=draft)


def speak_test(
    *,
    workspace: Workspace,
    user: User,
    voice_id: uuid.UUID,
    text: str,
    token: uuid.UUID,
    client_address: str | None,
    request_id: str,
) -> Submission:
    """Have the draft say a sentence: a job like any other, held for and charged. The same token and sentence: one job.

    Raises VoiceNotFound, SentenceTooLong, and as tts.services.submit.submit_job. Nothing was changed then.
    """
    draft = draft_of(workspace, user, voice_id)
    request = _test(draft, text)
    return submit_job(
        workspace=workspace,
        user=user,
        api_key=None,
        request=request,
        idempotency_key=f"draft:{token}:{request.fingerprint()}",
        client_address=client_address,
        request_id=request_id,
        draft=draft,
    )


def _test(draft: Voice, text: str) -> JobRequest:
    characters = len(text.strip())
    if characters > MAX_TEST_CHARACTERS:
        raise SentenceTooLong(characters=characters, limit=MAX_TEST_CHARACTERS)
    return JobRequest(voice_id=draft.pk, text=text)


def save_draft(*, workspace: Workspace, user: User, voice_id: uuid.UUID) -> Voice:
    """Make the draft a voice of the workspace, as the form said who may use it. Saved already: nothing happens.

    Raises VoiceNotFound; TooManyVoices, and it stays a draft.
    """
    with transaction.atomic():
        lock_voices(workspace)
        try:
            voice = draft_of(workspace, user, voice_id)
        except VoiceNotFound:
            voice = former_draft_of(workspace, user, voice_id)
            if voice.state != VoiceState.READY:
                raise
            return voice
        check_room(workspace)
        saved = Voice.objects.filter(pk=voice.pk, state=VoiceState.DRAFT).update(
            state=VoiceState.READY, created_at=Now()
        )
        if not saved:
            # The clock does not wait for the workspace's lock.
            raise VoiceNotFound
    voice.refresh_from_db()
    logger.info("voice_created", extra={"voice_id": voice.pk, "clip_ms": voice.clip_ms})
    return voice


def discard_draft(*, workspace: Workspace, user: User, voice_id: uuid.UUID) -> Voice:
    """Delete the draft as a voice is deleted, and return what it was. Deleted already: nothing happens.

    Raises VoiceNotFound, also for a voice that was saved: that is deleted by its own page.
    """
    with contextlib.suppress(VoiceNotFound):
        draft = draft_of(workspace, user, voice_id)
        if erase_voice(draft):
            logger.info("voice_draft_discarded", extra={"voice_id": draft.pk})
            return draft
    former = former_draft_of(workspace, user, voice_id)
    if former.state != VoiceState.DELETED:
        raise VoiceNotFound
    return former


def delete_expired_drafts() -> int:
    """Delete drafts that were neither saved nor discarded for a day, as their makers would; returns how many.

    For the clock, once a minute.
    """
    over = Voice.objects.filter(state=VoiceState.DRAFT, created_at__lt=Now() - KEPT).order_by("created_at")
    deleted = sum(erase_voice(draft) for draft in list(over[:DELETED_AT_ONCE]))
    if deleted:
        logger.info("voice_drafts_expired", extra={"voices": deleted})
    return deleted
