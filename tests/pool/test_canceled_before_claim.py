"""A job that is canceled between the choice of its segment and the claim does not keep the slot from others."""

from __future__ import annotations

import pytest

from accounts.models import Workspace
from tests.pool.conftest import Submit, make_device
from tests.pool.test_attempts import assert_books_balance
from tts.models import Attempt, DeviceSlot
from tts.services.jobs import cancel_job
from tts.services.sweep import sweep
from tts.slot_worker import SlotAddress
from tts.states import AttemptState, JobState
from tts.worker import Runner


@pytest.fixture
def runner() -> Runner:
    device = make_device()
    address = SlotAddress(device_id=device.pk, slot_number=0, epoch=device.epoch)
    return Runner(address=address, worker_name="test", engine="simulated", visible_device="")


def test_the_slot_is_free_at_once(submit: Submit, workspace: Workspace, runner: Runner) -> None:
    job = submit()
    sweep()
    attempt = Attempt.objects.get(job=job)
    cancel_job(workspace=workspace, job_id=job.pk)
    assert DeviceSlot.objects.get().attempt_id == attempt.pk
    runner._abandon_bound(attempt.pk)
    assert DeviceSlot.objects.get().attempt_id is None
    job.refresh_from_db()
    assert job.state == JobState.CANCELED
    assert_books_balance()


def test_an_attempt_that_runs_is_left_alone_when_the_wire_says_it_twice(
    submit: Submit, runner: Runner
) -> None:
    job = submit()
    sweep()
    attempt = Attempt.objects.get(job=job)
    Attempt.objects.filter(pk=attempt.pk).update(state=AttemptState.RUNNING)
    runner._abandon_bound(attempt.pk)
    attempt.refresh_from_db()
    assert attempt.state == AttemptState.RUNNING
    assert DeviceSlot.objects.get().attempt_id == attempt.pk
