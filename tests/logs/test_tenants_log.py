"""What a workspace sees of the log: its own lines, on its page, in its file and through the API."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client

from accounts.models import ApiKey, User, Workspace
from portal.lib.sse import OPEN_STREAMS
from portal.logs.models import RequestLog
from tests.cast import Api
from tests.factories import finish_job
from tts.models import Attempt, SynthesisJob

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def note(workspace: Workspace, user: User, number: int = 1, **fields: Any) -> RequestLog:
    return RequestLog.objects.create(
        **{
            "created_at": NOON - timedelta(minutes=number),
            "workspace_id": workspace.pk,
            "user_id": user.pk,
            "method": "POST",
            "route": "/api/v1/jobs",
            "status": 202,
            "duration_ms": 12,
            "address": "203.0.113.9",
            "request_id": f"request-{number}",
            **fields,
        }
    )


@pytest.fixture
def spoken(alices_job: SynthesisJob) -> Attempt:
    finish_job(alices_job)
    attempt = Attempt.objects.get()
    Attempt.objects.update(bound_at=NOON)
    return attempt


def test_requests_come_newest_first_with_person_and_key(
    alice: User, alice_workspace: Workspace, alice_api: Api
) -> None:
    key = ApiKey.objects.get()
    note(alice_workspace, alice, 2, api_key_id=key.pk)
    note(alice_workspace, alice, 1, status=429, code="queue_full")
    first, second = alice_api.get("/api/v1/log").json()["results"]
    assert first == {
        "kind": "request",
        "created_at": "2026-11-30T11:59:00Z",
        "user": "alice@example.com",
        "api_key_prefix": "",
        "address": "203.0.113.9",
        "request_id": "request-1",
        "request": {
            "method": "POST",
            "route": "/api/v1/jobs",
            "status": 429,
            "duration_ms": 12,
            "code": "queue_full",
        },
        "attempt": None,
    }
    assert (second["request_id"], second["api_key_prefix"]) == ("request-2", key.prefix)


def test_attempts_are_told_without_what_was_said(alice_api: Api, spoken: Attempt) -> None:
    response = alice_api.get("/api/v1/log?kind=attempt")
    (entry,) = response.json()["results"]
    assert (entry["kind"], entry["created_at"], entry["request"]) == ("attempt", "2026-11-30T12:00:00Z", None)
    assert (entry["user"], entry["address"], entry["request_id"]) == (
        "alice@example.com",
        "127.0.0.1",
        "test",
    )
    assert entry["attempt"]["id"] == str(spoken.pk)
    assert entry["attempt"]["device"] == "cpu:0@test"
    assert (entry["attempt"]["state"], entry["attempt"]["gpu_ms"]) == ("succeeded", 100)
    assert entry["attempt"]["characters"] == len("What only Alice may read.")
    assert b"only Alice" not in response.content


def test_pages_of_the_log_go_on_by_cursor(alice: User, alice_workspace: Workspace, alice_api: Api) -> None:
    for number in range(5):
        note(alice_workspace, alice, number)
    seen, address = [], "/api/v1/log?page_size=2"
    while address:
        page = alice_api.get(address).json()
        seen += [entry["request_id"] for entry in page["results"]]
        address = page["next"]
    assert seen == [f"request-{number}" for number in range(5)]


def test_a_span_of_time_is_asked_for(alice: User, alice_workspace: Workspace, alice_api: Api) -> None:
    for number in range(4):
        note(alice_workspace, alice, number)
    query = "since=2026-11-30T11:58:00Z&until=2026-11-30T12:00:00Z"
    found = alice_api.get(f"/api/v1/log?{query}").json()["results"]
    assert [entry["request_id"] for entry in found] == ["request-1", "request-2"]


@pytest.mark.parametrize("query", ["kind=nonsense", "since=yesterday", "colour=red", "cursor=nonsense"])
def test_nonsense_is_refused(alice_api: Api, query: str) -> None:
    assert alice_api.get(f"/api/v1/log?{query}").status_code == 400
    assert alice_api.get(f"/api/v1/log?kind=attempt&{query}").status_code == 400


def test_nobody_sees_anothers_lines(
    alice: User,
    alice_workspace: Workspace,
    charlie_api: Api,
    charlie_client: Client,
    spoken: Attempt,
) -> None:
    note(alice_workspace, alice)
    for kind in ("request", "attempt"):
        assert charlie_api.get(f"/api/v1/log?kind={kind}").json()["results"] == []
    for kind in ("requests", "attempts"):
        page = charlie_client.get(f"/developers/log/?kind={kind}").content.decode()
        assert "No lines" in page
        assert "alice@example.com" not in page
        text = b"".join(charlie_client.get(f"/developers/log/?kind={kind}&format=csv").streaming_content)  # type: ignore[attr-defined]
        assert len(text.decode().splitlines()) == 1


def test_the_page_shows_the_workspaces_lines(
    alice: User, alice_workspace: Workspace, alice_client: Client, spoken: Attempt
) -> None:
    note(alice_workspace, alice, status=429, code="queue_full")
    attempts = alice_client.get("/developers/log/").content.decode()
    assert f'href="/jobs/{spoken.job_id}/"' in attempts
    assert "/console/" not in attempts
    requests = alice_client.get("/developers/log/?kind=requests").content.decode()
    assert "queue_full" in requests
    assert "POST /api/v1/jobs" in requests
    assert "only Alice" not in attempts + requests


def test_the_file_holds_the_same_lines(alice: User, alice_workspace: Workspace, alice_client: Client) -> None:
    note(alice_workspace, alice, 1)
    note(alice_workspace, alice, 2)
    answer = alice_client.get("/developers/log/?kind=requests&format=csv&since=2026-11-30T11:59")
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode("utf-8-sig"))))  # type: ignore[attr-defined]
    assert [(row["request_id"], row["user"], row["status"]) for row in rows] == [
        ("request-1", "alice@example.com", "202")
    ]
    assert answer["Content-Disposition"] == 'attachment; filename="requests.csv"'


def test_a_long_file_is_read_page_by_page_without_gaps_or_repetitions(
    alice: User, alice_workspace: Workspace, alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.logs.views.ROWS_AT_ONCE", 3)
    monkeypatch.setattr("portal.logs.views.LINES_EXPORTED", 10)
    for number in range(12):
        # Some of one moment: their order is by id.
        note(alice_workspace, alice, number, created_at=NOON - timedelta(minutes=number // 4))
    answer = alice_client.get("/developers/log/?kind=requests&format=csv")
    pieces = list(answer.streaming_content)  # type: ignore[attr-defined]
    assert len(pieces) == 5  # the header, three pages, and the last one up to the limit
    rows = list(csv.DictReader(io.StringIO(b"".join(pieces).decode("utf-8-sig"))))
    newest = RequestLog.objects.order_by("-created_at", "-pk").values_list("request_id", flat=True)[:10]
    assert [row["request_id"] for row in rows] == list(newest)


@pytest.mark.parametrize("kind", ["requests", "attempts"])
def test_a_file_that_is_being_read_holds_a_place_among_the_streams(
    alice: User, alice_workspace: Workspace, alice_client: Client, settings: LazySettings, kind: str
) -> None:
    note(alice_workspace, alice)
    settings.VOICEPOOL = {**settings.VOICEPOOL, "OPEN_STREAMS_PER_PROCESS": 1}
    address = f"/developers/log/?kind={kind}&format=csv"
    first = alice_client.get(address)
    assert OPEN_STREAMS.count == 1
    refused = alice_client.get(address)
    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert OPEN_STREAMS.count == 1
    assert b"".join(first.streaming_content)  # type: ignore[attr-defined]
    assert OPEN_STREAMS.count == 0
    again = alice_client.get(address)
    assert b"".join(again.streaming_content)  # type: ignore[attr-defined]
    assert OPEN_STREAMS.count == 0


@pytest.mark.django_db(transaction=True)
def test_a_file_holds_no_connection_while_the_client_reads_it(
    alice: User, alice_workspace: Workspace, alice_client: Client
) -> None:
    note(alice_workspace, alice)
    answer = alice_client.get("/developers/log/?kind=requests&format=csv")
    pieces = iter(answer.streaming_content)  # type: ignore[attr-defined]
    next(pieces)
    assert RequestLog.objects.exists()
    assert b"request-1" in next(pieces)
    assert connection.connection is None
    answer.close()


def test_the_page_is_for_who_is_signed_in(client: Client) -> None:
    assert client.get("/developers/log/")["Location"] == "/account/login/?next=/developers/log/"
