"""Long jobs, which are put together beside the work that ended them."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.db.models import F

from accounts.models import Workspace
from tests.pool.conftest import Submit, make_device
from tests.pool.spoken_before import LONG
from tests.pool.spoken_before import speak_all as speak_as_asked
from tests.pool.test_attempts import LONG_TEXT, assert_books_balance, claim_next, spoken
from tts import storage
from tts.audio.wav import read_wav
from tts.errors import QueueFull
from tts.models import Attempt, SynthesisJob
from tts.services import endings
from tts.services.aside import ASIDE_FROM_MS, ASIDE_WITHIN, put_aside, wait_for_aside
from tts.services.attempts import finish_attempt, stop_attempt
from tts.services.endings import jobs_to_end
from tts.services.jobs import cancel_job
from tts.services.sweep import sweep
from tts.states import JobState

WAIT_S = 60.0


@pytest.fixture
def nobody_at_work(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The process dies as soon as it has put a job aside."""
    monkeypatch.setattr(endings, "put_aside", lambda job_id, task: False)
    return monkeypatch


def speak_all(job: SynthesisJob) -> None:
    make_device()
    sweep()
    each_ms = ASIDE_FROM_MS // job.segment_count + 1
    for _ in range(job.segment_count):
        work = claim_next()
        finish_attempt(work=work, outcome=spoken(work, audio_ms=each_ms))
        sweep()


def duration_ms(job: SynthesisJob) -> int:
    return read_wav(storage.read(job.audio_key)).duration_ms


def test_a_long_job_is_put_together_aside_and_by_nobody_else(submit: Submit) -> None:
    job = submit(LONG_TEXT)
    speak_all(job)
    assert jobs_to_end() == []
    assert wait_for_aside(job.pk, WAIT_S)
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert duration_ms(job) > ASIDE_FROM_MS
    assert_books_balance()


def test_the_sweep_makes_good_what_a_process_that_died_was_putting_together(
    submit: Submit, nobody_at_work: pytest.MonkeyPatch
) -> None:
    job = submit(LONG_TEXT)
    speak_all(job)
    job.refresh_from_db()
    assert job.state == JobState.RUNNING
    nobody_at_work.undo()
    assert jobs_to_end() == []
    ago = ASIDE_WITHIN + timedelta(seconds=1)
    Attempt.objects.update(finished_at=F("finished_at") - ago)
    SynthesisJob.objects.update(created_at=F("created_at") - ago)
    assert jobs_to_end() == [job.pk]
    sweep()
    assert wait_for_aside(job.pk, WAIT_S)
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert duration_ms(job) > ASIDE_FROM_MS
    assert_books_balance()


def test_what_a_long_job_had_spoken_before_its_cancel_is_kept_aside(submit: Submit) -> None:
    job = submit(LONG_TEXT)
    make_device()
    sweep()
    work = claim_next()
    finish_attempt(work=work, outcome=spoken(work, audio_ms=ASIDE_FROM_MS))
    sweep()
    work = claim_next()
    cancel_job(workspace=job.workspace, job_id=job.pk)
    stop_attempt(work=work, outcome=spoken(work, audio_ms=1000), error_code="canceled")
    assert wait_for_aside(job.pk, WAIT_S)
    job.refresh_from_db()
    assert job.state == JobState.CANCELED
    assert duration_ms(job) >= ASIDE_FROM_MS + 1000
    assert_books_balance()


def test_long_speech_that_is_used_again_has_its_place_in_the_queue(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    first = submit(LONG, seed=7)
    speak_as_asked(audio_ms=ASIDE_FROM_MS)
    assert wait_for_aside(first.pk, WAIT_S)
    stored, files = SynthesisJob.objects.count(), files_below_the_media_folder()
    workspace.queued_jobs_limit = 0
    with pytest.raises(QueueFull):
        submit(LONG, seed=7)
    assert (SynthesisJob.objects.count(), files_below_the_media_folder()) == (stored, files)
    workspace.queued_jobs_limit = None
    again = submit(LONG, seed=7)
    assert again.reused_count == again.segment_count
    assert wait_for_aside(again.pk, WAIT_S)
    again.refresh_from_db()
    assert (again.state, again.charged_micros) == (JobState.SUCCEEDED, 0)
    assert_books_balance()


def files_below_the_media_folder() -> int:
    return sum(path.is_file() for path in Path(default_storage.path("")).rglob("*"))


def test_one_process_works_once_on_a_job_and_survives_a_failure(submit: Submit) -> None:
    job, gate = submit(), threading.Event()
    assert put_aside(job.pk, lambda: gate.wait(WAIT_S))
    assert not put_aside(job.pk, lambda: None)
    gate.set()
    assert wait_for_aside(job.pk, WAIT_S)

    def fail() -> None:
        raise OSError("the disk is full")

    assert put_aside(job.pk, fail)
    assert wait_for_aside(job.pk, WAIT_S)
    assert put_aside(job.pk, lambda: None)
    assert wait_for_aside(job.pk, WAIT_S)
