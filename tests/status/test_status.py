"""How the service says it is: to tenants, to load balancers, in the right words and without noise in the log."""

from __future__ import annotations

import logging
import socket
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.test import Client

from portal.lib.clock import database_now
from portal.lib.queues import redis_connection
from tests.cast import Api
from tests.console.rows import attempt, device, job, ms, workspace
from tests.redis_clients import forget_redis_clients
from tts.models import Device, FairShareClass
from tts.selectors.waits import expected_waits, recent_waits
from tts.states import AttemptState, DeviceState, JobClass, JobState, SegmentState

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    redis_connection().flushdb()


def ready(name: str = "GPU-1", *, slots: int = 1) -> Device:
    return device(name, slots=slots, heartbeat_at=database_now())


def started(on: Device, *, wait_ms: int, minutes_ago: float = 1, job_class: str = "interactive") -> None:
    """A job that waited so long and started so long ago; its attempt took two seconds."""
    begun = database_now() - timedelta(minutes=minutes_ago)
    made = job(
        created_at=begun - ms(wait_ms),
        started_at=begun,
        job_class=job_class,
        state=JobState.SUCCEEDED,
        segment_state=SegmentState.SUCCEEDED,
    )
    attempt(
        made,
        on,
        state=AttemptState.SUCCEEDED,
        bound_at=begun,
        started_at=begun,
        finished_at=begun + timedelta(seconds=2),
    )


# -- /api/v1/status ------------------------------------------------------------------------------------------


def test_without_a_device_the_service_is_degraded(alice_api: Api) -> None:
    body = alice_api.get("/api/v1/status").json()
    assert (body["level"], body["degraded"], body["ready_devices"]) == ("degraded", True, 0)
    assert body["classes"] == [
        {
            "job_class": job_class,
            "started_jobs": 0,
            "wait_p50_ms": None,
            "wait_p95_ms": None,
            "expected_wait_ms": None,
        }
        for job_class in ("interactive", "standard", "batch")
    ]


def test_a_pool_without_work_makes_nobody_wait(alice_api: Api) -> None:
    ready()
    body = alice_api.get("/api/v1/status").json()
    assert (body["level"], body["degraded"], body["ready_devices"]) == ("normal", False, 1)
    assert [row["expected_wait_ms"] for row in body["classes"]] == [0, 0, 0]


def test_the_waits_of_the_last_quarter_of_an_hour_are_told_by_class(alice_api: Api) -> None:
    on = ready()
    for wait_ms in (100, 200, 900):
        started(on, wait_ms=wait_ms)
    started(on, wait_ms=99_000, minutes_ago=16)
    started(on, wait_ms=3_600_000, job_class="batch")
    interactive, standard, batch = alice_api.get("/api/v1/status").json()["classes"]
    assert (interactive["started_jobs"], interactive["wait_p50_ms"], interactive["wait_p95_ms"]) == (
        3,
        200,
        830,
    )
    assert (standard["started_jobs"], standard["wait_p50_ms"]) == (0, None)
    assert (batch["started_jobs"], batch["wait_p50_ms"]) == (1, 3_600_000)


def test_the_status_is_measured_once_for_everybody_who_asks_within_seconds(alice_api: Api) -> None:
    ready()
    first = alice_api.get("/api/v1/status").json()
    Device.objects.update(state=DeviceState.QUARANTINED)
    assert alice_api.get("/api/v1/status").json() == first


def test_the_status_is_for_tenants(client: Client) -> None:
    assert client.get("/api/v1/status").status_code == 401


def test_the_state_of_single_devices_is_not_the_tenants_affair(alice_api: Api) -> None:
    ready("GPU-secret")
    assert b"GPU-secret" not in alice_api.get("/api/v1/status").content


# -- What to expect ------------------------------------------------------------------------------------------


def test_a_job_of_several_segments_counts_once() -> None:
    on = ready()
    begun = database_now() - timedelta(minutes=1)
    made = job(created_at=begun - ms(500), started_at=begun, segments=3, state=JobState.RUNNING)
    for index in range(3):
        attempt(made, on, index=index, bound_at=begun, started_at=begun)
    waits = {wait.job_class: wait for wait in recent_waits()}
    assert (waits["interactive"].jobs, waits["interactive"].p50_ms) == (1, 500)


def test_a_new_job_waits_for_its_classes_turn() -> None:
    on = ready(slots=2)
    for _ in range(3):
        started(on, wait_ms=1)
    weights = dict(FairShareClass.objects.values_list("job_class", "weight"))
    for number, job_class in enumerate((JobClass.INTERACTIVE, JobClass.BATCH)):
        waiting = job(created_at=database_now(), job_class=job_class, owner=workspace(str(number)))
        running = job(created_at=database_now(), segment_state=SegmentState.RUNNING)
        attempt(running, on, slot=number, bound_at=database_now())
        assert waiting.state == JobState.QUEUED
    # A slot ends a segment of two seconds every second.
    both = weights["interactive"] + weights["batch"]
    assert expected_waits() == {
        "interactive": round(1_000 * both / weights["interactive"]),
        "standard": round(1_000 * (weights["standard"] + both) / weights["standard"]),
        "batch": round(1_000 * both / weights["batch"]),
    }


# -- /healthz and /readyz ------------------------------------------------------------------------------------


def test_a_process_that_lives_says_so_without_its_servers(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_it_is_ready_with_a_device(client: Client) -> None:
    ready()
    response = client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "ready")
    assert response.json()["checks"] == {"database": True, "redis": True, "device": True}


def test_without_a_device_it_is_not_ready_and_no_error_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    device(state=DeviceState.QUARANTINED, heartbeat_at=database_now())
    with caplog.at_level(logging.INFO):
        response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json() == {
        "status": "not_ready",
        "checks": {"database": True, "redis": True, "device": False},
    }
    assert [record.getMessage() for record in caplog.records] == ["not_ready"]
    assert [record.levelno for record in caplog.records] == [logging.INFO]


def test_without_redis_it_is_not_ready(client: Client, settings: LazySettings) -> None:
    ready()
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        settings.REDIS_URL = f"redis://127.0.0.1:{nobody.getsockname()[1]}/0"
    forget_redis_clients()
    try:
        response = client.get("/readyz")
    finally:
        forget_redis_clients()
    assert response.status_code == 503
    assert response.json()["checks"] == {"database": True, "redis": False, "device": True}
