"""The one line that says whether all is well, and that the page's cost does not grow with what it shows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from portal.console.overview import Overview, Problem, problems_of, read_overview
from portal.console.selectors import device_rows, failure_rows, live_attempts, queue_rows
from portal.lib.clock import database_now
from portal.lib.queues import redis_connection
from tests.console.rows import NOW, ago, attempt, device, finished_job, job, somebody, workspace
from tts.models import Device
from tts.states import AttemptState, DeviceState, JobState, SegmentState

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    redis_connection().flushdb()


def found() -> list[Problem]:
    attempts = live_attempts()
    return problems_of(
        devices=device_rows(attempts=attempts, now=NOW),
        queues=queue_rows(attempts=attempts, now=NOW),
        failures=failure_rows(now=NOW),
    )


def problems() -> list[str]:
    return [problem.text for problem in found()]


def test_a_ready_device_and_short_queues_are_no_problem() -> None:
    device()
    job(created_at=ago(seconds=30))
    assert problems() == []


def test_without_a_device_nothing_can_be_spoken() -> None:
    assert problems() == ["No device is ready. Nothing can be spoken."]


def test_devices_that_are_out_are_counted() -> None:
    device("GPU-1")
    device("GPU-2", state=DeviceState.QUARANTINED)
    device("GPU-3", heartbeat_at=ago(minutes=1))
    device("GPU-4", heartbeat_at=ago(minutes=1))
    assert problems() == ["1 device is quarantined.", "2 devices send no heartbeat."]


def test_interactive_work_that_waits_too_long_is_a_problem_and_batch_work_is_not() -> None:
    device()
    job(created_at=ago(hours=2), job_class="batch")
    assert problems() == []
    job(created_at=ago(seconds=31))
    (problem,) = problems()
    assert problem.startswith("Interactive work has waited ")


def test_a_bound_attempt_that_nobody_takes_back_is_a_problem() -> None:
    bound = job(created_at=ago(minutes=1), segment_state=SegmentState.BOUND)
    held_up = attempt(bound, device(), slot=0, state=AttemptState.BOUND, bound_at=ago(seconds=10))
    assert problems() == []
    held_up.bound_at = ago(seconds=11)
    held_up.save(update_fields=["bound_at"])
    assert problems() == ["An attempt waits for its worker and is not taken back. Is the clock running?"]


def test_many_failed_attempts_are_a_problem() -> None:
    sick = device()
    for number in range(5):
        broken = job(created_at=ago(minutes=5), state=JobState.FAILED, segment_state=SegmentState.FAILED)
        assert problems() == []
        attempt(broken, sick, state=AttemptState.FAILED, error_code=f"code-{number}")
    assert problems() == ["5 attempts failed in the last hour."]


def test_every_problem_leads_to_a_page_that_shows_its_cause(operator_client: Client) -> None:
    device("GPU-1", state=DeviceState.QUARANTINED)
    job(created_at=ago(seconds=31))
    bound = job(created_at=ago(minutes=1), segment_state=SegmentState.BOUND)
    attempt(bound, device("GPU-2"), slot=0, state=AttemptState.BOUND, bound_at=ago(seconds=11))
    for number in range(5):
        attempt(bound, device(f"GPU-sick-{number}"), attempt_number=number + 2, state=AttemptState.FAILED)
    addresses = [problem.address for problem in found()]
    assert addresses == [
        "/console/devices/",
        "/console/queue/#wire",
        "/console/queue/",
        "/console/log/?kind=attempts&outcome=failed",
    ]
    for address in addresses:
        assert operator_client.get(address).status_code == 200


def fill(count: int) -> None:
    """`count` more of everything that the overview shows, live and ended, by people of their own."""
    for number in range(count):
        owner = workspace(f"Workspace {number}")
        busy = device(f"GPU-{Device.objects.count()}", slots=2)
        running = job(
            created_at=ago(seconds=9),
            owner=owner,
            created_by=somebody(f"u{Device.objects.count()}@example.com"),
            segment_state=SegmentState.RUNNING,
        )
        attempt(running, busy, slot=1)
        job(created_at=ago(seconds=9), owner=owner, segments=2)
        done = finished_job(created_at=ago(minutes=5), wait_ms=1, first_audio_ms=2, total_ms=3, owner=owner)
        attempt(done, busy, state=AttemptState.FAILED, error_code=f"code-{number}")


def queries_of_an_overview(*, remembered: bool = False) -> int:
    if not remembered:
        redis_connection().flushdb()
    with CaptureQueriesContext(connection) as queries:
        read_overview()
    return len(queries)


def test_the_number_of_queries_does_not_depend_on_how_much_there_is() -> None:
    empty = queries_of_an_overview()
    fill(1)
    few = queries_of_an_overview()
    fill(6)
    assert queries_of_an_overview() == few
    assert empty <= few <= 16
    # The walks through a day's jobs and attempts are made once for everybody who looks within half a minute.
    assert queries_of_an_overview(remembered=True) == few - 9


def test_the_counts_at_the_top_add_up() -> None:
    fill(2)
    Device.objects.update(heartbeat_at=database_now())
    shown = read_overview()
    assert isinstance(shown, Overview)
    assert (shown.ready_count, shown.busy_slot_count, shown.slot_count) == (2, 2, 4)
    assert shown.queued_segment_count == 4
    assert database_now() - shown.fresh_at < timedelta(minutes=1)
