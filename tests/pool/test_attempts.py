"""The life of an attempt, with the test as the worker: fencing, settling, retries, cancellation, money."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from accounts.models import Workspace
from billing.models import CreditAccount, Hold, LedgerEntry, UsageRecord
from tests.pool.conftest import Submit, make_device
from tts import storage
from tts.audio.wav import read_wav, wav_file
from tts.errors import IdempotencyKeyReused, JobAlreadyEnded, QueueFull
from tts.models import Attempt, DeviceSlot, Segment, SynthesisJob
from tts.services.attempts import (
    Fenced,
    Outcome,
    Work,
    begin_job,
    fail_attempt,
    finish_attempt,
    renew_lease,
    stop_attempt,
)
from tts.services.claiming import claim_attempt
from tts.services.jobs import cancel_job, delete_job
from tts.services.sweep import sweep
from tts.states import MAX_ATTEMPTS, AttemptState, JobState
from tts.text.pauses import pause_after_ms

WELCOME_MICROS = 300 * 12_000
LONG_TEXT = "This is one sentence of a longer text that needs several segments. " * 12


def account(workspace: Workspace) -> tuple[int, int]:
    row = CreditAccount.objects.get(workspace_id=workspace.pk)
    return row.available_micros, row.held_micros


def claim_next() -> Work:
    attempt = Attempt.objects.filter(state=AttemptState.BOUND).order_by("bound_at")[0]
    work = claim_attempt(attempt_id=attempt.pk)
    begin_job(work=work)
    return work


def spoken(work: Work, *, gpu_ms: int = 1000, audio_ms: int = 2000) -> Outcome:
    """Store a second file for the attempt and return its outcome."""
    key = storage.attempt_audio_key(
        workspace_id=work.job.workspace_id, job_id=work.job.pk, attempt_id=work.attempt.pk
    )
    storage.save(key, wav_file(bytes(2 * 24 * audio_ms), sample_rate_hz=24_000))
    return Outcome(gpu_ms=gpu_ms, audio_ms=audio_ms, audio_key=key, first_chunk_gpu_ms=10, peaks=[1, 2])


def expire_leases() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tts_attempt SET leased_until = now() - interval '1 second' WHERE state IN ('bound', 'running')"
        )


def assert_books_balance() -> None:
    assert sum(LedgerEntry.objects.values_list("amount_micros", flat=True)) == 0
    for row in CreditAccount.objects.all():
        entries = LedgerEntry.objects.filter(transaction__workspace_id=row.workspace_id)
        assert row.available_micros == sum(
            entries.filter(account="available").values_list("amount_micros", flat=True)
        )
        assert row.held_micros == sum(entries.filter(account="held").values_list("amount_micros", flat=True))


def test_a_spoken_job_is_charged_exactly_what_was_used(submit: Submit, workspace: Workspace) -> None:
    make_device()
    job = submit()
    assert account(workspace) == (WELCOME_MICROS - job.held_micros, job.held_micros)
    work = claim_next()
    finish_attempt(work=work, outcome=spoken(work, gpu_ms=1234))
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert (job.gpu_ms, job.audio_ms, job.segments_done) == (1234, 2000, 1)
    # 1.234 s at 12,000 micros a second.
    assert job.charged_micros == 14_808
    assert account(workspace) == (WELCOME_MICROS - 14_808, 0)
    assert Hold.objects.get(job_id=job.pk).state == "closed"
    usage = UsageRecord.objects.get()
    assert (usage.attempt_id, usage.gpu_ms, usage.billable, usage.characters) == (
        work.attempt.pk,
        1234,
        True,
        22,
    )
    assert DeviceSlot.objects.get().attempt_id is None
    assert_books_balance()


def test_a_second_settle_changes_nothing(submit: Submit, workspace: Workspace) -> None:
    make_device()
    job = submit()
    work = claim_next()
    finish_attempt(work=work, outcome=spoken(work))
    before = (account(workspace), SynthesisJob.objects.values().get(pk=job.pk), UsageRecord.objects.count())
    with pytest.raises(Fenced):
        finish_attempt(work=work, outcome=Outcome(gpu_ms=9999, audio_ms=9999))
    with pytest.raises(Fenced):
        fail_attempt(work=work, error_code="late", error_detail="", gpu_ms=1, blame_user=False)
    with pytest.raises(Fenced):
        stop_attempt(work=work, outcome=Outcome(gpu_ms=1, audio_ms=1), error_code="canceled")
    assert before == (
        account(workspace),
        SynthesisJob.objects.values().get(pk=job.pk),
        UsageRecord.objects.count(),
    )
    assert_books_balance()


def test_six_workers_settling_the_same_attempt_charge_once(submit: Submit, workspace: Workspace) -> None:
    make_device()
    job = submit()
    work = claim_next()
    outcome = spoken(work)
    results: list[str] = []
    barrier = threading.Barrier(6)

    def settle() -> None:
        barrier.wait()
        try:
            finish_attempt(work=work, outcome=outcome)
            results.append("won")
        except Fenced:
            results.append("fenced")
        finally:
            connection.close()

    threads = [threading.Thread(target=settle) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["fenced"] * 5 + ["won"]
    job.refresh_from_db()
    assert job.charged_micros == 12_000
    assert account(workspace) == (WELCOME_MICROS - 12_000, 0)
    assert_books_balance()


def test_an_expired_lease_gives_the_segment_to_the_next_attempt_and_fences_the_old_worker(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job = submit()
    old = claim_next()
    expire_leases()
    sweep()
    assert renew_lease(attempt_id=old.attempt.pk) is False
    new = claim_next()
    assert new.attempt.attempt_number == 2
    with pytest.raises(Fenced):
        finish_attempt(work=old, outcome=spoken(old))
    finish_attempt(work=new, outcome=spoken(new))
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert job.audio_key == Attempt.objects.get(pk=new.attempt.pk).audio_key
    assert list(UsageRecord.objects.order_by("pk").values_list("billable", flat=True)) == [False, True]
    assert account(workspace) == (WELCOME_MICROS - 12_000, 0)
    assert_books_balance()


def test_the_platforms_fault_is_tried_three_times_and_costs_nothing(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job = submit()
    for number in range(1, MAX_ATTEMPTS + 1):
        work = claim_next()
        assert work.attempt.attempt_number == number
        fail_attempt(
            work=work, error_code="engine_died", error_detail="signal 9", gpu_ms=500, blame_user=False
        )
        sweep()
    job.refresh_from_db()
    assert (job.state, job.error_code, job.charged_micros) == (JobState.FAILED, "engine_failed", 0)
    assert account(workspace) == (WELCOME_MICROS, 0)
    assert not Attempt.objects.filter(state__in=["bound", "running"]).exists()
    assert set(UsageRecord.objects.values_list("billable", flat=True)) == {False}
    assert_books_balance()


def test_an_attempt_lost_on_the_wire_does_not_count_as_a_try(submit: Submit) -> None:
    make_device()
    job = submit()
    for _ in range(5):
        expire_leases()
        sweep()
    assert Attempt.objects.filter(state="lost", error_code="lost_on_the_wire").count() == 5
    assert UsageRecord.objects.count() == 0
    job.refresh_from_db()
    assert job.state == JobState.QUEUED
    work = claim_next()
    finish_attempt(work=work, outcome=spoken(work))
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED


def test_a_users_fault_ends_the_job_at_once_and_costs_nothing(submit: Submit, workspace: Workspace) -> None:
    make_device()
    job = submit()
    work = claim_next()
    fail_attempt(work=work, error_code="language_not_supported", error_detail="", gpu_ms=3, blame_user=True)
    job.refresh_from_db()
    assert (job.state, job.error_code) == (JobState.FAILED, "language_not_supported")
    assert account(workspace) == (WELCOME_MICROS, 0)
    assert_books_balance()


def test_a_budget_that_runs_out_keeps_and_charges_what_was_spoken(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job = submit()
    work = claim_next()
    outcome = spoken(work, gpu_ms=job.held_gpu_ms + 5000)
    stop_attempt(work=work, outcome=outcome, error_code="budget_exhausted")
    job.refresh_from_db()
    assert (job.state, job.error_code, job.audio_key) == (
        JobState.FAILED,
        "budget_exhausted",
        outcome.audio_key,
    )
    # Never more than was held, whatever the engine measured.
    assert job.charged_micros == job.held_micros
    assert account(workspace) == (WELCOME_MICROS - job.held_micros, 0)
    assert_books_balance()


def test_canceling_a_waiting_job_gives_everything_back(submit: Submit, workspace: Workspace) -> None:
    job = submit()
    canceled = cancel_job(workspace=workspace, job_id=job.pk)
    assert canceled.state == JobState.CANCELED
    assert account(workspace) == (WELCOME_MICROS, 0)
    with pytest.raises(JobAlreadyEnded):
        cancel_job(workspace=workspace, job_id=job.pk)
    make_device()
    sweep()
    assert not Attempt.objects.exists()
    assert_books_balance()


def test_canceling_a_running_job_charges_what_was_used(submit: Submit, workspace: Workspace) -> None:
    make_device()
    job = submit()
    work = claim_next()
    assert cancel_job(workspace=workspace, job_id=job.pk).state == JobState.RUNNING
    stop_attempt(work=work, outcome=spoken(work, gpu_ms=250), error_code="canceled")
    job.refresh_from_db()
    assert (job.state, job.charged_micros) == (JobState.CANCELED, 3_000)
    assert account(workspace) == (WELCOME_MICROS - 3_000, 0)
    assert_books_balance()


def test_a_bound_attempt_of_a_canceled_job_cannot_be_claimed(submit: Submit, workspace: Workspace) -> None:
    make_device()
    job = submit()
    attempt = Attempt.objects.get(job=job)
    cancel_job(workspace=workspace, job_id=job.pk)
    with pytest.raises(Fenced):
        claim_attempt(attempt_id=attempt.pk)
    sweep()
    assert DeviceSlot.objects.get().attempt_id is None
    assert account(workspace) == (WELCOME_MICROS, 0)


def test_a_long_job_is_spoken_in_segments_and_put_together_in_order(
    submit: Submit, workspace: Workspace
) -> None:
    make_device("cpu:0@one")
    make_device("cpu:0@two")
    job = submit(LONG_TEXT)
    assert job.segment_count > 2
    lengths: dict[int, int] = {}
    while Attempt.objects.filter(state="bound").exists():
        work = claim_next()
        lengths[work.segment.index] = 1000 + work.segment.index
        finish_attempt(work=work, outcome=spoken(work, audio_ms=lengths[work.segment.index]))
        sweep()
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert job.segments_done == job.segment_count == len(lengths)
    audio = read_wav(storage.read(job.audio_key))
    pauses = [pause_after_ms(text) for text in job.segments.order_by("index").values_list("text", flat=True)]
    assert audio.duration_ms == sum(lengths.values()) + sum(pauses[:-1])
    assert job.charged_micros == 12_000 * len(lengths)
    assert account(workspace) == (WELCOME_MICROS - job.charged_micros, 0)
    assert_books_balance()


def test_a_long_job_that_fails_by_our_fault_gives_back_what_its_segments_had_cost(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job = submit(LONG_TEXT)
    first = claim_next()
    finish_attempt(work=first, outcome=spoken(first))
    assert SynthesisJob.objects.get(pk=job.pk).charged_micros == 12_000
    for _ in range(MAX_ATTEMPTS):
        sweep()
        work = claim_next()
        fail_attempt(work=work, error_code="engine_died", error_detail="", gpu_ms=1, blame_user=False)
    job.refresh_from_db()
    assert (job.state, job.charged_micros) == (JobState.FAILED, 0)
    assert account(workspace) == (WELCOME_MICROS, 0)
    assert not Segment.objects.filter(job=job, state__in=["queued", "bound", "running"]).exists()
    assert_books_balance()


def test_a_worker_that_dies_between_the_last_settle_and_the_end_of_the_job_is_made_good(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_device()
    job = submit(LONG_TEXT)
    # The process dies right after the commit of the last segment: what comes after is never called.
    monkeypatch.setattr("tts.services.attempts.end_job_if_complete", lambda job_id: False)
    for _ in range(job.segment_count):
        work = claim_next()
        finish_attempt(work=work, outcome=spoken(work))
        sweep()
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert read_wav(storage.read(job.audio_key)).duration_ms > 2000 * job.segment_count
    assert_books_balance()


def test_the_same_key_gives_the_same_job_and_holds_once(submit: Submit, workspace: Workspace) -> None:
    first = submit(idempotency_key="order-1")
    again = submit(idempotency_key="order-1")
    assert first.pk == again.pk
    assert account(workspace) == (WELCOME_MICROS - first.held_micros, first.held_micros)
    with pytest.raises(IdempotencyKeyReused):
        submit("Another text.", idempotency_key="order-1")
    assert SynthesisJob.objects.count() == 1
    assert account(workspace)[1] == first.held_micros


def test_eight_threads_with_the_same_key_make_one_job(submit: Submit, workspace: Workspace) -> None:
    barrier = threading.Barrier(8)
    made: list[object] = []

    def send() -> None:
        barrier.wait()
        try:
            made.append(submit(idempotency_key="raced").pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(set(made)) == 1
    assert Hold.objects.count() == 1
    assert account(workspace)[1] == SynthesisJob.objects.get().held_micros
    assert_books_balance()


def test_a_full_queue_refuses_and_changes_nothing(submit: Submit, workspace: Workspace, settings) -> None:  # type: ignore[no-untyped-def]
    settings.VOICEPOOL = {**settings.VOICEPOOL, "QUEUED_JOBS_PER_WORKSPACE": 2}
    submit()
    submit()
    before = account(workspace)
    with pytest.raises(QueueFull):
        submit()
    assert SynthesisJob.objects.count() == 2
    assert account(workspace) == before
    assert_books_balance()


def test_deleting_a_job_removes_its_text_and_its_files_and_keeps_the_receipt(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job = submit("A private sentence.")
    work = claim_next()
    outcome = spoken(work)
    finish_attempt(work=work, outcome=outcome)
    delete_job(workspace=workspace, job_id=job.pk)
    job.refresh_from_db()
    assert (job.text, job.audio_key) == ("", "")
    assert not storage.exists(outcome.audio_key)
    assert Segment.objects.get(job=job).text == ""
    assert job.charged_micros == 12_000
    assert UsageRecord.objects.filter(job_id=job.pk).count() == 1
