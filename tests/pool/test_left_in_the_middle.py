"""What a cancel, a crash or a client that hangs leaves in the middle of something does not stay there."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from accounts.models import Workspace
from billing.models import UsageRecord
from tests.pool.conftest import Submit, make_device
from tests.pool.fair_pool import FairPool, assert_counters_are_true
from tests.pool.processes import wait_for
from tests.pool.test_attempts import account, assert_books_balance, claim_next, spoken
from tests.pool.test_yielding import BOOK
from tts.late_settlement import LateSettlement
from tts.models import Attempt, DeviceSlot, FairShareQueue, Segment
from tts.services.attempts import abandon_attempt, finish_attempt
from tts.services.bind import bind_next
from tts.services.jobs import cancel_job, delete_job
from tts.services.sweep import sweep
from tts.services.yielding import yield_attempt
from tts.states import AttemptState, JobState, SegmentState


@pytest.mark.parametrize("act", [cancel_job, delete_job])
def test_a_book_that_is_canceled_while_it_lets_others_pass_ends_and_is_paid_so_far(
    submit: Submit, workspace: Workspace, act: object
) -> None:
    make_device()
    job = submit(BOOK, job_class="batch")
    work = claim_next()
    act(workspace=workspace, job_id=job.pk)  # type: ignore[operator]
    text = work.segment.text
    yield_attempt(work=work, outcome=spoken(work, gpu_ms=500), spoken=text[:5], rest=text[5:])
    job.refresh_from_db()
    assert (job.state, job.gpu_ms) == (JobState.CANCELED, 500)
    assert not Segment.objects.filter(job=job, state__in=["queued", "bound", "running"]).exists()
    assert account(workspace)[1] == 0
    if act is delete_job:
        sweep()
        assert set(Segment.objects.filter(job=job).values_list("text", flat=True)) == {""}
    assert_books_balance()


def test_an_attempt_that_is_given_up_while_its_segment_is_its_own_is_spoken_again(submit: Submit) -> None:
    make_device()
    job = submit()
    work = claim_next()
    abandon_attempt(attempt=work.attempt)
    sweep()
    assert Attempt.objects.get(pk=work.attempt.pk).state == AttemptState.LOST
    again = claim_next()
    finish_attempt(work=again, outcome=spoken(again))
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert_books_balance()


def test_what_is_spoken_on_a_claim_that_the_database_forgot_is_on_the_receipt(submit: Submit) -> None:
    make_device()
    submit()
    work = claim_next()
    Segment.objects.filter(pk=work.segment.pk).update(state=SegmentState.BOUND)
    Attempt.objects.filter(pk=work.attempt.pk).update(state=AttemptState.BOUND, started_at=None)
    finish_attempt(work=work, outcome=spoken(work, gpu_ms=700))
    assert UsageRecord.objects.get(attempt_id=work.attempt.pk).gpu_ms == 700
    assert Attempt.objects.get(pk=work.attempt.pk).started_at == work.attempt.started_at
    assert_books_balance()


@pytest.mark.parametrize("canceled", [False, True])
def test_a_segment_that_is_with_nobody_is_given_back(
    submit: Submit, workspace: Workspace, canceled: bool
) -> None:
    make_device()
    job = submit()
    work = claim_next()
    if canceled:
        cancel_job(workspace=workspace, job_id=job.pk)
    Attempt.objects.filter(pk=work.attempt.pk).update(state=AttemptState.CANCELED, finished_at=job.created_at)
    DeviceSlot.objects.update(attempt_id=None, ready=False)
    assert sweep()["segments_returned"] == 1
    job.refresh_from_db()
    wanted = (
        (JobState.CANCELED, SegmentState.CANCELED) if canceled else (JobState.RUNNING, SegmentState.QUEUED)
    )
    assert (job.state, Segment.objects.get(job=job).state) == wanted
    assert_counters_are_true()
    assert_books_balance()


def test_a_client_that_hangs_does_not_stop_the_decisions_for_others(transactional_db: None) -> None:
    pool = FairPool(slots=2)
    frozen, other = pool.customer(), pool.customer()
    pool.queue(frozen, 100)
    pool.queue(other, 100)
    holds, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        try:
            with transaction.atomic():
                list(FairShareQueue.objects.select_for_update().filter(workspace=frozen))
                holds.set()
                assert go_on.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=hang)
    thread.start()
    try:
        assert holds.wait(10)
        slots = list(DeviceSlot.objects.order_by("number"))
        # A decision waits a quarter of a second for a row at most, which a busy machine may take by itself.
        given = wait_for(lambda: [one for slot in slots if (one := bind_next(slot=slot))], what="a turn")
        assert {Attempt.objects.get(pk=one.attempt_id).workspace_id for one in given} == {other.pk}
    finally:
        go_on.set()
        thread.join(30)
    wait_for(lambda: any(bind_next(slot=slot) for slot in slots), what="the customer's own turn")


def test_a_settlement_that_fails_does_not_touch_the_segment_that_is_being_spoken() -> None:
    late, given_up = LateSettlement(), []

    def fail() -> None:
        raise OSError("no space left")

    late.put(fail, give_up=lambda: given_up.append("first"))
    late.make()
    late.make()
    assert given_up == ["first"]
