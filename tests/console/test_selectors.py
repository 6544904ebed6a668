"""What operators read, to the millisecond, from rows that the tests made."""

from __future__ import annotations

import socket

import pytest
from django.conf import LazySettings

from accounts.models import ApiKey
from portal.console.selectors import (
    CurrentWork,
    FailureRow,
    QueueRow,
    device_rows,
    failure_rows,
    job_rows,
    live_attempts,
    queue_rows,
)
from portal.lib.queues import redis_connection, slot_queue
from tests.console.rows import NOW, ago, attempt, device, finished_job, job, ms, somebody, workspace
from tts.states import AttemptState, DeviceState, JobClass, JobState, SegmentState

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    redis_connection().flushdb()


# -- Devices -------------------------------------------------------------------------------------------------


def test_without_devices_there_are_no_rows() -> None:
    assert device_rows(attempts=live_attempts(), now=NOW) == []


def test_a_device_is_shown_as_it_stands() -> None:
    device(
        "GPU-7",
        node_name="rack-2",
        model_name="Test GPU",
        engine="cosyvoice",
        engine_version="3.1",
        heartbeat_at=ago(milliseconds=1_499.6),
        restarts=4,
        epoch=9,
        memory_used_bytes=5_000,
        memory_total_bytes=24_000,
    )
    (row,) = device_rows(attempts=[], now=NOW)
    assert (row.name, row.node_name, row.model_name) == ("GPU-7", "rack-2", "Test GPU")
    assert (row.engine, row.engine_version) == ("cosyvoice", "3.1")
    assert (row.state, row.state_label, row.silent, row.takes_work) == ("ready", "Ready", False, True)
    assert row.heartbeat_age_ms == 1_500
    assert (row.restarts, row.epoch) == (4, 9)
    assert (row.memory_used_bytes, row.memory_total_bytes) == (5_000, 24_000)
    (slot,) = row.slots
    assert (slot.number, slot.ready, slot.work, slot.wire_length, slot.unclaimed_ms) == (
        0,
        True,
        None,
        0,
        None,
    )


def test_a_device_that_speaks_is_busy_and_says_with_what() -> None:
    busy = device("GPU-1", slots=2)
    acme = workspace("Acme")
    long_job = job(created_at=ago(minutes=1), owner=acme, segments=3, segment_state=SegmentState.RUNNING)
    running = attempt(long_job, busy, index=2, slot=1, attempt_number=2, started_at=ago(milliseconds=900))
    (row,) = device_rows(attempts=live_attempts(), now=NOW)
    assert (row.state, row.state_label) == ("busy", "Busy")
    assert row.slots[0].work is None
    assert row.slots[1].work == CurrentWork(
        attempt_id=running.pk,
        attempt_number=2,
        job_id=long_job.pk,
        workspace_name="Acme",
        segment_number=3,
        segment_count=3,
        state="running",
        since_ms=900,
    )
    assert row.slots[1].unclaimed_ms is None


def test_an_attempt_that_no_worker_has_claimed_is_told_apart() -> None:
    busy = device("GPU-1")
    bound = attempt(
        job(created_at=ago(minutes=1), segment_state=SegmentState.BOUND),
        busy,
        slot=0,
        state=AttemptState.BOUND,
        bound_at=ago(seconds=4),
    )
    slot_queue(device_id=busy.pk, slot_number=0).push_job_id(f"attempt-{bound.pk}")
    (row,) = device_rows(attempts=live_attempts(), now=NOW)
    (slot,) = row.slots
    assert slot.work is not None
    assert (slot.work.state, slot.work.since_ms) == ("bound", 4_000)
    assert (slot.wire_length, slot.unclaimed_ms) == (1, 4_000)


def test_a_slot_that_names_an_ended_attempt_has_no_work() -> None:
    idle = device("GPU-1")
    attempt(
        job(created_at=ago(minutes=1), segment_state=SegmentState.SUCCEEDED),
        idle,
        slot=0,
        state=AttemptState.SUCCEEDED,
    )
    (row,) = device_rows(attempts=live_attempts(), now=NOW)
    assert (row.state, row.slots[0].work) == ("ready", None)


@pytest.mark.parametrize(
    ("fields", "silent", "takes_work"),
    [
        ({"heartbeat_at": ago(seconds=10)}, False, True),
        ({"heartbeat_at": ago(seconds=10.001)}, True, False),
        ({"heartbeat_at": None}, True, False),
        ({"state": DeviceState.STOPPED, "heartbeat_at": ago(days=3)}, False, False),
        ({"state": DeviceState.QUARANTINED}, False, False),
        ({"state": DeviceState.STARTING}, False, False),
        ({"state": DeviceState.DRAINING}, False, False),
    ],
)
def test_who_takes_work_and_who_is_silent(fields: dict[str, object], silent: bool, takes_work: bool) -> None:
    device("GPU-1", **fields)
    (row,) = device_rows(attempts=[], now=NOW)
    assert (row.silent, row.takes_work) == (silent, takes_work)


def test_a_device_without_a_ready_slot_takes_no_work() -> None:
    device("GPU-1", ready=False)
    assert not device_rows(attempts=[], now=NOW)[0].takes_work


def test_a_clock_that_is_ahead_gives_no_negative_age() -> None:
    device("GPU-1", heartbeat_at=NOW + ms(300))
    assert device_rows(attempts=[], now=NOW)[0].heartbeat_age_ms == 0


def test_devices_come_by_node_and_name() -> None:
    device("GPU-2", node_name="b")
    device("GPU-1", node_name="b")
    device("GPU-9", node_name="a")
    assert [row.name for row in device_rows(attempts=[], now=NOW)] == ["GPU-9", "GPU-1", "GPU-2"]


def test_while_redis_is_away_everything_else_is_still_shown(settings: LazySettings) -> None:
    device("GPU-1")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        settings.REDIS_URL = f"redis://127.0.0.1:{nobody.getsockname()[1]}/0"
    redis_connection.cache_clear()
    try:
        (row,) = device_rows(attempts=[], now=NOW)
    finally:
        redis_connection.cache_clear()
    assert row.slots[0].wire_length is None
    assert row.takes_work


# -- Queues --------------------------------------------------------------------------------------------------


def test_every_class_has_a_row_even_when_nothing_waits() -> None:
    assert queue_rows(attempts=[], now=NOW) == [
        QueueRow(job_class, label, 0, 0, 0, None, 0)
        for job_class, label in [("interactive", "Interactive"), ("standard", "Standard"), ("batch", "Batch")]
    ]


def test_what_waits_and_what_is_in_hand_is_counted_by_class() -> None:
    busy = device("GPU-1")
    job(created_at=ago(seconds=9))
    job(created_at=ago(seconds=4))
    job(created_at=ago(minutes=5), job_class=JobClass.BATCH, segments=4)
    job(created_at=ago(days=1), segment_state=SegmentState.SUCCEEDED)  # has been spoken: waits for nothing
    running = job(created_at=ago(seconds=30), job_class=JobClass.STANDARD, segment_state=SegmentState.RUNNING)
    attempt(running, busy, slot=0)
    assert queue_rows(attempts=live_attempts(), now=NOW) == [
        QueueRow("interactive", "Interactive", 2, 2, 2_000, 9_000, 0),
        QueueRow("standard", "Standard", 0, 0, 0, None, 1),
        QueueRow("batch", "Batch", 4, 1, 4_000, 300_000, 0),
    ]


# -- Jobs ----------------------------------------------------------------------------------------------------


def test_a_job_is_shown_with_who_where_and_how_long() -> None:
    alice = somebody("alice@example.com")
    acme = workspace("Acme")
    key = ApiKey.objects.create(
        workspace=acme, created_by=alice, name="server", prefix="vp_abc", secret_sha256="0" * 64
    )
    done = finished_job(
        created_at=ago(minutes=2),
        wait_ms=250,
        first_audio_ms=400,
        total_ms=1_900,
        owner=acme,
        created_by=alice,
        api_key=key,
        client_address="203.0.113.9",
        characters=120,
        mode="plain",
        segments=2,
    )
    first, second = device("GPU-1"), device("GPU-2")
    attempt(done, first, index=0, state=AttemptState.FAILED, gpu_ms=300, error_code="engine_died")
    attempt(done, second, index=0, attempt_number=2, state=AttemptState.SUCCEEDED, gpu_ms=800)
    attempt(done, second, index=1, state=AttemptState.SUCCEEDED, gpu_ms=450)
    (row,) = job_rows(now=NOW)
    assert (row.id, row.created_at) == (done.pk, ago(minutes=2))
    assert (row.user_email, row.key_prefix, row.workspace_name) == ("alice@example.com", "vp_abc", "Acme")
    assert (row.address, row.characters, row.mode, row.class_label) == (
        "203.0.113.9",
        120,
        "plain",
        "Interactive",
    )
    assert (row.wait_ms, row.gpu_ms, row.attempts) == (250, 1_550, 3)
    assert row.device_names == ["GPU-1", "GPU-2"]
    assert (row.state, row.state_label, row.error_code) == ("succeeded", "Done", "")


def test_a_job_that_waits_shows_how_long_so_far() -> None:
    job(created_at=ago(seconds=7))
    (row,) = job_rows(now=NOW)
    assert (row.wait_ms, row.gpu_ms, row.device_names, row.state) == (7_000, 0, [], "queued")


def test_a_job_that_ended_before_it_started_waited_until_its_end() -> None:
    job(
        created_at=ago(minutes=9),
        state=JobState.CANCELED,
        finished_at=ago(minutes=8),
        segment_state=SegmentState.CANCELED,
    )
    assert job_rows(now=NOW)[0].wait_ms == 60_000


def test_a_job_whose_submitter_is_gone_is_still_shown() -> None:
    job(created_at=ago(minutes=1), client_address=None)
    (row,) = job_rows(now=NOW)
    assert (row.user_email, row.key_prefix, row.address) == ("", "", "")


def test_the_newest_hundred_jobs_are_shown_newest_first() -> None:
    acme = workspace()
    made = [job(created_at=ago(seconds=age), owner=acme) for age in range(102)]
    assert [row.id for row in job_rows(now=NOW)] == [one.pk for one in made[:100]]


def test_rows_hold_nothing_of_what_was_said() -> None:
    job(created_at=ago(seconds=7))
    assert "What the customer wrote" not in repr(job_rows(now=NOW))


# -- Failures ------------------------------------------------------------------------------------------------


def failed(code: str, *, minutes: float, attempts: tuple[str, ...] = ()) -> None:
    """A job that failed with `code` so many minutes ago, after attempts that failed with theirs."""
    broken = job(
        created_at=ago(minutes=minutes),
        state=JobState.FAILED,
        error_code=code,
        segment_state=SegmentState.FAILED,
    )
    for number, attempt_code in enumerate(attempts, start=1):
        attempt(
            broken,
            device(f"GPU-{broken.pk}-{number}"),
            attempt_number=number,
            state=AttemptState.LOST if attempt_code == "worker_lost" else AttemptState.FAILED,
            error_code=attempt_code,
        )


def test_failures_are_counted_by_code_jobs_first_the_most_frequent_first() -> None:
    failed("engine_failed", minutes=5, attempts=("engine_died", "engine_died", "worker_lost"))
    failed("engine_failed", minutes=200, attempts=("engine_died",))
    failed("budget_exhausted", minutes=10)
    failed("voice_missing", minutes=60)  # exactly an hour ago still counts
    failed("engine_failed", minutes=24 * 60 + 1, attempts=("engine_died",))  # too long ago
    # A failure that a retry mended shows among the attempts alone.
    mended = finished_job(created_at=ago(minutes=30), wait_ms=1, first_audio_ms=2, total_ms=3)
    attempt(mended, device("GPU-mended"), state=AttemptState.FAILED, error_code="gpu_oom")
    assert failure_rows(now=NOW) == [
        FailureRow("job", "engine_failed", 1, 2),
        FailureRow("job", "budget_exhausted", 1, 1),
        FailureRow("job", "voice_missing", 1, 1),
        FailureRow("attempt", "engine_died", 2, 3),
        FailureRow("attempt", "gpu_oom", 1, 1),
        FailureRow("attempt", "worker_lost", 1, 1),
    ]


def test_without_failures_there_are_no_rows() -> None:
    finished_job(created_at=ago(minutes=30), wait_ms=1, first_audio_ms=2, total_ms=3)
    assert failure_rows(now=NOW) == []
