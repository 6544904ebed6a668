"""Claiming an attempt while others change its job."""

from __future__ import annotations

import threading
import uuid

import pytest
from django.db import connection, transaction

from accounts.models import Workspace
from tests.pool.conftest import Submit, make_device
from tests.pool.processes import wait_for
from tests.pool.test_attempts import LONG_TEXT
from tts.models import Attempt, DeviceSlot, Segment
from tts.services.attempts import Fenced, begin_job
from tts.services.claiming import claim_attempt, hand_over_claimed
from tts.services.jobs import cancel_job
from tts.services.sweep import sweep
from tts.services.wakeups import is_cancel_flagged
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


def test_two_segments_that_begin_a_job_begin_it_once(submit: Submit) -> None:
    job = submit(LONG_TEXT)
    make_device(slots=2)
    sweep()
    works = [claim_attempt(attempt_id=attempt.pk) for attempt in Attempt.objects.filter(job=job)]
    for work in works:
        begin_job(work=work)
    job.refresh_from_db()
    assert len(works) == 2
    assert job.state == JobState.RUNNING
    assert job.started_at == works[0].attempt.started_at


def test_a_claim_that_a_cancel_overtakes_changes_nothing(submit: Submit, workspace: Workspace) -> None:
    job = submit()
    make_device()
    sweep()
    attempt = Attempt.objects.get(job=job)
    outcomes: list[object] = []
    with transaction.atomic():
        cancel_job(workspace=workspace, job_id=job.pk)
        thread = claim_in_thread(attempt, outcomes)
        wait_until_blocked()
    thread.join(30)
    assert [type(outcome).__name__ for outcome in outcomes] == ["Fenced"]
    attempt.refresh_from_db()
    job.refresh_from_db()
    assert (attempt.state, attempt.started_at) == (AttemptState.CANCELED, None)
    assert (job.state, job.started_at) == (JobState.CANCELED, None)
    assert Segment.objects.get(job=job).state == SegmentState.CANCELED


def test_a_cancel_that_a_claim_overtakes_stops_what_runs(submit: Submit, workspace: Workspace) -> None:
    job = submit()
    make_device()
    sweep()
    claim_attempt(attempt_id=Attempt.objects.get(job=job).pk)
    cancel_job(workspace=workspace, job_id=job.pk)
    assert is_cancel_flagged(job_id=job.pk)
    assert Attempt.objects.get(job=job).state == AttemptState.RUNNING


def test_an_attempt_is_claimed_once(submit: Submit) -> None:
    submit()
    make_device()
    sweep()
    attempt = Attempt.objects.get()
    claim_attempt(attempt_id=attempt.pk)
    with pytest.raises(Fenced):
        claim_attempt(attempt_id=attempt.pk)


def test_what_is_handed_over_is_claimed_and_read_whole(submit: Submit) -> None:
    for _ in range(2):
        submit()
    slot = DeviceSlot.objects.get(device=make_device())
    sweep()
    spoken = claim_attempt(attempt_id=Attempt.objects.get().pk)
    handed = hand_over_claimed(device_id=slot.device_id, slot_number=0, attempt_id=spoken.attempt.pk)
    assert handed is not None
    assert handed.work is not None
    attempt = Attempt.objects.select_related("segment", "job__voice").get(pk=handed.attempt_id)
    assert (attempt.state, attempt.segment.state) == (AttemptState.RUNNING, SegmentState.RUNNING)
    rows = [(handed.work.attempt, attempt), (handed.work.segment, attempt.segment)]
    rows += [(handed.work.job, attempt.job), (handed.work.voice, attempt.job.voice)]
    for got, kept in rows:
        names = [field.attname for field in kept._meta.concrete_fields]
        # Also what is read only when it is asked for.
        assert [getattr(got, name) for name in names] == [getattr(kept, name) for name in names]
    slot.refresh_from_db()
    assert slot.attempt_id == attempt.pk


def test_nothing_is_handed_over_where_nothing_waits(submit: Submit) -> None:
    submit()
    slot = DeviceSlot.objects.get(device=make_device())
    sweep()
    spoken = claim_attempt(attempt_id=Attempt.objects.get().pk)
    assert hand_over_claimed(device_id=slot.device_id, slot_number=0, attempt_id=spoken.attempt.pk) is None
    slot.refresh_from_db()
    assert slot.attempt_id == spoken.attempt.pk
    assert Attempt.objects.count() == 1


def test_a_slot_of_another_attempt_is_not_handed_over(submit: Submit) -> None:
    for _ in range(2):
        submit()
    slot = DeviceSlot.objects.get(device=make_device())
    sweep()
    claim_attempt(attempt_id=Attempt.objects.get().pk)
    assert hand_over_claimed(device_id=slot.device_id, slot_number=0, attempt_id=uuid.uuid4()) is None
    assert Attempt.objects.count() == 1
