"""Which requests leave a line, and what stands in it."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import ApiKey, User, Workspace
from portal.logs.models import RequestLog
from portal.logs.totals import labels_of, read_totals
from portal.logs.writer import RequestLogWriter
from tests.cast import Api
from tts.models import SynthesisJob, Voice

pytestmark = pytest.mark.django_db


def only_line(writer: RequestLogWriter) -> RequestLog:
    writer.flush()
    return RequestLog.objects.get()


def test_a_request_of_the_api_is_noted_with_who_and_what(
    writer: RequestLogWriter,
    alice: User,
    alice_api: Api,
    alice_workspace: Workspace,
    alices_job: SynthesisJob,
) -> None:
    alice_api.get(f"/api/v1/jobs/{alices_job.pk}", headers={"X-Request-Id": "request-17"})
    line = only_line(writer)
    assert (line.method, line.route, line.status, line.code) == ("GET", "/api/v1/jobs/{job_id}", 200, "")
    assert (line.workspace_id, line.user_id) == (alice_workspace.pk, alice.pk)
    assert line.api_key_id == ApiKey.objects.get().pk
    assert (line.address, line.request_id) == ("127.0.0.1", "request-17")


def test_a_refusal_is_noted_with_its_code(
    writer: RequestLogWriter, alice_api: Api, alices_voice: Voice
) -> None:
    alice_api.send("POST", "/api/v1/jobs", {"voice_id": str(alices_voice.pk), "text": ""})
    line = only_line(writer)
    assert (line.method, line.route, line.status) == ("POST", "/api/v1/jobs", 400)
    assert line.code == "text_empty"


def test_a_key_that_is_not_valid_is_noted_without_it(writer: RequestLogWriter) -> None:
    Client(headers={"Authorization": "Bearer vp_live_nonsense"}).get("/api/v1/jobs?search=secret")
    line = only_line(writer)
    assert (line.status, line.code) == (401, "invalid_api_key")
    assert (line.workspace_id, line.user_id, line.api_key_id) == (None, None, None)
    everything = " ".join(str(value) for value in vars(line).values())
    assert "nonsense" not in everything
    assert "secret" not in everything


def test_a_page_that_makes_a_job_is_noted_and_one_that_shows_something_is_not(
    writer: RequestLogWriter,
    alice: User,
    alice_client: Client,
    alice_workspace: Workspace,
    alices_job: SynthesisJob,
) -> None:
    alice_client.get("/studio/")
    alice_client.get("/history/")
    alice_client.post("/theme/", {"theme": "dark"})
    alice_client.post(f"/jobs/{alices_job.pk}/cancel/")
    line = only_line(writer)
    assert (line.method, line.route, line.status) == ("POST", "/jobs/{job_id}/cancel/", 302)
    assert (line.workspace_id, line.user_id, line.api_key_id) == (alice_workspace.pk, alice.pk, None)


def test_every_request_is_counted_by_its_route(writer: RequestLogWriter, alice_client: Client) -> None:
    alice_client.get("/history/")
    alice_client.get("/history/?q=secret")
    alice_client.get("/no-such-page")
    alice_client.get("/another-guess")
    alice_client.generic("BREW", "/history/")
    writer.flush()
    assert read_totals()["http_requests"] == {
        labels_of(route="/history/", method="GET", status="200"): 2,
        labels_of(route="unknown", method="GET", status="404"): 2,
        labels_of(route="/history/", method="OTHER", status="405"): 1,
    }
    assert RequestLog.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_stream_is_noted_when_it_is_closed(
    writer: RequestLogWriter, alice_api: Api, alices_job: SynthesisJob
) -> None:
    response = alice_api.get(f"/api/v1/jobs/{alices_job.pk}/events")
    assert response.streaming
    writer.flush()
    assert RequestLog.objects.count() == 0
    response.close()
    line = only_line(writer)
    assert (line.route, line.status) == ("/api/v1/jobs/{job_id}/events", 200)


def test_noting_costs_a_request_no_query(writer: RequestLogWriter, alice_api: Api) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            alice_api.get("/api/v1/jobs")
        return len(captured)

    queries()
    noted = queries()
    put, writer.put = writer.put, lambda **_fields: None  # type: ignore[method-assign]
    try:
        assert queries() == noted
    finally:
        writer.put = put  # type: ignore[method-assign]


def test_who_is_not_asked_for_is_not_looked_up(writer: RequestLogWriter, alice_client: Client) -> None:
    with CaptureQueriesContext(connection) as captured:
        alice_client.post("/api/v1/no-such-address")
    assert captured.captured_queries == []
    assert only_line(writer).user_id is None
