"""Files come before their row: whoever dies in between leaves nothing that stays, and nobody's files are taken."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from accounts.models import User, Workspace
from billing.services import holds
from tests.factories import make_voice
from tests.pool.conftest import Submit, make_device
from tests.pool.forked import ROOT
from tests.pool.processes import environment_here
from tests.pool.spoken_before import LONG, REST, Say, differing, say
from tests.pool.test_attempts import account
from tests.pool.test_claims import wait_until_blocked
from tts import storage
from tts.errors import QueueFull, TooManyVoices
from tts.models import Segment, SynthesisJob, Voice, VoiceVersion
from tts.services.new_folders import LEFT_AFTER, new_folder, remove_folders_without_rows
from tts.services.sweep import sweep_thoroughly

__all__ = ["say"]
KINDS = ["job", "revision", "voice"]
Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def no_notes() -> None:
    """Other tests' notes are gone; the folder itself is there."""
    storage.save(f"under-way/{uuid.uuid4()}", b"")
    for note in notes():
        note.unlink()


@pytest.fixture
def source(say: Say) -> SynthesisJob:
    make_device()
    return say(LONG)


@pytest.fixture
def start(source: SynthesisJob) -> Iterator[Start]:
    """Start a process that stores something, which waits for the lock of its workspace's row or account."""
    started: list[subprocess.Popen[str]] = []

    def run(what: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.pool.filling", what, str(source.pk)],
            cwd=ROOT,
            env=environment_here(),
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        with process:  # which waits, and closes its output
            process.kill()


def lock(workspace: Workspace) -> None:
    """What a submission, and what a new voice locks."""
    holds.lock_account(workspace_id=workspace.pk)
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)


def files() -> set[Path]:
    """Every file, notes included, and every folder of a job or a voice."""
    root = Path(default_storage.path(""))
    return {path for path in root.rglob("*") if path.is_file()} | set(root.glob("workspaces/*/*/*"))


def of_nobody(workspace: Workspace) -> set[Path]:
    """The workspace's folders of jobs and voices that have no row, files in them or not."""
    known = {str(pk) for model in (SynthesisJob, Voice) for pk in model.objects.values_list("pk", flat=True)}
    root = Path(default_storage.path(f"workspaces/{workspace.pk}"))
    return {path for path in root.glob("*/*") if path.name not in known}


def notes() -> list[Path]:
    return list(Path(default_storage.path("under-way")).iterdir())


def age_notes(by: timedelta) -> None:
    for note in notes():
        moment = (timezone.now() - by).timestamp()
        os.utime(note, (moment, moment))


@pytest.mark.parametrize("what", KINDS)
def test_what_a_killed_process_left_is_removed_later(what: str, start: Start, workspace: Workspace) -> None:
    before, money = files(), account(workspace)
    with transaction.atomic():
        lock(workspace)
        process = start(what)
        wait_until_blocked()
        # Its files are there, and its row is not.
        assert len(of_nobody(workspace)) == 1
        process.kill()
        process.wait()
    assert of_nobody(workspace)
    assert sweep_thoroughly() == {}
    age_notes(LEFT_AFTER)
    assert sweep_thoroughly() == {"folders_removed": 1}
    assert (of_nobody(workspace), files(), account(workspace)) == (set(), before, money)
    assert sweep_thoroughly() == {}
    assert differing() == []


def test_a_killed_replacement_leaves_no_recording(start: Start, workspace: Workspace, customer: User) -> None:
    """In the folder of a voice that there is."""
    voice = make_voice(workspace, customer)
    before, row = files(), Voice.objects.values().get(pk=voice.pk)
    with transaction.atomic():
        Voice.objects.select_for_update(no_key=True).get(pk=voice.pk)
        process = start("version")
        wait_until_blocked()
        process.kill()
        process.wait()
    assert {path.name for path in files() - before if path.is_file()} > {"clip.wav"}
    assert sweep_thoroughly() == {}
    age_notes(LEFT_AFTER)
    assert sweep_thoroughly() == {"folders_removed": 1}
    assert files() == before
    assert Voice.objects.values().get(pk=voice.pk) == row
    assert VoiceVersion.objects.filter(voice=voice).count() == 1


@pytest.mark.parametrize("what", KINDS)
def test_what_a_living_process_is_storing_stays_however_long_it_takes(
    what: str, start: Start, workspace: Workspace
) -> None:
    with transaction.atomic():
        lock(workspace)
        process = start(what)
        wait_until_blocked()
        age_notes(timedelta(days=400))
        there = files()
        assert remove_folders_without_rows() == 0
        assert files() == there
    made = process.communicate()[0].strip()
    assert process.returncode == 0
    (model,) = [model for model in (SynthesisJob, Voice) if model.objects.filter(pk=made).exists()]
    row = model.objects.get(pk=made)
    assert storage.exists(row.clip_key if isinstance(row, Voice) else row.audio_key)
    # Nothing is left to look after.
    assert notes() == []
    assert of_nobody(workspace) == set()


@pytest.mark.parametrize("what", KINDS)
def test_who_loses_the_database_on_the_way_leaves_the_files_to_housekeeping(
    what: str, start: Start, workspace: Workspace
) -> None:
    """Whether a commit came to pass is not known then: files that a row names are never removed."""
    before = files()
    with transaction.atomic():
        lock(workspace)
        process = start(what)
        wait_until_blocked()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted")
        assert process.wait(timeout=60) != 0
    assert len(of_nobody(workspace)) == 1
    age_notes(LEFT_AFTER)
    assert remove_folders_without_rows() == 1
    assert files() == before


def test_a_refused_request_leaves_neither_folder_nor_note(
    source: SynthesisJob, submit: Submit, workspace: Workspace
) -> None:
    before = files()
    opening = Segment.objects.get(job=source, index=0).text
    workspace.queued_jobs_limit = workspace.voices_limit = 0
    with pytest.raises(QueueFull):
        submit(opening + REST * 3, seed=source.seed)
    folder = storage.voice_folder(workspace_id=workspace.pk, voice_id=uuid.uuid4())

    def refuse() -> None:
        with new_folder(folder):
            storage.save(f"{folder}/deep/below", b"x")
            raise TooManyVoices(limit=0)

    with pytest.raises(TooManyVoices):
        refuse()
    assert (files(), of_nobody(workspace)) == (before, set())


def test_a_row_that_is_there_keeps_its_folder(source: SynthesisJob) -> None:
    folder = storage.job_folder(workspace_id=source.workspace_id, job_id=source.pk)
    lost = OperationalError()
    with pytest.raises(OperationalError), new_folder(folder):
        raise lost
    before = files()
    age_notes(LEFT_AFTER)
    assert remove_folders_without_rows() == 0
    assert files() == {path for path in before if "under-way" not in path.parts}


def test_what_is_no_note_of_ours_is_left_alone(db: None) -> None:
    for name in ("workspaces", "workspaces_.._jobs", f"presets_{uuid.uuid4()}"):
        storage.save(f"under-way/{name}", b"")
    age_notes(LEFT_AFTER)
    before = files()
    assert remove_folders_without_rows() == 0
    assert files() == before
