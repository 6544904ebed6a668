"""Replacing, using, deleting and submitting at the same moment: one comes after the other, and nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import transaction

from accounts.models import User, Workspace
from billing.models import CreditAccount, Hold
from billing.services import holds
from tests.billing.books import all_books, at_once
from tests.pool.conftest import Submit, make_device
from tests.pool.test_claims import wait_until_blocked
from tests.pool.voice_recordings import clone, everything, files, recording, replace
from tts.errors import VoiceNotFound
from tts.models import Segment, SynthesisJob, Voice, VoiceVersion
from tts.selectors.voice_versions import RECORDED
from tts.services.voice_versions import delete_version, use_version
from tts.services.voices import delete_voice
from tts.version_errors import VoiceChanged, VoiceVersionNeeded

__all__ = ["clone", "recording"]
TEXT = "Two boats are waiting for us."


def begin(pool: ThreadPoolExecutor, work: Callable[[int], object]) -> Future[list[object]]:
    return pool.submit(at_once, 1, work)


def test_two_replacements_at_once_are_two_versions(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes
) -> None:
    words = ["one", "two"]
    results = at_once(2, lambda n: replace(workspace, customer, clone, recording, transcript=words[n]))
    assert [type(result) for result in results] == [Voice, Voice]
    assert list(clone.versions.order_by("number").values_list("number", flat=True)) == [1, 2, 3]
    clone.refresh_from_db()
    assert (clone.version, clone.last_version) == (3, 3)
    newest = VoiceVersion.objects.get(voice=clone, number=3)
    assert [getattr(clone, name) for name in RECORDED] == [getattr(newest, name) for name in RECORDED]
    assert len(files()) == 3


def test_a_replacement_of_a_voice_that_is_deleted_meanwhile_leaves_nothing(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            delete_voice(workspace=workspace, user=customer, voice_id=clone.pk)
            waiting = begin(pool, lambda _: replace(workspace, customer, clone, recording))
            wait_until_blocked()
        (result,) = waiting.result()
    assert isinstance(result, VoiceNotFound)
    assert files() == []
    assert not VoiceVersion.objects.exists()


def test_a_deletion_takes_along_what_a_replacement_has_just_made(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            replace(workspace, customer, clone, recording)
            waiting = begin(
                pool, lambda _: delete_voice(workspace=workspace, user=customer, voice_id=clone.pk)
            )
            wait_until_blocked()
        assert waiting.result() == [None]
    assert files() == []
    assert not VoiceVersion.objects.exists()


def test_a_version_cannot_be_made_current_and_deleted_at_once(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes
) -> None:
    replace(workspace, customer, clone, recording)
    ids = {"workspace": workspace, "user": customer, "voice_id": clone.pk, "number": 1}
    acts: list[Callable[..., object]] = [use_version, delete_version]
    results = at_once(2, lambda n: acts[n](**ids))
    assert sum(isinstance(result, Exception) for result in results) == 1
    clone.refresh_from_db()
    current = VoiceVersion.objects.get(voice=clone, number=clone.version)
    assert [getattr(clone, name) for name in RECORDED] == [getattr(current, name) for name in RECORDED]
    assert len(files()) == VoiceVersion.objects.count()


def test_a_version_that_a_job_is_being_stored_with_stays(
    workspace: Workspace, customer: User, submit: Submit, clone: Voice, recording: bytes
) -> None:
    make_device()

    def replace_and_delete(_: int) -> None:
        replace(workspace, customer, clone, recording)
        delete_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            job = submit(TEXT, voice_id=clone.pk)
            waiting = begin(pool, replace_and_delete)
            wait_until_blocked()
        (result,) = waiting.result()
    assert isinstance(result, VoiceVersionNeeded)
    assert job.segments.get().voice_version == 1
    assert list(clone.versions.order_by("number").values_list("number", flat=True)) == [1, 2]
    assert len(files()) == 2


@pytest.mark.parametrize("whole", [False, True])
def test_a_job_whose_recording_goes_before_it_is_stored_is_refused_and_costs_nothing(
    workspace: Workspace, customer: User, submit: Submit, clone: Voice, recording: bytes, whole: bool
) -> None:
    make_device()
    money = all_books()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            # The job is quoted, and waits for the account; the recording is not kept waiting.
            holds.lock_account(workspace_id=workspace.pk)
            waiting = begin(pool, lambda _: submit(TEXT, voice_id=clone.pk))
            wait_until_blocked()
            with ThreadPoolExecutor(1) as other:

                def take_away(_: int) -> None:
                    if whole:
                        delete_voice(workspace=workspace, user=customer, voice_id=clone.pk)
                        return
                    replace(workspace, customer, clone, recording)
                    delete_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)

                assert begin(other, take_away).result() == [None]
            before = everything()
        (result,) = waiting.result()
    assert isinstance(result, VoiceChanged)
    assert (SynthesisJob.objects.count(), Segment.objects.count(), Hold.objects.count()) == (0, 0, 0)
    assert CreditAccount.objects.get(workspace_id=workspace.pk).held_micros == 0
    assert (all_books(), everything()) == (money, before)
