"""Recordings that outlived their row, as whoever deleted it died.

Within these tests' transaction nothing runs that waits for a commit.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from accounts.models import User, Workspace
from tests.factories import make_user, make_voice, personal_workspace
from tests.pool.voice_recordings import clone, files, recording, replace
from tts import storage
from tts.models import Voice, VoiceVersion
from tts.services.left_recordings import remove_left_recordings
from tts.services.sweep import sweep_thoroughly
from tts.services.voice_versions import delete_version, use_version
from tts.services.voices import delete_voice

__all__ = ["clone", "recording"]


@pytest.fixture
def customer(db: None) -> User:
    return make_user("speaker")


@pytest.fixture
def workspace(customer: User) -> Workspace:
    return personal_workspace(customer)


def names_of(*keys: str) -> set[Path]:
    return {Path(settings.MEDIA_ROOT, key) for key in keys if key}


def test_nothing_of_a_deleted_voice_stays(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes
) -> None:
    replace(workspace, customer, clone, recording)
    other = make_voice(workspace, customer)
    folder = storage.voice_folder(workspace_id=workspace.pk, voice_id=clone.pk)
    storage.save(storage.spoken_consent_key(workspace_id=workspace.pk, voice_id=clone.pk), b"spoken")
    storage.save(
        storage.voice_features_key(workspace_id=workspace.pk, voice_id=clone.pk, computed_by="an engine"),
        b"features",
    )
    before = set(files())
    assert remove_left_recordings() == 0
    assert set(files()) == before
    delete_voice(workspace=workspace, user=customer, voice_id=clone.pk)
    assert storage.is_filled(folder)
    assert sweep_thoroughly() == {"recordings_removed": 1}
    assert not Path(settings.MEDIA_ROOT, folder).exists()
    assert set(files()) == names_of(other.clip_key)
    assert remove_left_recordings() == 0


@pytest.mark.parametrize("deleted", [1, 2])
def test_nothing_of_a_deleted_version_stays(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes, deleted: int
) -> None:
    """The first version's files lie in the voice's own folder, the others' in one each."""
    replace(workspace, customer, clone, recording)
    if deleted == 2:
        use_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)
    before = set(files())
    gone = VoiceVersion.objects.get(voice=clone, number=deleted)
    delete_version(workspace=workspace, user=customer, voice_id=clone.pk, number=deleted)
    assert set(files()) == before
    assert remove_left_recordings() == 1
    assert set(files()) == before - names_of(gone.clip_key, gone.spoken_key)
    assert remove_left_recordings() == 0


def test_a_recording_that_is_being_stored_stays(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes
) -> None:
    replace(workspace, customer, clone, recording)
    delete_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)
    assert remove_left_recordings() == 1
    new = VoiceVersion()
    folder = storage.voice_version_folder(workspace_id=workspace.pk, voice_id=clone.pk, version_id=new.pk)
    with storage.noted(folder):
        storage.save(f"{folder}/clip.wav", recording)
        before = files()
        assert remove_left_recordings() == 0
        assert files() == before
    storage.forget_note(folder)
    assert remove_left_recordings() == 1
    assert len(files()) == len(before) - 1
