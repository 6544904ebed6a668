"""Jobs that use again what was spoken: their money, their files, their ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.core.files.storage import default_storage

from accounts.models import Workspace
from billing.models import Hold, LedgerTransaction, UsageRecord
from tests.pool.conftest import Submit, make_device
from tests.pool.spoken_before import (
    GREETING,
    LONG,
    REST,
    Say,
    differing,
    outcome_of,
    samples_of,
    say,
    speak_all,
)
from tests.pool.test_attempts import account, assert_books_balance, claim_next
from tts import storage
from tts.audio.wav import read_wav
from tts.errors import DailyCharactersReached, QueueFull
from tts.models import Attempt, Segment, SynthesisJob, Voice
from tts.services.attempts import fail_attempt, finish_attempt, stop_attempt
from tts.services.jobs import cancel_job, delete_job
from tts.services.quoting import quote
from tts.services.streams import job_audio
from tts.services.sweep import sweep
from tts.states import JobState

__all__ = ["say"]


def test_the_same_phrase_is_used_again_at_once_and_costs_nothing(
    say: Say, submit: Submit, workspace: Workspace
) -> None:
    make_device()
    first = say()
    before = account(workspace)
    again = submit(GREETING, seed=7)
    assert (again.state, again.segment_count, again.reused_count) == (JobState.SUCCEEDED, 1, 1)
    assert (again.gpu_ms, again.charged_micros, again.held_micros, again.estimate_gpu_ms) == (0, 0, 0, 0)
    assert (again.audio_ms, again.first_audio_at, again.started_at) == (
        1000,
        again.created_at,
        again.created_at,
    )
    assert again.finished_at is not None
    assert again.peaks
    assert account(workspace) == before
    assert not Attempt.objects.filter(job=again).exists()
    assert not Hold.objects.filter(job_id=again.pk).exists()
    assert UsageRecord.objects.filter(job_id=again.pk).count() == 0
    assert (
        LedgerTransaction.objects.filter(workspace_id=workspace.pk).count() == 4
    )  # welcome, hold, capture, release
    assert read_wav(storage.read(again.audio_key)).pcm == read_wav(storage.read(first.audio_key)).pcm
    assert again.audio_key != first.audio_key
    assert str(again.pk).encode() in storage.read(again.audio_key)
    assert str(first.pk).encode() not in storage.read(again.audio_key)
    assert_books_balance()


def test_only_what_is_new_is_spoken_held_for_and_charged(
    say: Say, submit: Submit, workspace: Workspace, voice: Voice
) -> None:
    make_device()
    whole = say(LONG)
    assert whole.segment_count > 2
    opening = Segment.objects.get(job=whole, index=0).text
    job = submit(opening + REST * 3, seed=7)
    segments = list(Segment.objects.filter(job=job).order_by("index"))
    assert segments[0].reused is (segments[0].text == opening)
    assert [segment.reused for segment in segments] == [True] + [False] * (len(segments) - 1)
    assert (job.state, job.reused_count, job.segments_done) == (JobState.QUEUED, 1, 1)
    held_gpu_ms = sum(segment.held_gpu_ms for segment in segments[1:])
    assert (segments[0].held_gpu_ms, job.held_gpu_ms) == (0, held_gpu_ms)
    assert Hold.objects.get(job_id=job.pk).amount_micros == job.held_micros == held_gpu_ms * 12
    speak_all()
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert job.charged_micros == (len(segments) - 1) * 12_000
    assert (job.gpu_ms, job.audio_ms) == ((len(segments) - 1) * 1000, len(segments) * 1000)
    assert Attempt.objects.filter(job=job).count() == UsageRecord.objects.filter(job_id=job.pk).count()
    assert Attempt.objects.filter(job=job).count() == len(segments) - 1
    assert_books_balance()


def test_deleting_the_job_deletes_it_from_what_is_used_again(
    say: Say, submit: Submit, workspace: Workspace
) -> None:
    make_device()
    first = say()
    again = submit(GREETING, seed=7)
    delete_job(workspace=workspace, job_id=first.pk)
    segment = Segment.objects.get(job=first)
    assert (segment.phrase, segment.spoken_by, segment.audio_key) == ("", "", "")
    # The second one has files of its own, and goes on being used.
    assert read_wav(storage.read(Segment.objects.get(job=again).audio_key)).pcm == samples_of(
        GREETING.strip()
    )
    third = submit(GREETING, seed=7)
    assert third.reused_count == 1
    for job in (again, third):
        delete_job(workspace=workspace, job_id=job.pk)
        assert storage.stored_audio_keys(workspace_id=workspace.pk, job_id=job.pk) == []
    assert submit(GREETING, seed=7).reused_count == 0


def test_a_file_that_is_gone_is_spoken_again_and_held_for(
    say: Say, submit: Submit, workspace: Workspace
) -> None:
    make_device()
    first = say()
    storage.delete(Segment.objects.get(job=first).audio_key)
    priced = quote(workspace=workspace, user=None, voice_id=first.voice_id, text=GREETING, seed=7)
    assert (priced.held_micros, priced.estimate_micros) == (0, 0)
    job = submit(GREETING, seed=7)
    assert (job.state, job.reused_count) == (JobState.QUEUED, 0)
    assert job.held_micros > 0
    assert Hold.objects.get(job_id=job.pk).amount_micros == job.held_micros
    speak_all()
    job.refresh_from_db()
    assert (job.state, job.charged_micros) == (JobState.SUCCEEDED, 12_000)


def test_a_refused_job_leaves_no_file_behind(say: Say, submit: Submit, workspace: Workspace) -> None:
    make_device()
    whole = say(LONG)
    opening = Segment.objects.get(job=whole, index=0).text
    workspace.queued_jobs_limit = 0
    files = set(Path(default_storage.path(f"workspaces/{workspace.pk}")).rglob("*.wav"))
    with pytest.raises(QueueFull):
        submit(opening + REST * 3, seed=7)
    assert set(Path(default_storage.path(f"workspaces/{workspace.pk}")).rglob("*.wav")) == files
    assert SynthesisJob.objects.count() == 1
    assert_books_balance()


def test_a_job_with_nothing_to_speak_waits_for_nobody_and_counts_no_characters(
    say: Say, submit: Submit, workspace: Workspace
) -> None:
    make_device()
    first = say()
    workspace.queued_jobs_limit, workspace.characters_per_day_limit = 0, first.characters
    again = submit(GREETING, seed=7)
    assert (again.state, again.reused_characters) == (JobState.SUCCEEDED, first.characters)
    workspace.queued_jobs_limit = None
    with pytest.raises(DailyCharactersReached) as refused:
        submit("One.", seed=7)
    assert refused.value.params["left"] == 0


def test_a_key_sent_twice_makes_one_job_and_one_file(say: Say, submit: Submit) -> None:
    make_device()
    say()
    again = submit(GREETING, seed=7, idempotency_key="once")
    twice = submit(GREETING, seed=7, idempotency_key="once")
    assert again.pk == twice.pk
    assert len(storage.stored_audio_keys(workspace_id=again.workspace_id, job_id=again.pk)) == 2


def test_local_files_are_linked_not_copied(say: Say, submit: Submit) -> None:
    make_device()
    first = Segment.objects.get(job=say())
    again = Segment.objects.get(job=submit(GREETING, seed=7))
    one, other = (os.stat(default_storage.path(row.audio_key)) for row in (first, again))
    assert first.audio_key != again.audio_key
    assert (one.st_ino, one.st_nlink) == (other.st_ino, 2)


def test_a_canceled_job_keeps_nobody_from_using_its_opening(
    say: Say, submit: Submit, workspace: Workspace
) -> None:
    make_device()
    whole = say(LONG)
    opening = Segment.objects.get(job=whole, index=0).text
    before = account(workspace)
    job = submit(opening + REST * 3, seed=7)
    work = claim_next()
    cancel_job(workspace=workspace, job_id=job.pk)
    stop_attempt(work=work, outcome=outcome_of(work, gpu_ms=500), error_code="canceled")
    job.refresh_from_db()
    assert (job.state, job.charged_micros) == (JobState.CANCELED, 6_000)
    assert account(workspace) == (before[0] - 6_000, before[1])
    pcm = read_wav(storage.read(job.audio_key)).pcm
    assert pcm.startswith(samples_of(opening))
    assert submit(opening, seed=7).reused_count == 1
    assert_books_balance()


def test_our_fault_gives_back_what_was_charged_and_touches_nothing_that_was_used_again(
    say: Say, submit: Submit, workspace: Workspace
) -> None:
    make_device()
    whole = say(LONG)
    opening = Segment.objects.get(job=whole, index=0).text
    before = account(workspace)
    job = submit(opening + REST * 3, seed=7)
    assert job.segment_count >= 3
    work = claim_next()
    finish_attempt(work=work, outcome=outcome_of(work))
    sweep()
    work = claim_next()
    fail_attempt(
        work=work, error_code="x", error_detail="", gpu_ms=9, blame_user=False, give_up_as="engine_failed"
    )
    job.refresh_from_db()
    assert (job.state, job.charged_micros) == (JobState.FAILED, 0)
    assert account(workspace) == before
    reused = Segment.objects.get(job=job, reused=True)
    assert (reused.state, storage.exists(reused.audio_key)) == ("succeeded", True)
    assert_books_balance()


def test_a_listener_hears_what_is_used_again_before_a_device_has_begun(say: Say, submit: Submit) -> None:
    make_device()
    whole = say(LONG)
    opening = Segment.objects.get(job=whole, index=0).text
    job = submit(opening + REST * 3, seed=7)
    assert job.state == JobState.QUEUED
    assert next(job_audio(job)) == samples_of(opening)
    job.refresh_from_db()
    assert job.first_audio_at == job.created_at


def test_a_job_whose_web_process_died_before_the_end_is_ended_by_the_sweep(
    say: Say, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_device()
    say()

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(storage, "save_file", full)
        job = submit(GREETING, seed=7)
    assert job.state == JobState.QUEUED
    assert differing() == []
    sweep()
    job.refresh_from_db()
    assert (job.state, job.charged_micros) == (JobState.SUCCEEDED, 0)


def test_the_books_are_right_beside_jobs_that_held_nothing(say: Say, submit: Submit) -> None:
    make_device()
    say()
    submit(GREETING, seed=7)
    assert differing() == []


def test_what_was_given_back_is_not_used_again_for_nothing(
    submit: Submit, workspace: Workspace, voice: Voice
) -> None:
    """Else a sentence that no engine can speak, at a text's end, makes all before it free."""
    make_device()
    before = account(workspace)
    job = submit(LONG, seed=7)
    opening = Segment.objects.get(job=job, index=0).text

    def reusable() -> int:
        return len(
            quote(workspace=workspace, user=None, voice_id=voice.pk, text=opening + REST * 3, seed=7).reused
        )

    work = claim_next()
    finish_attempt(work=work, outcome=outcome_of(work))
    sweep()
    # It is not certain yet that it stays paid.
    assert reusable() == 0
    fail_attempt(
        work=claim_next(),
        error_code="x",
        error_detail="",
        gpu_ms=9,
        blame_user=False,
        give_up_as="engine_failed",
    )
    job.refresh_from_db()
    assert (job.state, job.charged_micros, account(workspace)) == (JobState.FAILED, 0, before)
    assert reusable() == 0


def test_what_was_spoken_and_paid_before_a_job_was_canceled_is_used_again(
    submit: Submit, workspace: Workspace, voice: Voice
) -> None:
    make_device()
    job = submit(LONG, seed=7)
    opening = Segment.objects.get(job=job, index=0).text
    work = claim_next()
    finish_attempt(work=work, outcome=outcome_of(work))
    cancel_job(workspace=workspace, job_id=job.pk)
    job.refresh_from_db()
    assert job.state == JobState.CANCELED
    assert job.charged_micros > 0
    assert submit(opening + REST * 3, seed=7).reused_count == 1


@pytest.mark.parametrize("is_whole", [True, False])
def test_files_that_a_deletion_left_behind_are_removed_by_the_sweep_though_nobody_spoke_them(
    is_whole: bool, say: Say, submit: Submit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_device()
    whole = say(LONG)
    opening = Segment.objects.get(job=whole, index=0).text
    job = submit(LONG if is_whole else opening + REST * 3, seed=7)
    assert job.reused_count >= 1
    assert (job.audio_key != "") is is_whole

    def dead(*_arguments: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(storage, "delete", dead)
        delete_job(workspace=workspace, job_id=job.pk)
    assert storage.stored_audio_keys(workspace_id=workspace.pk, job_id=job.pk)
    assert sweep()["files_removed"] == 1
    assert storage.stored_audio_keys(workspace_id=workspace.pk, job_id=job.pk) == []
    assert sweep()["files_removed"] == 0
    assert storage.exists(whole.audio_key)
