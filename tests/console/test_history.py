"""The last hours, measured once for everybody who looks within half a minute."""

from __future__ import annotations

import socket

import pytest
from django.conf import LazySettings

from portal.console.history import read_history
from portal.console.latency import Figure
from portal.console.selectors import FailureRow
from portal.lib.queues import redis_connection
from tests.console.rows import NOW, ago, attempt, device, finished_job, job, ms
from tts.states import AttemptState, JobState, SegmentState

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    redis_connection().flushdb()


def fill() -> None:
    finished_job(created_at=ago(minutes=5), wait_ms=100, first_audio_ms=200, total_ms=300)
    broken = job(
        created_at=ago(minutes=5),
        state=JobState.FAILED,
        error_code="engine_failed",
        segment_state=SegmentState.FAILED,
    )
    attempt(broken, device(), state=AttemptState.FAILED, error_code="gpu_oom")


def test_what_is_remembered_is_what_was_measured() -> None:
    fill()
    measured = read_history(now=NOW)
    remembered = read_history(now=NOW + ms(10_000))
    assert remembered == measured
    assert remembered.measured_at == NOW
    assert remembered.latency[0].wait == Figure(count=1, p50_ms=100, p95_ms=100, p99_ms=100)
    assert remembered.failures == [
        FailureRow("job", "engine_failed", 1, 1),
        FailureRow("attempt", "gpu_oom", 1, 1),
    ]


def test_once_it_is_forgotten_it_is_measured_again() -> None:
    assert read_history(now=NOW).failures == []
    fill()
    assert read_history(now=NOW).failures == []
    redis_connection().flushdb()
    assert len(read_history(now=NOW).failures) == 2


def test_while_redis_is_away_it_is_measured_each_time(settings: LazySettings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"redis://127.0.0.1:{nobody.getsockname()[1]}/0"
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": address}}
    assert read_history(now=NOW).failures == []
    fill()
    assert len(read_history(now=NOW).failures) == 2
