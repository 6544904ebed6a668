"""Claiming an attempt while others change its job."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from tests.pool.conftest import Submit, make_device
from tests.pool.processes import wait_for
from tests.pool.test_attempts import LONG_TEXT
from tts.models import Attempt, Segment, SynthesisJob
from tts.services.attempts import Fenced, claim_attempt
from tts.services.sweep import sweep
from tts.states import AttemptState, JobState, SegmentState


def wait_until_blocked() -> None:
    """Until a session waits for a lock that another holds."""

    def waiting() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM pg_locks WHERE NOT granted")
            return bool(cursor.fetchone()[0])

    wait_for(waiting, what="somebody to wait for a lock")


def claim_in_thread(attempt: Attempt, outcomes: list[object]) -> threading.Thread:
    def claim() -> None:
        try:
            outcomes.append(claim_attempt(attempt_id=attempt.pk))
        except Fenced as fenced:
            outcomes.append(fenced)
        finally:
            connection.close()

    thread = threading.Thread(target=claim)
    thread.start()
    return thread


def test_two_segments_that_begin_a_job_at_once_are_both_claimed(submit: Submit) -> None:
    job = submit(LONG_TEXT)
    make_device(slots=2)
    sweep()
    first, second = Attempt.objects.filter(job=job).order_by("pk")
    outcomes: list[object] = []
    with transaction.atomic():
        claim_attempt(attempt_id=first.pk)
        thread = claim_in_thread(second, outcomes)
        wait_until_blocked()
    thread.join(30)
    assert [type(outcome).__name__ for outcome in outcomes] == ["Work"]
    assert Attempt.objects.filter(job=job, state=AttemptState.RUNNING).count() == 2


def test_a_claim_that_a_cancel_overtakes_changes_nothing(submit: Submit) -> None:
    job = submit()
    make_device()
    sweep()
    attempt = Attempt.objects.get(job=job)
    outcomes: list[object] = []
    with transaction.atomic():
        SynthesisJob.objects.filter(pk=job.pk).update(cancel_requested_at=job.created_at)
        thread = claim_in_thread(attempt, outcomes)
        wait_until_blocked()
    thread.join(30)
    assert [type(outcome).__name__ for outcome in outcomes] == ["Fenced"]
    attempt.refresh_from_db()
    job.refresh_from_db()
    assert (attempt.state, attempt.started_at) == (AttemptState.BOUND, None)
    assert (job.state, job.started_at) == (JobState.QUEUED, None)
    assert Segment.objects.get(job=job).state == SegmentState.BOUND


def test_an_attempt_is_claimed_once(submit: Submit) -> None:
    submit()
    make_device()
    sweep()
    attempt = Attempt.objects.get()
    claim_attempt(attempt_id=attempt.pk)
    with pytest.raises(Fenced):
        claim_attempt(attempt_id=attempt.pk)
