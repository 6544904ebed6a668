"""/metrics: for who has the token, in Prometheus' form, and with numbers that are exact over all processes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from portal.lib.clock import database_now
from portal.logs.models import CounterMark, CounterTotal
from portal.logs.writer import request_log
from portal.metrics.counting import count_what_ended, totals_now
from tests.console.rows import attempt, device, finished_job, job
from tests.factories import make_job, make_user, personal_workspace
from tests.large_tables import COPIES, copy_row, rows_read
from tts.models import Attempt, SynthesisJob, Voice
from tts.states import AttemptState, DeviceState, JobClass, JobState, SegmentState

pytestmark = pytest.mark.django_db
TOKEN = "a-token-of-the-tests"


@pytest.fixture(autouse=True)
def _token(settings: LazySettings) -> Iterator[None]:
    settings.METRICS_TOKEN = TOKEN
    request_log().clear()
    yield
    request_log().clear()


def scrape(client: Client) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Every sample by its name and labels, as Prometheus reads them."""
    response = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 200
    assert response["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(response.content.decode()):
        assert family.documentation, family.name
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {}), (sample.name, labels)
            found[sample.name][labels] = sample.value
    return found


def labels(**values: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(values.items()))


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer nonsense", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer é"]
)
def test_without_the_token_nothing_is_told(client: Client, header: str) -> None:
    response = client.get("/metrics", headers={"Authorization": header} if header else {})
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Bearer realm="metrics"'
    assert b"voicepool_" not in response.content


def test_without_a_token_set_there_is_no_such_page(client: Client, settings: LazySettings) -> None:
    settings.METRICS_TOKEN = ""
    for header in ("Bearer", "Bearer ", "Bearer x"):
        assert client.get("/metrics", headers={"Authorization": header}).status_code == 404


def test_an_empty_pool_has_every_class_and_state(client: Client) -> None:
    found = scrape(client)
    classes = {labels(job_class=job_class.value): 0.0 for job_class in JobClass}
    for name in ("queue_segments", "queue_device_seconds", "queue_oldest_wait_seconds", "segments_in_hand"):
        assert found[f"voicepool_{name}"] == classes
    assert found["voicepool_devices"] == {labels(state=state.value): 0.0 for state in DeviceState}
    assert found["voicepool_holds_open"] == {(): 0.0}
    assert found["voicepool_request_log_dropped_total"] == {(): 0.0}


def test_queues_are_measured_by_class(client: Client) -> None:
    now = database_now()
    job(created_at=now - timedelta(seconds=90), segments=2)
    job(created_at=now - timedelta(seconds=20), segments=3, job_class=JobClass.BATCH)
    running = job(created_at=now, job_class=JobClass.BATCH, segment_state=SegmentState.RUNNING)
    attempt(running, device(heartbeat_at=now), slot=0)
    found = scrape(client)
    interactive, batch = labels(job_class="interactive"), labels(job_class="batch")
    assert found["voicepool_queue_segments"][interactive] == 2
    assert found["voicepool_queue_device_seconds"][batch] == 3
    assert found["voicepool_segments_in_hand"] == {
        interactive: 0,
        labels(job_class="standard"): 0,
        batch: 1,
    }
    assert 90 <= found["voicepool_queue_oldest_wait_seconds"][interactive] < 150


def test_devices_are_measured_and_what_they_do_not_tell_is_no_zero(client: Client) -> None:
    device(
        "GPU-1",
        heartbeat_at=database_now(),
        memory_used_bytes=5_000,
        memory_total_bytes=24_000,
        utilisation_percent=40,
        temperature_c=61,
        power_mw=350_500,
        restarts=2,
    )
    device("GPU-2", state=DeviceState.QUARANTINED)
    found = scrape(client)
    first = labels(device="GPU-1", node="node-1")
    assert found["voicepool_device_memory_used_bytes"] == {first: 5_000}
    assert found["voicepool_device_memory_total_bytes"] == {first: 24_000}
    assert found["voicepool_device_utilisation_ratio"] == {first: 0.4}
    assert found["voicepool_device_temperature_celsius"] == {first: 61}
    assert found["voicepool_device_power_watts"] == {first: 350.5}
    assert found["voicepool_device_restarts_total"][first] == 2
    assert found["voicepool_device_ready"] == {first: 1, labels(device="GPU-2", node="node-1"): 0}
    assert found["voicepool_devices"][labels(state="quarantined")] == 1


def ended(minutes_ago: float, *, wait_ms: int = 400, state: JobState = JobState.SUCCEEDED) -> SynthesisJob:
    """A job that took ten seconds and ended so long ago, with its attempt of two seconds."""
    end = database_now() - timedelta(minutes=minutes_ago)
    made = finished_job(
        created_at=end - timedelta(seconds=10), wait_ms=wait_ms, first_audio_ms=900, total_ms=10_000
    )
    SynthesisJob.objects.filter(pk=made.pk).update(state=state)
    attempt(
        made,
        device(f"GPU-{made.pk}"),
        state=AttemptState.SUCCEEDED if state == JobState.SUCCEEDED else AttemptState.FAILED,
        error_code="" if state == JobState.SUCCEEDED else "gpu_oom",
        bound_at=end - timedelta(seconds=3),
        started_at=end - timedelta(seconds=2),
        finished_at=end,
    )
    return made


def test_what_ended_is_counted_by_outcome(client: Client) -> None:
    ended(1)
    ended(2, wait_ms=500)
    broken = ended(3, wait_ms=501, state=JobState.FAILED)
    job(created_at=database_now())
    found = scrape(client)
    assert found["voicepool_jobs_total"] == {
        labels(job_class="interactive", state="succeeded"): 2,
        labels(job_class="interactive", state="failed"): 1,
    }
    assert found["voicepool_attempts_total"] == {
        labels(result="succeeded", code=""): 2,
        labels(result="failed", code="gpu_oom"): 1,
    }
    assert found["voicepool_device_seconds_total"][labels(device=f"GPU-{broken.pk}", outcome="failed")] == 2
    waits = {
        dict(key)["le"]: value
        for key, value in found["voicepool_job_wait_seconds_bucket"].items()
        if dict(key)["job_class"] == "interactive"
    }
    # A bound belongs to its bucket, and buckets are cumulative.
    assert (waits["0.25"], waits["0.5"], waits["1.0"], waits["+Inf"]) == (0, 2, 3, 3)
    interactive = labels(job_class="interactive")
    assert found["voicepool_job_wait_seconds_count"][interactive] == 3
    assert found["voicepool_job_wait_seconds_sum"][interactive] == pytest.approx(1.401)
    assert found["voicepool_job_first_audio_seconds_count"][interactive] == 3
    # Only of those that succeeded.
    assert found["voicepool_job_duration_seconds_count"][interactive] == 2
    assert found["voicepool_job_duration_seconds_sum"][interactive] == 20


def test_counting_moves_the_mark_and_changes_no_number(client: Client) -> None:
    ended(30)
    ended(20, state=JobState.FAILED)
    ended(1)
    before = scrape(client)
    assert CounterTotal.objects.filter(family="jobs").count() == 0
    for _ in range(2):
        count_what_ended()
        assert scrape(client)["voicepool_jobs_total"] == before["voicepool_jobs_total"]
        assert scrape(client)["voicepool_device_seconds_total"] == before["voicepool_device_seconds_total"]
        assert (
            scrape(client)["voicepool_job_wait_seconds_bucket"] == before["voicepool_job_wait_seconds_bucket"]
        )
    # What ended in the last minutes is behind the mark still.
    counted = CounterTotal.objects.filter(family="jobs").values_list("value", flat=True)
    assert sorted(counted) == [1, 1]
    assert CounterMark.objects.count() == 1


def test_numbers_stay_when_rows_go(client: Client) -> None:
    made = ended(30)
    before = scrape(client)["voicepool_jobs_total"]
    count_what_ended()
    made.attempts.all().delete()
    made.segments.all().delete()
    made.delete()
    assert scrape(client)["voicepool_jobs_total"] == before


def test_holds_that_are_open_are_counted(client: Client) -> None:
    alice = make_user("alice")
    made = make_job(personal_workspace(alice), alice, Voice.objects.filter(kind="preset")[0])
    found = scrape(client)
    assert found["voicepool_holds_open"] == {(): 1}
    assert found["voicepool_holds_open_amount"][()] == pytest.approx(made.held_micros / 1_000_000)


def test_requests_are_counted_by_route_and_status(client: Client) -> None:
    for _ in range(3):
        client.get("/healthz")
    client.get("/api/v1/jobs")
    request_log().flush()
    found = scrape(client)
    assert found["voicepool_http_requests_total"] == {
        labels(route="/healthz", method="GET", status="200"): 3,
        labels(route="/api/v1/jobs", method="GET", status="401"): 1,
    }
    health = labels(route="/healthz", method="GET")
    assert found["voicepool_http_request_duration_seconds_count"][health] == 3
    buckets = {
        float(dict(key)["le"]): value
        for key, value in found["voicepool_http_request_duration_seconds_bucket"].items()
        if dict(key)["route"] == "/healthz"
    }
    assert list(buckets) == sorted(buckets)
    assert list(buckets.values()) == sorted(buckets.values())


def test_counting_reads_what_ended_since_it_was_last_counted_alone(client: Client) -> None:
    long_ago = ended(60)
    copy_row(long_ago, created_at="created_at + number * interval '1 millisecond'")
    copy_row(Attempt.objects.get(job=long_ago), attempt_number="number + 1")
    count_what_ended()
    ended(1)
    with CaptureQueriesContext(connection) as captured:
        assert sum(scrape(client)["voicepool_attempts_total"].values()) == COPIES + 2
    counting = [query["sql"] for query in captured if "finished_at >" in query["sql"]]
    assert [rows_read(query) for query in counting] == [{"tts_attempt": 1}, {"tts_synthesisjob": 1}]


def test_an_attempt_that_was_in_hand_for_days_is_counted(client: Client) -> None:
    made = ended(1)
    Attempt.objects.filter(job=made).update(bound_at=database_now() - timedelta(days=3))
    assert sum(scrape(client)["voicepool_attempts_total"].values()) == 1


def test_a_scrape_costs_the_same_with_many_rows(client: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            scrape(client)
        return len(captured)

    ended(1)
    few = queries()
    for _ in range(5):
        ended(2)
    assert queries() == few <= 20
    assert totals_now()["jobs"]
