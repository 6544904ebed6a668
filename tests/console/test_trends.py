"""What the pool's time went to, waits and failures over time, to the millisecond from rows that the tests made."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.console.overview_charts import (
    failures_chart,
    jobs_chart,
    latency_charts,
    overview_charts,
    pool_chart,
)
from portal.console.trends import FailuresByKind, JobsByMinute, Latencies, PoolShare, buckets
from portal.lib.queues import redis_connection
from tests.console.rows import NOW, ago, attempt, device, finished_job, job
from tts.models import Device, DeviceSample, Resolution
from tts.states import AttemptState, JobClass, JobState, SegmentState

pytestmark = pytest.mark.django_db
HALF_HOUR_MS = 30 * 60 * 1000


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    redis_connection().flushdb()


def was_there(on: Device, *, minutes: int) -> None:
    """The device left figures in each of the latest minutes."""
    DeviceSample.objects.bulk_create(
        DeviceSample(device=on, resolution=Resolution.MINUTE, taken_at=ago(minutes=number + 1))
        for number in range(minutes)
    )


def spoken(on: Device, *, from_s: float, seconds: float | None, **fields: object) -> None:
    """An attempt that began so long ago and took so long; None: it still runs."""
    begun = ago(seconds=from_s)
    attempt(
        job(created_at=begun, segment_state=SegmentState.SUCCEEDED),
        on,
        **{
            "state": AttemptState.SUCCEEDED,
            "bound_at": begun,
            "started_at": begun,
            "finished_at": None if seconds is None else begun + timedelta(seconds=seconds),
            **fields,
        },
    )


def test_buckets_begin_at_whole_steps_and_the_last_one_holds_now() -> None:
    found = buckets(now=NOW + timedelta(minutes=5), span=timedelta(hours=2), step=timedelta(minutes=30))
    assert found == [
        NOW - timedelta(minutes=90),
        NOW - timedelta(minutes=60),
        NOW - timedelta(minutes=30),
        NOW,
    ]


def test_time_is_split_at_the_border_of_two_buckets() -> None:
    busy = device()
    was_there(busy, minutes=60)
    # From 11:29:50 to 11:30:20.
    spoken(busy, from_s=30 * 60 + 10, seconds=30)
    share = PoolShare(now=NOW)
    assert share.busy[-3:] == [10_000, 20_000, 0]
    assert share.idle[-3:] == [HALF_HOUR_MS - 10_000, HALF_HOUR_MS - 20_000, 0]


def test_failed_and_lost_time_is_told_apart_and_running_work_counts_until_now() -> None:
    sick = device(slots=2)
    was_there(sick, minutes=30)
    spoken(sick, from_s=600, seconds=20, state=AttemptState.FAILED)
    spoken(sick, from_s=500, seconds=10, state=AttemptState.LOST)
    spoken(sick, from_s=400, seconds=5, state=AttemptState.CANCELED)
    spoken(sick, from_s=7, seconds=None, state=AttemptState.RUNNING)
    share = PoolShare(now=NOW)
    assert share.failed[-2] == 30_000
    assert share.busy[-2] == 12_000
    # Two slots had two times half an hour to give.
    assert share.idle[-2] == 2 * HALF_HOUR_MS - 42_000


def test_the_pool_chart_says_the_finding() -> None:
    assert pool_chart(PoolShare(now=NOW)).title == "No device was there in the last 24 hours"
    redis_connection().flushdb()
    busy = device()
    was_there(busy, minutes=60)
    spoken(busy, from_s=1800, seconds=900)
    spoken(busy, from_s=600, seconds=36, state=AttemptState.FAILED)
    chart = pool_chart(PoolShare(now=NOW))
    assert chart.title == "Busy for 25 % of the last 24 hours, failed work took 1.0 %"
    assert chart.columns[-2].text == "busy 50 %, failed 2.0 %, idle 48 %"
    assert chart.columns[0].text == "no figures"


def test_waits_are_told_by_class_and_hour() -> None:
    for wait in (100, 200, 900):
        finished_job(created_at=ago(minutes=90), wait_ms=wait, first_audio_ms=wait + 50, total_ms=2_000)
    finished_job(
        created_at=ago(minutes=20),
        wait_ms=4_000,
        first_audio_ms=4_100,
        total_ms=9_000,
        job_class=JobClass.BATCH,
    )
    latencies = Latencies(now=NOW)
    assert latencies.classes() == [JobClass.INTERACTIVE, JobClass.BATCH]
    p50, p95, p99 = latencies.lines(JobClass.INTERACTIVE, "wait")
    assert p50[-3:] == [0.2, None, None]
    assert p95[-3] == pytest.approx(0.83)
    assert p99[-3] == pytest.approx(0.886)
    assert latencies.lines(JobClass.BATCH, "first_audio")[0][-2] == pytest.approx(4.1)
    assert [chart.title for chart in latency_charts(latencies)] == [
        "Interactive, wait for a device: p95 lately 0.83 s, at worst 0.83 s",
        "Interactive, first audio: p95 lately 0.88 s, at worst 0.88 s",
        "Batch, wait for a device: p95 lately 4 s, at worst 4 s",
        "Batch, first audio: p95 lately 4.1 s, at worst 4.1 s",
    ]


def test_jobs_are_counted_by_minute_with_those_that_failed() -> None:
    assert jobs_chart(JobsByMinute(now=NOW)).title == "Jobs of the last hour: 0, of which failed: 0"
    job(created_at=ago(seconds=30))
    job(created_at=ago(seconds=40), state=JobState.FAILED, segment_state=SegmentState.FAILED)
    job(created_at=ago(minutes=61))
    by_minute = JobsByMinute(now=NOW)
    assert (by_minute.others[-2], by_minute.failed[-2]) == (1, 1)
    assert sum(by_minute.others) == 1
    assert jobs_chart(by_minute).title == "Jobs of the last hour: 2, of which failed: 1"


def test_failures_are_drawn_by_kind_the_most_frequent_first_and_the_rest_together() -> None:
    assert failures_chart(FailuresByKind(now=NOW)).title == "No attempt failed in the last 24 hours"
    redis_connection().flushdb()
    sick = device()
    for number, code in enumerate(["gpu_oom"] * 3 + ["engine_died"] * 2 + ["a", "b", "c", "d"]):
        spoken(sick, from_s=60 + number, seconds=1, state=AttemptState.FAILED, error_code=code)
    failures = FailuresByKind(now=NOW)
    assert [(code, sum(values)) for code, values in failures.kinds] == [
        ("gpu_oom", 3),
        ("engine_died", 2),
        ("a", 1),
        ("b", 1),
    ]
    assert failures.rest is not None
    assert sum(failures.rest) == 2
    assert failures_chart(failures).title == "Most failed attempts of the last 24 hours: gpu_oom, 3 of 9"


def test_every_chart_of_the_overview_has_an_id_of_its_own() -> None:
    finished_job(created_at=ago(minutes=90), wait_ms=1, first_audio_ms=50, total_ms=2_000)
    ids = [chart.id for chart in overview_charts(now=NOW)]
    assert ids == ["pool", "jobs", "wait-interactive", "first_audio-interactive", "failed-attempts"]


def test_a_moment_beyond_the_day_is_left_out() -> None:
    finished_job(created_at=ago(hours=25), wait_ms=1, first_audio_ms=2, total_ms=3)
    assert Latencies(now=NOW).classes() == []
