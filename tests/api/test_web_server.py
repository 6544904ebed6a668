"""The API behind the real web server: bodies that are cut short, bodies without a length, listeners that hang up."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import User
from portal.lib.queues import redis_connection
from tests.cast import Api, api_of
from tests.factories import make_job, make_user, make_voice, personal_workspace
from tests.pool.processes import wait_for, web_server
from tests.web_server import WebServer
from tts.models import SynthesisJob, Voice


@pytest.fixture
def customer(transactional_db: None) -> User:
    redis_connection().flushdb()
    return make_user("client")


@pytest.fixture
def api(customer: User) -> Api:
    return api_of(customer)


@pytest.fixture
def server(transactional_db: None) -> Iterator[WebServer]:
    with web_server(OPEN_STREAMS_PER_PROCESS="2") as web:
        yield web


def answer_to(server: WebServer, head: str, body: bytes = b"") -> tuple[int, dict[str, Any]]:
    """Send raw bytes and read one answer, without ever ending the request."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as peer:
        peer.sendall(head.replace("\n", "\r\n").encode() + b"\r\n" + body)
        received = b""
        while b"\r\n\r\n" not in received:
            received += peer.recv(65536)
        headers, _, start = received.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in headers.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        while len(start) < length:
            start += peer.recv(65536)
    return int(headers.split()[1]), json.loads(start)


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


def test_bodies_over_the_real_server(server: WebServer, api: Api, customer: User) -> None:
    voice = Voice.objects.filter(kind="preset")[0]
    common = f"Host: localhost\nAuthorization: Bearer {api.key}\n"

    # An upload of 100 MB is refused by its length, although not one byte of it was sent.
    upload = f"POST /api/v1/voices HTTP/1.1\n{common}Content-Type: multipart/form-data; boundary=x\n"
    status, problem = answer_to(server, f"{upload}Content-Length: 100000000\n")
    assert (status, problem["code"]) == (413, "request_too_large")

    # One of 20 MB too, which the server would take in the end: the answer does not wait for it.
    status, problem = answer_to(server, f"{upload}Content-Length: 20000000\n")
    assert (status, problem["code"]) == (413, "request_too_large")

    # One that does not say its length is cut off at the limit: the rest never has to come.
    start = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    megabyte = bytes(1024 * 1024)
    status, problem = answer_to(
        server, f"{upload}Transfer-Encoding: chunked\n", chunked(start, *[megabyte] * 17)
    )
    assert (status, problem["code"]) == (413, "request_too_large")

    submit = (
        f"POST /api/v1/jobs HTTP/1.1\n{common}Content-Type: application/json\nTransfer-Encoding: chunked\n"
    )
    status, problem = answer_to(server, submit, chunked(*[b" " * 1024 * 1024] * 3))
    assert (status, problem["code"]) == (413, "request_too_large")
    assert SynthesisJob.objects.count() == 0

    # Within the limit such a body is read like any other.
    body = json.dumps({"voice_id": str(voice.pk), "text": "Sent in pieces."}).encode()
    status, job = answer_to(server, submit, chunked(body[:10], body[10:]) + b"0\r\n\r\n")
    assert (status, job["text"]) == (202, "Sent in pieces.")
    assert SynthesisJob.objects.get().text == "Sent in pieces."


def test_listeners_that_hang_up_free_their_places(server: WebServer, api: Api, customer: User) -> None:
    workspace = personal_workspace(customer)
    job = make_job(workspace, customer, make_voice(workspace, customer))
    headers = {"Authorization": f"Bearer {api.key}"}
    path = f"/api/v1/jobs/{job.pk}/stream"

    def listen() -> tuple[Any, Any]:
        connection = server.connect()
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        assert response.status == 200
        assert len(response.read1(44)) == 44
        return connection, response

    # The job waits, so nothing is sent and no write could fail.
    listeners = [listen(), listen()]
    assert server.get(path, headers).status == 503
    for connection, response in listeners:
        response.close()
        connection.close()
    wait_for(lambda: server.get(f"/api/v1/jobs/{job.pk}", headers).status == 200)
    again = wait_for(lambda: listen_if_free(server, path, headers), what="a place that was given back")
    again.close()


def listen_if_free(server: WebServer, path: str, headers: dict[str, str]) -> Any:
    connection = server.connect()
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    if response.status == 200:
        return connection
    response.read()
    connection.close()
    return None
