"""Percentiles, exactly as PostgreSQL interpolates them."""

from __future__ import annotations

import pytest

from portal.console.latency import Figure, LatencyRow, latency_rows, measure_latency
from tests.console.rows import NOW, ago, finished_job, job, ms
from tts.states import JobClass, JobState, SegmentState

pytestmark = pytest.mark.django_db

NONE = Figure(count=0, p50_ms=None, p95_ms=None, p99_ms=None)


def rows() -> dict[tuple[str, str], LatencyRow]:
    return {(row.job_class, row.window): row for row in latency_rows(measure_latency(now=NOW))}


def test_without_jobs_every_figure_is_empty() -> None:
    found = rows()
    assert list(found) == [
        (job_class, window)
        for job_class in ("", "interactive", "standard", "batch")
        for window in ("hour", "day")
    ]
    assert all((row.wait, row.first_audio, row.total) == (NONE, NONE, NONE) for row in found.values())


def test_percentiles_are_interpolated_between_the_jobs() -> None:
    for number in range(1, 6):  # waits of 100, 200, 300, 400 and 500 ms
        finished_job(
            created_at=ago(minutes=number),
            wait_ms=100 * number,
            first_audio_ms=1_000 * number,
            total_ms=10_000 * number,
        )
    row = rows()["", "hour"]
    # The 95th percentile of five lies 0.8 of the way from the fourth to the fifth, the 99th 0.96 of it.
    assert row.wait == Figure(count=5, p50_ms=300, p95_ms=480, p99_ms=496)
    assert row.first_audio == Figure(count=5, p50_ms=3_000, p95_ms=4_800, p99_ms=4_960)
    assert row.total == Figure(count=5, p50_ms=30_000, p95_ms=48_000, p99_ms=49_600)


def test_the_median_of_two_lies_between_them() -> None:
    for wait_ms in (100, 301):
        finished_job(created_at=ago(minutes=5), wait_ms=wait_ms, first_audio_ms=400, total_ms=500)
    # 200.5 ms, 290.95 ms and 298.99 ms, rounded half up.
    assert rows()["", "hour"].wait == Figure(count=2, p50_ms=201, p95_ms=291, p99_ms=299)


def test_windows_count_by_when_a_job_was_submitted() -> None:
    finished_job(created_at=ago(minutes=60), wait_ms=100, first_audio_ms=100, total_ms=100)
    finished_job(created_at=ago(minutes=60, milliseconds=1), wait_ms=300, first_audio_ms=300, total_ms=300)
    finished_job(created_at=ago(hours=24), wait_ms=500, first_audio_ms=500, total_ms=500)
    finished_job(created_at=ago(hours=24, milliseconds=1), wait_ms=900, first_audio_ms=900, total_ms=900)
    found = rows()
    assert found["", "hour"].wait == Figure(count=1, p50_ms=100, p95_ms=100, p99_ms=100)
    assert found["", "day"].wait == Figure(count=3, p50_ms=300, p95_ms=480, p99_ms=496)


def test_classes_are_told_apart() -> None:
    finished_job(created_at=ago(minutes=5), wait_ms=100, first_audio_ms=200, total_ms=300)
    finished_job(
        created_at=ago(hours=5),
        wait_ms=9_000,
        first_audio_ms=9_500,
        total_ms=60_000,
        job_class=JobClass.BATCH,
    )
    found = rows()
    assert found["interactive", "hour"].wait == Figure(count=1, p50_ms=100, p95_ms=100, p99_ms=100)
    assert found["batch", "hour"].wait == NONE
    assert found["batch", "day"].total == Figure(count=1, p50_ms=60_000, p95_ms=60_000, p99_ms=60_000)
    assert found["standard", "day"].wait == NONE
    assert found["", "day"].wait == Figure(count=2, p50_ms=4_550, p95_ms=8_555, p99_ms=8_911)


def test_a_job_counts_only_for_what_it_has_come_to() -> None:
    created_at = ago(minutes=5)
    job(created_at=created_at)  # waits
    job(
        created_at=created_at,
        state=JobState.RUNNING,
        started_at=created_at + ms(50),
        segment_state=SegmentState.RUNNING,
    )
    job(
        created_at=created_at,
        state=JobState.FAILED,
        started_at=created_at + ms(150),
        first_audio_at=created_at + ms(250),
        finished_at=created_at + ms(350),
        segment_state=SegmentState.FAILED,
    )
    row = rows()["", "hour"]
    assert row.wait == Figure(count=2, p50_ms=100, p95_ms=145, p99_ms=149)
    assert row.first_audio == Figure(count=1, p50_ms=250, p95_ms=250, p99_ms=250)
    # How long a failure took says nothing about how long customers wait for speech.
    assert row.total == NONE
