"""The queue of lines and what writes it: in bulk, bounded, patient, and complete at the end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from portal.logs import writer as module
from portal.logs.models import CounterTotal, RequestLog
from portal.logs.retention import delete_old_lines
from portal.logs.totals import add_totals, labels_of, read_totals
from portal.logs.writer import RequestLogWriter

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def line(request_id: str = "request-1", **fields: object) -> RequestLog:
    return RequestLog(
        **{
            "created_at": NOON,
            "method": "GET",
            "route": "/api/v1/jobs",
            "status": 200,
            "duration_ms": 5,
            "request_id": request_id,
            **fields,
        }
    )


def put(writer: RequestLogWriter, one: RequestLog | None = None, *, duration_ms: int = 5) -> None:
    writer.put(line=one, route="/api/v1/jobs", method="GET", status=200, duration_ms=duration_ms)


@pytest.mark.django_db
def test_lines_are_written_in_bulk_and_once() -> None:
    own = RequestLogWriter(flush_s=0)
    for number in range(450):
        put(own, line(f"request-{number}"))
    assert RequestLog.objects.count() == 0
    with CaptureQueriesContext(connection) as captured:
        assert own.flush() == 450
    assert sum("INSERT INTO" in query["sql"] and "logs_requestlog" in query["sql"] for query in captured) == 3
    assert own.flush() == 0
    assert RequestLog.objects.count() == 450


@pytest.mark.django_db
def test_a_full_queue_drops_new_lines_and_counts_them() -> None:
    own = RequestLogWriter(flush_s=0, capacity=2)
    for number in range(5):
        put(own, line(f"request-{number}"))
    assert own.flush() == 2
    assert sorted(RequestLog.objects.values_list("request_id", flat=True)) == ["request-0", "request-1"]
    totals = read_totals()
    assert totals["request_log_dropped"] == {(): 3}
    # What has no line any more was still answered.
    assert totals["http_requests"] == {labels_of(route="/api/v1/jobs", method="GET", status="200"): 5}


@pytest.mark.django_db
def test_lines_wait_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    own = RequestLogWriter(flush_s=0, capacity=3)
    for number in range(2):
        put(own, line(f"request-{number}"))

    def refuse(*_arguments: object) -> None:
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(own, "_write", refuse)
        assert own.flush() == 0
    for number in range(2, 4):
        put(own, line(f"request-{number}"))
    assert own.flush() == 3
    # In the order in which they came.
    assert list(RequestLog.objects.order_by("pk").values_list("request_id", flat=True)) == [
        "request-0",
        "request-1",
        "request-2",
    ]
    assert read_totals()["http_requests"] == {labels_of(route="/api/v1/jobs", method="GET", status="200"): 4}


@pytest.mark.django_db
def test_a_line_that_cannot_be_stored_blocks_no_other() -> None:
    own = RequestLogWriter(flush_s=0)
    put(own, line("x" * 99))
    own.flush()
    put(own, line("request-1"))
    own.flush()
    assert list(RequestLog.objects.values_list("request_id", flat=True)) == ["request-1"]


@pytest.mark.django_db
def test_durations_fall_into_their_buckets() -> None:
    own = RequestLogWriter(flush_s=0)
    for duration_ms in (0, 5, 6, 10_000, 10_001):
        put(own, duration_ms=duration_ms)
    own.flush()
    found = read_totals()
    buckets = {dict(labels)["le"]: value for labels, value in found["http_duration_buckets"].items()}
    assert buckets == {"5": 2, "10": 1, "10000": 1, "+Inf": 1}
    assert list(found["http_duration_ms"].values()) == [20_012]


@pytest.mark.django_db
def test_totals_add_up_over_writers() -> None:
    for _ in range(3):
        add_totals({("family", labels_of(a="1", b="é\"'")): 2, ("family", labels_of(a="2")): 5})
    assert CounterTotal.objects.count() == 2
    assert read_totals() == {"family": {labels_of(a="1", b="é\"'"): 6, labels_of(a="2"): 15}}


def wait_until(condition: Callable[[], bool]) -> None:
    changed = threading.Event()
    for _ in range(1_000):
        if condition():
            return
        changed.wait(0.02)
    raise AssertionError("it never came true")


@pytest.mark.django_db(transaction=True)
def test_a_thread_writes_by_itself_and_the_rest_at_the_end() -> None:
    own = RequestLogWriter(flush_s=0.05)
    put(own, line("request-1"))
    wait_until(lambda: RequestLog.objects.filter(request_id="request-1").exists())
    own.stop()
    put(own, line("request-2"))
    own.stop()
    assert RequestLog.objects.filter(request_id="request-2").count() == 1


def test_the_child_of_a_fork_leaves_its_parents_lines_to_the_parent() -> None:
    own = RequestLogWriter(flush_s=0)
    put(own, line())
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, str(len(own._lines)).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reading, 10) == b"0"
    assert len(own._lines) == 1
    os.close(reading)
    os.close(writing)


@pytest.mark.django_db
def test_lines_go_after_thirty_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.logs.retention.now", lambda: NOON)
    for days, seconds in ((30, 1), (30, 0), (31, 0), (0, 0)):
        line(f"{days}-{seconds}", created_at=NOON - timedelta(days=days, seconds=seconds)).save()
    assert delete_old_lines() == 2
    assert sorted(RequestLog.objects.values_list("request_id", flat=True)) == ["0-0", "30-0"]
    assert delete_old_lines() == 0


@pytest.mark.django_db
def test_only_so_many_lines_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.logs.retention.DELETED_AT_ONCE", 2)
    for number in range(3):
        line(f"request-{number}", created_at=NOON - timedelta(days=900 - number)).save()
    assert delete_old_lines() == 2
    assert RequestLog.objects.get().request_id == "request-2"


def test_the_bounds_ascend() -> None:
    assert list(module.DURATION_BOUNDS_MS) == sorted(set(module.DURATION_BOUNDS_MS))
