"""What stays open: events and live audio, over real connections."""

from __future__ import annotations

import http.client
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from pytest_django.live_server_helper import LiveServer

from accounts.models import User, Workspace
from portal.lib.queues import redis_connection
from portal.lib.sse import OPEN_STREAMS
from tests.api.problems import assert_problem
from tests.cast import Api, api_of
from tests.factories import finish_job, make_job, make_user, make_voice, personal_workspace, tone
from tests.pool.conftest import make_device
from tests.pool.processes import wait_for
from tts import storage
from tts.audio.wav import wav_file
from tts.models import Attempt, SynthesisJob
from tts.services import streams, wakeups
from tts.services.attempts import Outcome, begin_job, finish_attempt, note_first_chunk
from tts.services.claiming import claim_attempt
from tts.services.jobs import cancel_job
from tts.states import JOB_LIVE

JOBS = "/api/v1/jobs"
pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def customer(transactional_db: None) -> User:
    redis_connection().flushdb()
    return make_user("listener")


@pytest.fixture
def workspace(customer: User) -> Workspace:
    return personal_workspace(customer)


@pytest.fixture
def api(customer: User) -> Api:
    return api_of(customer)


@pytest.fixture
def job(customer: User, workspace: Workspace) -> SynthesisJob:
    return make_job(workspace, customer, make_voice(workspace, customer))


Open = Callable[..., http.client.HTTPResponse]


@pytest.fixture
def open_stream(live_server: LiveServer, api: Api) -> Iterator[Open]:
    """Opens a stream of the live server with the customer's key; all are closed after the test."""
    with ExitStack() as cleanup:

        def open_path(path: str, **headers: str) -> http.client.HTTPResponse:
            peer = http.client.HTTPConnection(live_server.thread.host, live_server.thread.port, timeout=30)
            cleanup.callback(peer.close)
            peer.request("GET", path, headers={"Authorization": f"Bearer {api.key}", **headers})
            response = peer.getresponse()
            cleanup.callback(response.close)
            return response

        yield open_path
    # Live audio of a job that waits has nothing to send, and this server does not show its sockets.
    for live in SynthesisJob.objects.filter(state__in=JOB_LIVE).select_related("workspace"):
        cancel_job(workspace=live.workspace, job_id=live.pk)
    wait_for(lambda: OPEN_STREAMS.count == 0, what="every stream gave its place back")


@pytest.fixture(autouse=True)
def _quick_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    # A listener that has gone is noticed at the next write.
    monkeypatch.setattr(streams, "HEARTBEAT_SECONDS", 0.2)


def next_event(response: http.client.HTTPResponse) -> dict[str, Any]:
    """The next block of lines that is no heartbeat."""
    fields: dict[str, Any] = {}
    while True:
        line = response.readline().decode()
        assert line, "the stream ended"
        if line == "\n":
            if fields:
                return fields
        elif not line.startswith(":"):
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = json.loads(value) if name == "data" else value


def events_to_the_end(response: http.client.HTTPResponse) -> list[dict[str, Any]]:
    found = []
    while True:
        try:
            found.append(next_event(response))
        except AssertionError:
            return found


def read_exactly(response: http.client.HTTPResponse, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = response.read1(count - len(data))
        assert chunk, "the stream ended"
        data += chunk
    return data


def test_a_waiting_job_is_followed_to_its_end(open_stream: Open, job: SynthesisJob) -> None:
    response = open_stream(f"{JOBS}/{job.pk}/events", Accept="text/event-stream")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert response.headers["X-Accel-Buffering"] == "no"
    assert "no-store" in response.headers["Cache-Control"]
    assert next_event(response) == {"retry": "2000"}
    first = next_event(response)
    assert first == {"id": "1", "event": "queued", "data": {"position": 1, "starts_in_ms": None}}
    finish_job(job)
    wakeups.wake_job(job_id=job.pk)
    rest = events_to_the_end(response)
    assert [event["event"] for event in rest] == ["segment", "first_audio", "succeeded"]
    assert [int(event["id"]) for event in rest] == [2, 3, 4]
    assert rest[0]["data"] == {"index": 0, "part": 0, "state": "succeeded"}
    assert rest[-1]["data"] == {"gpu_ms": 100, "audio_ms": 1000, "charged_micros": 50, "has_audio": True}


def test_who_comes_back_goes_on_counting_and_learns_how_things_stand(
    open_stream: Open, job: SynthesisJob
) -> None:
    finish_job(job, state="failed")
    events = events_to_the_end(open_stream(f"{JOBS}/{job.pk}/events", **{"Last-Event-ID": "41"}))
    assert events[0] == {"retry": "2000"}
    assert [int(event["id"]) for event in events[1:]] == [42, 43]
    assert events[-1]["event"] == "failed"
    assert events[-1]["data"]["code"] == "engine_failed"
    assert events[-1]["data"]["message"]


@pytest.mark.parametrize("identity", ["x", "-1", "9" * 40, "1\tx", "é"])
def test_a_last_event_id_that_is_none_of_ours_is_ignored(
    identity: str, open_stream: Open, job: SynthesisJob
) -> None:
    finish_job(job)
    events = events_to_the_end(open_stream(f"{JOBS}/{job.pk}/events", **{"Last-Event-ID": identity}))
    assert events[1]["id"] == "1"


def test_an_event_stream_is_never_silent_for_long(open_stream: Open, job: SynthesisJob) -> None:
    response = open_stream(f"{JOBS}/{job.pk}/events")
    for _ in range(2):
        next_event(response)
    assert response.readline() == b": heartbeat\n"


def test_audio_is_heard_while_it_is_made(open_stream: Open, customer: User, workspace: Workspace) -> None:
    make_device()
    job = make_job(workspace, customer, make_voice(workspace, customer))
    response = open_stream(f"{JOBS}/{job.pk}/stream")
    assert (response.status, response.headers["Content-Type"]) == (200, "audio/wav")
    assert response.headers["X-Accel-Buffering"] == "no"
    assert response.headers["Content-Length"] is None
    header = read_exactly(response, 44)
    assert header[:4] + header[8:16] == b"RIFFWAVEfmt "
    assert struct.unpack("<I", header[4:8]) == struct.unpack("<I", header[40:44]) == (0xFFFFFFFF,)
    assert struct.unpack("<HHI", header[20:28]) == (1, 1, 24_000)

    attempt = Attempt.objects.get(job=job)
    work = claim_attempt(attempt_id=attempt.pk)
    begin_job(work=work)
    pcm = tone(2.0)
    redis_connection().xadd(wakeups.audio_key(attempt.pk), {"pcm": pcm[:30_000], "at": 0})
    note_first_chunk(attempt=work.attempt)
    wakeups.wake_job(job_id=job.pk)
    # Heard although the job still runs.
    assert read_exactly(response, 30_000) == pcm[:30_000]
    job.refresh_from_db()
    assert job.state == "running"

    redis_connection().xadd(wakeups.audio_key(attempt.pk), {"pcm": pcm[30_000:], "at": 30_000})
    key = storage.attempt_audio_key(workspace_id=workspace.pk, job_id=job.pk, attempt_id=attempt.pk)
    storage.save(key, wav_file(pcm, sample_rate_hz=24_000))
    redis_connection().xadd(wakeups.audio_key(attempt.pk), {"end": "1"})
    finish_attempt(
        work=work, outcome=Outcome(gpu_ms=200, audio_ms=2000, audio_key=key, first_chunk_gpu_ms=10, peaks=[1])
    )
    assert response.read() == pcm[30_000:]
    job.refresh_from_db()
    stored = storage.read(job.audio_key)
    assert stored[44:] == pcm


def test_a_live_stream_of_a_canceled_job_ends(open_stream: Open, api: Api, job: SynthesisJob) -> None:
    response = open_stream(f"{JOBS}/{job.pk}/stream")
    read_exactly(response, 44)
    assert api.send("POST", f"{JOBS}/{job.pk}/cancel").status_code == 200
    assert response.read() == b""


def test_only_so_many_streams_are_open_and_plain_requests_still_pass(
    open_stream: Open, api: Api, job: SynthesisJob, settings: LazySettings
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "OPEN_STREAMS_PER_PROCESS": 2}
    first = open_stream(f"{JOBS}/{job.pk}/events")
    second = open_stream(f"{JOBS}/{job.pk}/stream")
    assert (first.status, second.status) == (200, 200)
    for path in ("events", "stream"):
        refused = api.get(f"{JOBS}/{job.pk}/{path}")
        assert_problem(refused, 503, "too_many_streams")
        assert refused["Retry-After"] == "5"
    assert api.get(f"{JOBS}/{job.pk}").status_code == 200
    assert OPEN_STREAMS.count == 2
    first.close()
    wait_for(lambda: OPEN_STREAMS.count == 1, what="the place of the listener that went")
    third = open_stream(f"{JOBS}/{job.pk}/events")
    assert third.status == 200


def test_one_workspace_cannot_take_the_places_of_another(
    open_stream: Open, api: Api, job: SynthesisJob, settings: LazySettings
) -> None:
    settings.VOICEPOOL = {
        **settings.VOICEPOOL,
        "OPEN_STREAMS_PER_PROCESS": 3,
        "OPEN_STREAMS_PER_WORKSPACE": 2,
    }
    first = open_stream(f"{JOBS}/{job.pk}/events")
    assert (first.status, open_stream(f"{JOBS}/{job.pk}/stream").status) == (200, 200)
    assert_problem(api.get(f"{JOBS}/{job.pk}/events"), 503, "too_many_streams")
    assert OPEN_STREAMS.count == 2
    other = make_user("other")
    others_job = make_job(
        personal_workspace(other), other, make_voice(personal_workspace(other), other, name="theirs")
    )
    theirs = open_stream(
        f"{JOBS}/{others_job.pk}/events",
        Authorization=f"Bearer {api_of(other).key}",
        Accept="text/event-stream",
    )
    assert theirs.status == 200
    first.close()
    wait_for(lambda: OPEN_STREAMS.count == 2, what="the place of the listener that went")
    assert open_stream(f"{JOBS}/{job.pk}/events").status == 200


def test_a_stream_that_is_refused_takes_no_place(api: Api, customer: User) -> None:
    for path in ("events", "stream"):
        assert_problem(api.get(f"{JOBS}/00000000-0000-0000-0000-000000000000/{path}"), 404, "job_not_found")
    assert OPEN_STREAMS.count == 0


def test_streams_hold_no_database_connection_while_they_wait(open_stream: Open, job: SynthesisJob) -> None:
    def others() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            count: int = cursor.fetchone()[0]
        return count

    for path in ("events", "stream", "events", "stream"):
        response = open_stream(f"{JOBS}/{job.pk}/{path}")
        assert response.status == 200
        assert response.readline() if path == "events" else read_exactly(response, 44)
    assert OPEN_STREAMS.count == 4
    # They look again every second, for milliseconds: between two looks there is none.
    wait_for(lambda: others() == 0, what="four streams wait without a connection")
