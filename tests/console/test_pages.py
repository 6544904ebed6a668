"""What stands on the overview's page."""

from __future__ import annotations

import re

import pytest
from django.conf import LazySettings
from django.test import Client

from portal.lib.clock import database_now
from portal.lib.queues import redis_connection
from tests.console import rows
from tts.models import Device
from tts.states import AttemptState, JobState, SegmentState


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    redis_connection().flushdb()


def page(client: Client) -> str:
    response = client.get("/console/")
    assert response.status_code == 200
    return response.content.decode()


def part(html: str, part_id: str) -> str:
    """The text of one part of the page, without its tags."""
    found = re.search(rf'<(\w+)[^>]*\bid="{part_id}".*?</\1>', html, re.DOTALL)
    assert found is not None, part_id
    return " ".join(re.sub(r"<[^>]+>", " ", found.group(0)).split())


def test_an_empty_pool_says_what_to_do_everywhere(operator_client: Client) -> None:
    html = page(operator_client)
    assert "No device is ready. Nothing can be spoken." in html
    assert part(html, "device-rows").startswith("No device has joined the pool yet.")
    assert part(html, "wire-rows") == "No slots yet."
    assert part(html, "failure-rows") == "Nothing failed."
    assert part(html, "job-rows") == "Nobody has submitted anything yet."
    assert (
        part(html, "queue-rows").count("–") == 6
    )  # three classes without a wait and without time that they need


def test_a_pool_at_work_is_shown(operator_client: Client) -> None:
    now = database_now()
    busy = rows.device("GPU-abc", restarts=2, epoch=7, heartbeat_at=now, memory_used_bytes=2**30)
    owner = rows.workspace("Acme & Sons")
    running = rows.job(
        created_at=now,
        owner=owner,
        created_by=rows.somebody("alice@example.com"),
        client_address="203.0.113.9",
        state=JobState.RUNNING,
        segment_state=SegmentState.RUNNING,
        characters=1_234,
        segments=2,
    )
    rows.attempt(running, busy, slot=0, index=1, attempt_number=2, bound_at=now, started_at=now, gpu_ms=700)
    html = page(operator_client)
    assert "All is well." in html
    devices = part(html, "device-rows")
    assert "GPU-abc" in devices
    assert "Busy" in devices
    assert "Acme &amp; Sons, segment 2 of 2" in devices
    assert "attempt 2" in devices
    jobs = part(html, "job-rows")
    assert "alice@example.com Acme &amp; Sons" in jobs
    for shown in (
        "203.0.113.9",
        "1,234",
        "plain",
        "Interactive",
        "0.70 s",
        "GPU-abc",
        "Speaking",
        str(running.pk)[:8],
    ):
        assert shown in jobs
    assert "What the customer wrote" not in html


def test_a_failure_is_shown_with_its_code(operator_client: Client) -> None:
    now = database_now()
    sick = rows.device("GPU-1", heartbeat_at=now)
    broken = rows.job(
        created_at=now, state=JobState.FAILED, error_code="engine_failed", segment_state=SegmentState.FAILED
    )
    rows.attempt(broken, sick, state=AttemptState.FAILED, error_code="gpu_oom")
    html = page(operator_client)
    assert part(html, "failure-rows") == "engine_failed a job 1 1 gpu_oom an attempt 1 1"
    assert "Failed engine_failed" in part(html, "job-rows")


def test_a_silent_device_is_told_by_word_and_shape(operator_client: Client) -> None:
    rows.device("GPU-1")  # heard of at a fixed moment, which is long past or yet to come
    Device.objects.update(heartbeat_at=database_now() - rows.ms(60_000))
    html = page(operator_client)
    assert "No heartbeat" in part(html, "device-rows")
    assert re.search(r'<span class="badge badge--bad"><svg', html)


def test_what_the_page_takes_over_from_itself_is_there(operator_client: Client) -> None:
    """A part that is named and missing would silently stay old."""
    html = page(operator_client)
    named = re.search(r'hx-select-oob="([^"]+)"', html)
    assert named is not None
    parts = [name.removeprefix("#") for name in named.group(1).split(",")]
    assert len(parts) == 11
    for name in parts:
        assert html.count(f'id="{name}"') == 1


def test_no_two_parts_of_a_full_page_have_the_same_id(operator_client: Client) -> None:
    now = database_now()
    busy = rows.device("GPU-1", slots=2, heartbeat_at=now)
    for number in range(2):
        job = rows.job(created_at=now, segment_state=SegmentState.RUNNING, owner=rows.workspace())
        rows.attempt(job, busy, slot=number, bound_at=now)
    ids = re.findall(r'\bid="([^"]+)"', page(operator_client))
    assert sorted(ids) == sorted(set(ids))


def test_the_page_says_how_fresh_it_is_and_works_without_scripts(operator_client: Client) -> None:
    html = page(operator_client)
    assert re.search(
        r'id="console-fresh">As of <time datetime="[^"]+" data-local="clock">\d\d:\d\d:\d\d UTC</time>', html
    )
    assert re.search(r'<a class="button button--small without-scripts" href="/console/">', html)


def test_the_console_speaks_chinese(operator_client: Client) -> None:
    response = operator_client.get("/console/", headers={"Accept-Language": "zh-hans"})
    html = response.content.decode()
    assert '<html lang="zh-hans"' in html
    assert "All classes" not in html


def test_the_page_costs_no_more_queries_when_there_is_more(
    operator_client: Client, django_assert_max_num_queries: object, settings: LazySettings
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def queries() -> int:
        page(operator_client)
        redis_connection().flushdb()
        with CaptureQueriesContext(connection) as captured:
            page(operator_client)
        return len(captured)

    def fill(count: int) -> None:
        for number in range(count):
            device = rows.device(f"GPU-{Device.objects.count()}", slots=2)
            user = rows.somebody(f"user-{Device.objects.count()}@example.com")
            job = rows.job(created_at=database_now(), segment_state=SegmentState.RUNNING, created_by=user)
            rows.attempt(job, device, slot=number % 2)

    fill(1)
    few = queries()
    fill(8)
    assert queries() == few
