"""Where a device's time goes: measured by its workers, and held against the records of use."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connection

from billing.models import UsageRecord
from billing.reconciliation.checks import run
from portal.lib.clock import now
from tests.pool.conftest import Submit, make_device
from tests.pool.processes import Pool, wait_for
from tts.models import Attempt, Device, DeviceHour
from tts.selectors.device_time import device_times
from tts.selectors.reconciliation import CHECKS
from tts.services.device_time import add_device_time
from tts.states import AttemptState
from tts.time_account import Spent, TimeAccount

CHECK = next(check for check in CHECKS if check.name == "devices_worked_as_long_as_recorded")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The monotonic clock in nanoseconds, for the test to set."""
    nanoseconds = [0]
    monkeypatch.setattr("tts.time_account.time.monotonic_ns", lambda: nanoseconds[0])
    return nanoseconds


def test_up_is_ready_or_at_work_and_work_is_a_part_of_it(clock: list[int]) -> None:
    account = TimeAccount()
    clock[0] += 5_000_000  # not up yet
    account.ready = True
    clock[0] += 10_000_000
    with account.working():
        clock[0] += 20_000_000
        account.ready = False  # drained: what it speaks goes on
        clock[0] += 30_000_000
    clock[0] += 40_000_000  # not up any more
    account.add_canary(7)
    assert account.take() == Spent(up_ms=60, worked_ms=50, canary_ms=7)
    assert account.take() == Spent(0, 0, 0)


def test_work_that_goes_on_is_counted_until_now(clock: list[int]) -> None:
    account = TimeAccount()
    account.ready = True
    with account.working():
        clock[0] += 1_000_000
        assert account.take() == Spent(1, 1, 0)
        clock[0] += 2_000_000
    assert account.take() == Spent(2, 2, 0)


def test_fractions_of_a_millisecond_are_kept(clock: list[int]) -> None:
    account = TimeAccount()
    account.ready = True
    taken = 0
    for _ in range(10):
        clock[0] += 300_000
        taken += account.take().up_ms
    assert taken == 3


def test_what_could_not_be_written_is_taken_again(clock: list[int]) -> None:
    account = TimeAccount()
    account.ready = True
    clock[0] += 4_000_000
    account.put_back(account.take())
    assert account.take() == Spent(4, 0, 0)


def test_many_threads_count_nothing_twice() -> None:
    account = TimeAccount()
    threads = [threading.Thread(target=lambda: account.add_canary(1)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.take().canary_ms == 20


@pytest.mark.django_db
def test_a_devices_hours_are_sums_and_a_device_that_is_gone_has_none() -> None:
    device = make_device()
    add_device_time(device_id=device.pk, spent=Spent(100, 60, 5))
    add_device_time(device_id=device.pk, spent=Spent(10, 6, 0))
    add_device_time(device_id=device.pk + 1, spent=Spent(10, 6, 0))
    assert list(DeviceHour.objects.values_list("device_id", "up_ms", "worked_ms", "canary_ms")) == [
        (device.pk, 110, 66, 5)
    ]


def used(device: Device, gpu_ms: int, *, billable: bool = True) -> None:
    UsageRecord.objects.create(
        attempt_id=uuid.uuid4(),
        job_id=uuid.uuid4(),
        workspace_id=uuid.uuid4(),
        voice_id=uuid.uuid4(),
        device_name=device.name,
        device_class="cpu",
        job_class="standard",
        billable=billable,
        gpu_ms=gpu_ms,
        audio_ms=0,
        characters=0,
        started_at=now() - timedelta(seconds=1),
        finished_at=now(),
    )


@pytest.mark.django_db
@pytest.mark.parametrize("whole", [True, False])
def test_an_account_adds_up_to_the_millisecond(whole: bool) -> None:
    device = make_device()
    add_device_time(device_id=device.pk, spent=Spent(up_ms=10_000, worked_ms=7_000, canary_ms=300))
    used(device, 5_000)
    used(device, 1_500, billable=False)
    (account,) = device_times(day=None if whole else now().date())
    parts = (account.billed_ms, account.unbilled_ms, account.canary_ms, account.idle_ms, account.overhead_ms)
    assert parts == (5_000, 1_500, 300, 3_000, 500)
    assert sum(parts) == account.up_ms == 10_300


@pytest.mark.django_db
def test_more_time_on_records_than_a_device_had_is_found() -> None:
    device = make_device()
    add_device_time(device_id=device.pk, spent=Spent(up_ms=100_000, worked_ms=50_000, canary_ms=0))
    used(device, 50_000)
    assert run(CHECK, day=None).differing == 0
    used(device, 20_000)
    (difference,) = run(CHECK, day=None).differences
    assert (difference.subject, difference.expected, difference.actual) == (device.name, 50_000, 70_000)


def test_workers_keep_the_account(pool: Pool, submit: Submit) -> None:
    pool.start_node(engine_settings={"real_time": True, "ms_per_character": 30})
    pool.start_clock()
    for _ in range(3):
        submit()
    done = Attempt.objects.filter(state=AttemptState.SUCCEEDED)
    wait_for(lambda: done.count() == 3, what="three jobs to be spoken")
    spoken_ms = sum(done.values_list("gpu_ms", flat=True))

    def written() -> bool:
        connection.close()
        accounts = device_times(day=None)
        return bool(accounts) and accounts[0].overhead_ms >= -3

    wait_for(written, what="the workers' clocks to be written down")
    (account,) = device_times(day=None)
    assert account.billed_ms == spoken_ms
    assert account.canary_ms > 0
    parts = (account.billed_ms, account.unbilled_ms, account.canary_ms, account.idle_ms, account.overhead_ms)
    assert sum(parts) == account.up_ms
    assert account.idle_ms > 0
    assert run(CHECK, day=None).differing == 0
