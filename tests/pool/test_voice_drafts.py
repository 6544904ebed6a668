"""Voices that are heard before they are saved: room, races, money, and what is left of them."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction

from accounts.models import ConsentRecord, Membership, Role, User, Workspace
from portal.lib.clock import now
from tests.audio.clips import noise, speech, wav
from tests.billing.books import all_books, assert_books_agree, at_once
from tests.factories import make_user, make_voice
from tests.pool.conftest import Submit, make_device
from tests.pool.test_attempts import claim_next
from tests.pool.test_claims import wait_until_blocked
from tests.pool.test_voice_features import TEXT, StartCosyVoice, kept, start_cosyvoice
from tts import storage
from tts.audio.errors import ClipRejected
from tts.errors import StorageFull, TooManyVoices, VoiceNotFound
from tts.models import SynthesisJob, Voice
from tts.selectors.voice_drafts import draft_by
from tts.selectors.voices import voice_count
from tts.services.attempts import finish_attempt
from tts.services.stored import BYTES_PER_MS, stored_bytes
from tts.services.submit import Submission
from tts.services.voice_drafts import delete_expired_drafts, discard_draft, save_draft, speak_test
from tts.services.voices import create_voice
from tts.speaking import Speaking, VoiceGone
from tts.states import JobState, VoiceState
from tts.text.errors import SentenceTooLong, TextEmpty

__all__ = ["start_cosyvoice"]


@pytest.fixture(scope="module")
def recording() -> bytes:
    return wav(speech(4.0))


@pytest.fixture
def draft(workspace: Workspace, customer: User) -> Voice:
    return make_voice(workspace, customer, name="Heard first", state=VoiceState.DRAFT)


@pytest.fixture
def colleague(workspace: Workspace) -> User:
    other = make_user("pool-colleague")
    Membership.objects.create(workspace=workspace, user=other, role=Role.MEMBER)
    return other


def record(workspace: Workspace, user: User, content: bytes, **changes: Any) -> Voice:
    return create_voice(
        workspace=workspace,
        user=user,
        upload=SimpleUploadedFile("recording.wav", content, "audio/wav"),
        **{
            "name": "Another",
            "language": "en",
            "transcript": "",
            "consent": True,
            "locale": "en",
            "address": None,
            "as_draft": True,
            **changes,
        },
    )


def speak(workspace: Workspace, user: User, draft: Voice, *, text: str = TEXT) -> Submission:
    return speak_test(
        workspace=workspace,
        user=user,
        voice_id=draft.pk,
        text=text,
        token=uuid.UUID(int=1),
        client_address=None,
        request_id="test",
    )


def voices() -> list[tuple[Any, ...]]:
    return list(Voice.objects.order_by("pk").values_list())


def full(workspace: Workspace) -> None:
    """As many voices as there are, and no more."""
    Workspace.objects.filter(pk=workspace.pk).update(voices_limit=voice_count(workspace))
    workspace.refresh_from_db()


def test_a_draft_takes_no_place_until_it_is_saved(
    workspace: Workspace, customer: User, recording: bytes
) -> None:
    full(workspace)
    draft = record(workspace, customer, recording)
    assert (draft.state, voice_count(workspace)) == (VoiceState.DRAFT, 0)
    before = voices()
    with pytest.raises(TooManyVoices):
        save_draft(workspace=workspace, user=customer, voice_id=draft.pk)
    assert voices() == before
    Workspace.objects.filter(pk=workspace.pk).update(voices_limit=1)
    workspace.refresh_from_db()
    saved = save_draft(workspace=workspace, user=customer, voice_id=draft.pk)
    assert (saved.state, voice_count(workspace)) == (VoiceState.READY, 1)
    # Pressed twice: it is saved once, and nothing is refused for want of room.
    assert save_draft(workspace=workspace, user=customer, voice_id=draft.pk).created_at == saved.created_at
    with pytest.raises(TooManyVoices):
        record(workspace, customer, recording, as_draft=False)


def test_of_two_that_are_saved_at_once_for_one_place_one_stays_a_draft(
    workspace: Workspace, customer: User, colleague: User, draft: Voice
) -> None:
    other = make_voice(workspace, colleague, name="The other", state=VoiceState.DRAFT)
    Workspace.objects.filter(pk=workspace.pk).update(voices_limit=1)
    workspace.refresh_from_db()

    def save_the_other(_: int) -> Voice:
        return save_draft(workspace=workspace, user=colleague, voice_id=other.pk)

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            save_draft(workspace=workspace, user=customer, voice_id=draft.pk)
            # Begun before the first has committed: it waits, and sees what the first has made of the one place.
            second = pool.submit(at_once, 1, save_the_other)
            wait_until_blocked()
        results = second.result()
    assert [type(result) for result in results] == [TooManyVoices]
    assert dict(Voice.objects.filter(workspace=workspace).values_list("pk", "state")) == {
        draft.pk: VoiceState.READY,
        other.pk: VoiceState.DRAFT,
    }


def test_one_that_is_saved_many_times_at_once_is_one_voice(
    workspace: Workspace, customer: User, draft: Voice
) -> None:
    Workspace.objects.filter(pk=workspace.pk).update(voices_limit=1)
    workspace.refresh_from_db()
    results = at_once(4, lambda _: save_draft(workspace=workspace, user=customer, voice_id=draft.pk))
    assert {result.pk for result in results if isinstance(result, Voice)} == {draft.pk}
    assert not [result for result in results if isinstance(result, Exception)]
    assert voice_count(workspace) == 1


def test_saved_and_discarded_at_once_it_is_one_of_both(
    workspace: Workspace, customer: User, draft: Voice
) -> None:
    acts = [save_draft, discard_draft]
    results = at_once(2, lambda number: acts[number](workspace=workspace, user=customer, voice_id=draft.pk))
    draft.refresh_from_db()
    refused = [result for result in results if isinstance(result, Exception)]
    assert [type(error) for error in refused] == [VoiceNotFound]
    is_saved = isinstance(results[0], Voice)
    assert draft.state == (VoiceState.READY if is_saved else VoiceState.DELETED)
    key = storage.voice_clip_key(workspace_id=workspace.pk, voice_id=draft.pk)
    assert storage.exists(key) == is_saved


def test_a_new_draft_takes_the_place_of_the_former(
    workspace: Workspace, customer: User, colleague: User, draft: Voice, recording: bytes
) -> None:
    others = make_voice(workspace, colleague, state=VoiceState.DRAFT)
    newer = record(workspace, customer, recording)
    former = Voice.objects.get(pk=draft.pk)
    assert (former.state, former.clip_key, former.quality) == (VoiceState.DELETED, "", None)
    assert not storage.exists(draft.clip_key)
    assert storage.exists(newer.clip_key)
    assert draft_by(workspace, customer) == newer
    assert draft_by(workspace, colleague) == others
    # What was agreed to stays, for both.
    assert set(ConsentRecord.objects.values_list("voice_id", flat=True)) >= {draft.pk, newer.pk}


def test_a_recording_that_is_refused_leaves_the_former_draft(
    workspace: Workspace, customer: User, draft: Voice
) -> None:
    before, consents = voices(), ConsentRecord.objects.count()
    with pytest.raises(ClipRejected):
        record(workspace, customer, wav(noise(4.0, rms=0.0)))
    assert (voices(), ConsentRecord.objects.count()) == (before, consents)
    assert storage.exists(draft.clip_key)


def test_of_drafts_that_are_made_at_once_one_is_left(
    workspace: Workspace, customer: User, recording: bytes
) -> None:
    results = at_once(3, lambda _: record(workspace, customer, recording))
    assert not [result for result in results if isinstance(result, Exception)]
    left = Voice.objects.get(workspace=workspace, state=VoiceState.DRAFT)
    made = [result for result in results if isinstance(result, Voice)]
    assert {voice.pk for voice in made if storage.exists(voice.clip_key)} == {left.pk}


def test_a_draft_counts_for_what_is_stored(
    workspace: Workspace, customer: User, draft: Voice, recording: bytes
) -> None:
    assert stored_bytes(workspace.pk) == draft.clip_ms * BYTES_PER_MS
    Workspace.objects.filter(pk=workspace.pk).update(storage_bytes_limit=(draft.clip_ms + 100) * BYTES_PER_MS)
    workspace.refresh_from_db()
    before = voices()
    with pytest.raises(StorageFull):
        record(workspace, customer, recording, as_draft=False)
    assert voices() == before
    # In its place there is room for another.
    assert record(workspace, customer, recording).state == VoiceState.DRAFT


def test_its_test_is_a_job_that_is_charged_and_its_features_go_with_it(
    start_cosyvoice: StartCosyVoice, workspace: Workspace, customer: User, draft: Voice
) -> None:
    process = start_cosyvoice()
    make_device()
    job = speak(workspace, customer, draft).job
    speaking = Speaking(claim_next(), process, wanted=lambda: False, on_sent=lambda: None)
    speaking.speak()
    finish_attempt(work=speaking.work, outcome=speaking.outcome(speaking.gpu_ms))
    job.refresh_from_db()
    assert (job.state, job.charged_micros > 0) == (JobState.SUCCEEDED, True)
    assert_books_agree(workspace.pk)
    assert len(kept(draft)) == 1
    books = all_books()
    discard_draft(workspace=workspace, user=customer, voice_id=draft.pk)
    assert kept(draft) == []
    assert not storage.exists(draft.clip_key)
    job.refresh_from_db()
    assert storage.exists(job.audio_key)
    assert all_books() == books


def test_a_test_that_waits_ends_with_its_draft_as_with_a_voice(
    start_cosyvoice: StartCosyVoice, workspace: Workspace, customer: User, draft: Voice
) -> None:
    process = start_cosyvoice()
    make_device()
    speak(workspace, customer, draft)
    discard_draft(workspace=workspace, user=customer, voice_id=draft.pk)
    speaking = Speaking(claim_next(), process, wanted=lambda: False, on_sent=lambda: None)
    with pytest.raises(VoiceGone):
        speaking.speak()


def test_a_test_pressed_twice_is_one_job(workspace: Workspace, customer: User, draft: Voice) -> None:
    first, second = (speak(workspace, customer, draft) for _ in range(2))
    assert (first.job.pk, first.created, second.created) == (second.job.pk, True, False)
    another = speak(workspace, customer, draft, text="Another sentence.")
    assert another.created
    assert SynthesisJob.objects.count() == 2
    assert_books_agree(workspace.pk)


@pytest.mark.parametrize(("text", "refusal"), [("x" * 101, SentenceTooLong), ("  ", TextEmpty)])
def test_what_is_no_short_sentence_is_refused(
    text: str, refusal: type[Exception], workspace: Workspace, customer: User, draft: Voice
) -> None:
    books = all_books()
    with pytest.raises(refusal):
        speak(workspace, customer, draft, text=text)
    assert (all_books(), SynthesisJob.objects.count()) == (books, 0)
    speak(workspace, customer, draft, text="今" * 100)


def test_nobody_else_speaks_with_it_and_nothing_else_does(
    workspace: Workspace, customer: User, colleague: User, draft: Voice, submit: Submit
) -> None:
    books = all_books()
    with pytest.raises(VoiceNotFound):
        speak(workspace, colleague, draft)
    with pytest.raises(VoiceNotFound):
        submit(TEXT, voice_id=draft.pk)
    with pytest.raises(VoiceNotFound):
        submit(TEXT, mode="script", cast={"Alice": draft.pk})
    for act in (save_draft, discard_draft):
        with pytest.raises(VoiceNotFound):
            act(workspace=workspace, user=colleague, voice_id=draft.pk)
    assert (all_books(), SynthesisJob.objects.count()) == (books, 0)
    saved = save_draft(workspace=workspace, user=customer, voice_id=draft.pk)
    # Saved, it speaks as all do; the test is over, and so is its discarding.
    submit(TEXT, voice_id=saved.pk)
    with pytest.raises(VoiceNotFound):
        speak(workspace, customer, draft)
    with pytest.raises(VoiceNotFound):
        discard_draft(workspace=workspace, user=customer, voice_id=draft.pk)
    assert storage.exists(saved.clip_key)


def test_the_clock_deletes_what_was_not_saved_for_a_day(
    workspace: Workspace, customer: User, colleague: User, draft: Voice
) -> None:
    young = make_voice(workspace, colleague, state=VoiceState.DRAFT)
    ready = make_voice(workspace, customer)
    day = timedelta(hours=24)
    Voice.objects.filter(pk__in=[draft.pk, ready.pk]).update(created_at=now() - day - timedelta(seconds=1))
    Voice.objects.filter(pk=young.pk).update(created_at=now() - day + timedelta(minutes=5))
    assert (delete_expired_drafts(), delete_expired_drafts()) == (1, 0)
    assert dict(Voice.objects.filter(workspace=workspace).values_list("pk", "state")) == {
        draft.pk: VoiceState.DELETED,
        young.pk: VoiceState.DRAFT,
        ready.pk: VoiceState.READY,
    }
    assert not storage.exists(draft.clip_key)
    assert storage.exists(young.clip_key)
    assert ConsentRecord.objects.filter(voice_id=draft.pk).exists()
    with pytest.raises(VoiceNotFound):
        save_draft(workspace=workspace, user=customer, voice_id=draft.pk)
