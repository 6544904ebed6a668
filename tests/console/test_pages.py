"""What stands on the overview's page."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from portal.lib.clock import database_now
from portal.lib.queues import redis_connection
from tests.console import rows
from tests.factories import make_job, make_user, personal_workspace
from tts.models import Device, Voice
from tts.states import AttemptState, JobState, SegmentState


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    redis_connection().flushdb()


def page(client: Client, place: str = "/console/") -> str:
    response = client.get(place)
    assert response.status_code == 200
    return response.content.decode()


def text_of(html: str) -> str:
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", html).split()))


def part(html: str, part_id: str) -> str:
    """The text of one part of the page, without its tags."""
    found = re.search(rf'<(\w+)[^>]*\bid="{part_id}".*?</\1>', html, re.DOTALL)
    assert found is not None, part_id
    return " ".join(re.sub(r"<[^>]+>", " ", found.group(0)).split())


PLACES = [
    "/console/",
    "/console/devices/",
    "/console/queue/",
    "/console/jobs/",
    "/console/log/",
    "/console/audit/",
]


def test_an_empty_pool_says_what_to_do_everywhere(operator_client: Client) -> None:
    html = page(operator_client)
    assert "No device is ready. Nothing can be spoken." in html
    assert part(html, "failure-rows") == "Nothing failed."
    assert "No device was there in the last 24 hours" in html
    assert "No device has joined the pool yet" in page(operator_client, "/console/devices/")
    queue = page(operator_client, "/console/queue/")
    assert part(queue, "wire-rows") == "No slots yet."
    assert part(queue, "customer-rows") == "Nobody waits."
    # Three classes without a wait, time that they need, a share that they got and one that is due.
    assert part(queue, "queue-rows").count("–") == 12
    jobs = page(operator_client, "/console/jobs/")
    assert part(jobs, "job-rows") == "Nobody has submitted anything yet."
    assert part(page(operator_client, "/console/audit/"), "audit-rows") == "Nothing yet."


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
    assert "All is well." in page(operator_client)
    devices = page(operator_client, "/console/devices/")
    card = text_of(devices)
    assert "GPU-abc" in card
    assert "Busy" in card
    assert "Acme & Sons, segment 2 of 2" in card
    assert "attempt 2" in card
    assert f'href="/console/jobs/{running.pk}/"' in devices
    html = page(operator_client, "/console/jobs/")
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
    for place in [*PLACES, f"/console/jobs/{running.pk}/", f"/console/devices/{busy.pk}/"]:
        assert "What the customer wrote" not in page(operator_client, place)


def test_a_failure_is_shown_with_its_code(operator_client: Client) -> None:
    now = database_now()
    sick = rows.device("GPU-1", heartbeat_at=now)
    broken = rows.job(
        created_at=now, state=JobState.FAILED, error_code="engine_failed", segment_state=SegmentState.FAILED
    )
    rows.attempt(broken, sick, state=AttemptState.FAILED, error_code="gpu_oom", bound_at=now)
    html = page(operator_client)
    assert part(html, "failure-rows") == "engine_failed a job 1 1 gpu_oom an attempt 1 1"
    assert "Most failed attempts of the last 24 hours: gpu_oom, 1 of 1" in html
    assert "Jobs of the last hour: 1, of which failed: 1" in html
    assert "Failed engine_failed" in part(page(operator_client, "/console/jobs/"), "job-rows")


def test_a_silent_device_is_told_by_word_and_shape(operator_client: Client) -> None:
    rows.device("GPU-1")  # heard of at a fixed moment, which is long past or yet to come
    Device.objects.update(heartbeat_at=database_now() - rows.ms(60_000))
    html = page(operator_client, "/console/devices/")
    assert "No heartbeat" in html
    assert re.search(r'<span class="badge badge--bad"><svg', html)
    # Nobody would carry anything out.
    assert "data-act" not in html


def full(client: Client) -> list[str]:
    """A pool with something of everything, and the addresses of its pages."""
    now = database_now()
    busy = rows.device("GPU-1", slots=2, heartbeat_at=now)
    rows.device("GPU-2", heartbeat_at=now)
    for number in range(2):
        job = rows.job(created_at=now, segment_state=SegmentState.RUNNING, owner=rows.workspace())
        rows.attempt(job, busy, slot=number, bound_at=now, started_at=now)
    alice = make_user("alice")
    waiting = make_job(personal_workspace(alice), alice, Voice.objects.filter(kind="preset")[0])
    client.post(f"/console/devices/{busy.pk}/drain/", {"reason": "A test", "epoch": busy.epoch})
    client.post(f"/console/jobs/{waiting.pk}/cancel/", {"reason": "A test"})
    make_job(personal_workspace(alice), alice, Voice.objects.filter(kind="preset")[0])
    return [
        *PLACES,
        f"/console/devices/{busy.pk}/",
        f"/console/jobs/{waiting.pk}/",
        "/console/log/?kind=requests",
    ]


def test_what_a_page_takes_over_from_itself_is_there(operator_client: Client) -> None:
    """A part that is named and missing would silently stay old."""
    for place in full(operator_client):
        html = page(operator_client, place)
        named = re.search(r'hx-select-oob="([^"]+)"', html)
        assert named is not None, place
        parts = [name.removeprefix("#") for name in named.group(1).split(",")]
        assert len(parts) >= 2
        for name in parts:
            assert html.count(f' id="{name}"') == 1, (place, name)


def test_no_two_parts_of_a_full_page_have_the_same_id(operator_client: Client) -> None:
    for place in full(operator_client):
        ids = re.findall(r'\bid="([^"]+)"', page(operator_client, place))
        assert sorted(ids) == sorted(set(ids)), place


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


@pytest.mark.parametrize("place", PLACES)
def test_a_page_costs_no_more_queries_when_there_is_more(operator_client: Client, place: str) -> None:
    def queries() -> int:
        page(operator_client, place)
        redis_connection().flushdb()
        with CaptureQueriesContext(connection) as captured:
            page(operator_client, place)
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
