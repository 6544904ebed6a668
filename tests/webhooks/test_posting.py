"""One POST: to exactly the address that was judged, in bounded time, reading little."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from portal.lib.outgoing.addresses import CallPolicy
from portal.lib.outgoing.posting import BODY_BYTES, PostResult, Resolver, post
from tests.webhooks.double_of_a_customer import Answer, CustomersServer, make_certificate

LOOPBACK = CallPolicy.of(networks=["127.0.0.0/8"], allows_loopback_http=False)
PLAIN = CallPolicy(allows_loopback_http=True)
PUBLIC_ONLY = CallPolicy()


class Names:
    """A resolver that gives each of its answers once, and notes what it was asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers.pop(0)


def send(
    url: str,
    policy: CallPolicy,
    *,
    tls: ssl.SSLContext | None = None,
    names: Resolver | None = None,
    head_timeout_s: float = 60,
    body_timeout_s: float = 60,
) -> PostResult:
    more = {} if names is None else {"resolver": names}
    return asyncio.run(
        post(
            url,
            body=b"{}",
            headers={"X-Mine": "1"},
            policy=policy,
            tls=tls or ssl.create_default_context(),
            connect_timeout_s=30,
            head_timeout_s=head_timeout_s,
            body_timeout_s=body_timeout_s,
            **more,
        )
    )


@pytest.fixture
def plain() -> Iterator[CustomersServer]:
    server = CustomersServer()
    yield server
    server.stop()


@pytest.fixture
def trust(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What a client trusts, and the context of a server named hooks.example."""
    public, context = make_certificate(tmp_path, "hooks.example")
    return ssl.create_default_context(cafile=str(public)), context


@pytest.fixture
def raw() -> Iterator[Callable[[bytes], int]]:
    """A server that answers these bytes to whatever it gets, and closes; gives its port."""
    listeners: list[socket.socket] = []

    def serve(answer: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def once() -> None:
            connection, _address = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)
                # Closed while something of the request lies there unread, it would take the answer back.
                connection.shutdown(socket.SHUT_WR)
                with contextlib.suppress(OSError):
                    while connection.recv(65536):
                        pass

        threading.Thread(target=once, daemon=True).start()
        port: int = listener.getsockname()[1]
        return port

    yield serve
    for listener in listeners:
        listener.close()


def test_the_answer_comes_back_with_the_beginning_of_its_body(plain: CustomersServer) -> None:
    plain.answers = [Answer(status=201, body=b"x" * 5000, headers={"Retry-After": "7"})]
    result = send(f"http://127.0.0.1:{plain.port}/hook?a=b", PLAIN)
    assert (result.status, result.error_code, result.retry_after_s) == (201, "", 7)
    assert result.body == b"x" * BODY_BYTES
    (received,) = plain.received
    assert (received.path, received.body) == ("/hook?a=b", b"{}")
    assert received.headers["host"] == f"127.0.0.1:{plain.port}"
    assert received.headers["x-mine"] == "1"


def test_a_redirect_is_an_answer_and_is_not_followed(plain: CustomersServer) -> None:
    plain.answers = [Answer(status=307, headers={"Location": f"http://127.0.0.1:{plain.port}/elsewhere"})]
    assert send(f"http://127.0.0.1:{plain.port}/hook", PLAIN).status == 307
    assert [one.path for one in plain.received] == ["/hook"]


def test_a_name_is_asked_for_once_and_what_was_judged_is_called(
    trust: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    client, context = trust
    server = CustomersServer(tls=context)
    # The second answer, which nobody may ask for, is what such a name server keeps for whoever checks first.
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    result = send(f"https://hooks.example:{server.port}/hook", LOOPBACK, tls=client, names=names)
    server.stop()
    assert (result.status, result.error_code) == (204, "")
    assert names.asked == ["hooks.example"]
    assert server.received[0].headers["host"] == f"hooks.example:{server.port}"


@pytest.mark.parametrize(
    "answer",
    [["10.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::ffff:127.0.0.1"], ["fe80::1%eth0"], ["2002:7f00:1::"]],
)
def test_a_name_that_leads_inside_is_not_called_whatever_else_it_leads_to(
    plain: CustomersServer, answer: list[str]
) -> None:
    names = Names(answer)
    result = send(f"https://rebinds.example:{plain.port}/hook", PUBLIC_ONLY, names=names)
    assert (result.status, result.error_code) == (None, "address_refused")
    assert plain.received == []


def test_a_certificate_must_be_the_named_hosts(trust: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    client, context = trust
    server = CustomersServer(tls=context)
    other = send(f"https://other.example:{server.port}/", LOOPBACK, tls=client, names=Names(["127.0.0.1"]))
    unknown = send(f"https://hooks.example:{server.port}/", LOOPBACK, names=Names(["127.0.0.1"]))
    server.stop()
    assert (other.error_code, unknown.error_code) == ("tls_failed", "tls_failed")
    assert server.received == []


def test_the_next_address_of_a_name_is_called_where_the_first_takes_no_connection(
    trust: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    client, context = trust
    server = CustomersServer(tls=context)
    names = Names(["127.0.0.9", "127.0.0.1"])
    result = send(f"https://hooks.example:{server.port}/hook", LOOPBACK, tls=client, names=names)
    server.stop()
    assert result.status == 204


def test_whoever_does_not_answer_is_left(plain: CustomersServer) -> None:
    gate = threading.Event()
    plain.answers = [Answer(before=lambda: gate.wait(60))]
    result = send(f"http://127.0.0.1:{plain.port}/", PLAIN, head_timeout_s=0.3)
    gate.set()
    assert (result.status, result.error_code) == (None, "timeout")


def test_a_body_that_does_not_end_changes_nothing_of_the_answer(raw: Callable[[bytes], int]) -> None:
    port = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun")
    result = send(f"http://127.0.0.1:{port}/", PLAIN)
    assert (result.status, result.body) == (200, b"begun")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"", "connection_failed"),
        (b"HTTP/1.1 200", "answer_invalid"),
        (b"220 mail.example ESMTP\r\n", "answer_invalid"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 40_000 + b"\r\n\r\n", "answer_invalid"),
    ],
)
def test_what_is_no_answer_is_told_apart(raw: Callable[[bytes], int], answer: bytes, code: str) -> None:
    result = send(f"http://127.0.0.1:{raw(answer)}/", PLAIN)
    assert (result.status, result.error_code) == (None, code)


def test_nobody_there_and_no_such_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert send(f"http://127.0.0.1:{port}/", PLAIN).error_code == "connection_failed"

    async def unknown(_host: str, _port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    assert send("https://nobody.example/", PUBLIC_ONLY, names=unknown).error_code == "host_not_found"
    assert send("https://nobody.example/", PUBLIC_ONLY, names=Names([])).error_code == "host_not_found"


def test_a_name_server_that_hangs_is_left_too() -> None:
    async def hangs(_host: str, _port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    result = send("https://nobody.example/", PUBLIC_ONLY, names=hangs, head_timeout_s=0.2)
    assert result.error_code == "timeout"
