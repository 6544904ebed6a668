"""One POST to an address that a customer named: resolved once, judged, and connected to exactly what was judged.

Bounded in everything: in time as a whole, whatever the other side drips; in what is read of the answer; no redirect is
followed and no proxy or cookie of this process is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import h11

from portal.lib.outgoing.addresses import (
    AddressRefused,
    CallPolicy,
    IpAddress,
    Target,
    check_address,
    literal_address,
    parse_target,
)

CONNECT_TIMEOUT_S: Final = 5.0
# To the answer's head, resolving the name included, and then for the beginning of its body: 15 s in all.
HEAD_TIMEOUT_S: Final = 13.0
BODY_TIMEOUT_S: Final = 2.0
# Of the answer's body; the rest is not read.
BODY_BYTES: Final = 2048
# Status line and headers of an answer.
HEAD_BYTES: Final = 16 * 1024
READ_BYTES: Final = 4096
# One that a name leads to may be down; more would take too long.
ADDRESSES_TRIED: Final = 2

# Threads that wait for a name, those included that nobody waits for any more.
_RESOLVING: Final = threading.BoundedSemaphore(128)
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True)
class PostResult:
    """What came of it. `status` None: there was no answer, and `error_code` says why (a stable word).

    `body` is the beginning of the answer; `retry_after_s` what it asked for, where that is a number of seconds.
    """

    duration_ms: int
    status: int | None = None
    error_code: str = ""
    body: bytes = b""
    retry_after_s: int | None = None


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, as the system's resolver orders them. Raises OSError, also when too many names are
    being asked for at once."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()
    if not _RESOLVING.acquire(blocking=False):
        raise OSError("too many names at once")
    # The system's resolver cannot be interrupted. A daemon: a name server that hangs holds up neither the loop nor the
    # end of the process.
    threading.Thread(target=_ask_resolver, args=[host, port, loop, answer], daemon=True).start()
    return await answer


def _ask_resolver(
    host: str, port: int, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[list[str]]
) -> None:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        tell = partial(_settle, answer, [str(address[0]) for *_rest, address in found], None)
    except (OSError, UnicodeError) as error:
        tell = partial(_settle, answer, [], error)
    finally:
        _RESOLVING.release()
    # Nobody waits any more where the loop has ended.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(tell)


def _settle(answer: asyncio.Future[list[str]], found: list[str], error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    else:
        answer.set_exception(error)


async def post(
    url: str,
    *,
    body: bytes,
    headers: dict[str, str],
    policy: CallPolicy,
    tls: ssl.SSLContext,
    resolver: Resolver = resolve,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    head_timeout_s: float = HEAD_TIMEOUT_S,
    body_timeout_s: float = BODY_TIMEOUT_S,
) -> PostResult:
    """Send `body` and return what came of it; never raises for what the other side, or the way to it, does.

    `tls` must check certificates and names: the certificate has to be the named host's, whatever address it has.
    """
    began = time.monotonic()

    def outcome(error_code: str) -> PostResult:
        return PostResult(duration_ms=round(1000 * (time.monotonic() - began)), error_code=error_code)

    connection: _Connection | None = None
    try:
        async with asyncio.timeout(head_timeout_s):
            target = parse_target(url, policy)
            async with asyncio.timeout(connect_timeout_s):
                connection = await _connect(target, await _judged_addresses(target, policy, resolver), tls)
            head = await connection.ask(target, body, headers)
        beginning = await connection.beginning_of_body(body_timeout_s)
    except TimeoutError:
        return outcome("timeout")
    except AddressRefused as refused:
        return outcome(refused.code)
    except socket.gaierror:
        return outcome("host_not_found")
    except ssl.SSLError:
        return outcome("tls_failed")
    except (h11.ProtocolError, UnicodeError):
        return outcome("answer_invalid")
    except (OSError, EOFError):
        return outcome("connection_failed")
    finally:
        if connection is not None:
            connection.end()
    return PostResult(
        duration_ms=round(1000 * (time.monotonic() - began)),
        status=head.status_code,
        body=beginning,
        retry_after_s=_retry_after_s(head),
    )


async def _judged_addresses(target: Target, policy: CallPolicy, resolver: Resolver) -> list[IpAddress]:
    """All addresses of the host. One that must not be called refuses them all: a name that leads inside and outside
    is no mistake. Raises AddressRefused, OSError."""
    literal = literal_address(target.host)
    found = [literal] if literal is not None else []
    if literal is None:
        # A zone ("fe80::1%eth0") belongs to link-local addresses alone, which are refused.
        texts = await resolver(target.host, target.port)
        found = [ipaddress.ip_address(text.partition("%")[0]) for text in dict.fromkeys(texts)]
    if not found:
        raise socket.gaierror
    for address in found:
        check_address(address, policy, is_tls=target.is_tls)
    return found[:ADDRESSES_TRIED]


async def _connect(target: Target, addresses: Sequence[IpAddress], tls: ssl.SSLContext) -> _Connection:
    """A connection to the first of the addresses that takes one. Their text is a number: nothing is resolved again."""
    failure: OSError | None = None
    for address in addresses:
        try:
            reader, writer = await asyncio.open_connection(
                str(address),
                target.port,
                ssl=tls if target.is_tls else None,
                server_hostname=target.host if target.is_tls else None,
                limit=HEAD_BYTES,
            )
            return _Connection(reader, writer)
        except ssl.SSLError:
            raise
        except OSError as error:
            failure = error
    raise failure or OSError("no address")


class _Connection:
    """One request and its answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._has_heard = False
        self._http = h11.Connection(our_role=h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)

    def end(self) -> None:
        # At once: nothing is waited for that the other side might not send.
        self._writer.transport.abort()

    async def ask(self, target: Target, body: bytes, headers: dict[str, str]) -> h11.Response:
        """Send the request and return the head of the answer."""
        all_headers = {
            "Host": target.host_header,
            **headers,
            "Content-Length": str(len(body)),
            "Accept-Encoding": "identity",
            "Connection": "close",
        }
        request = h11.Request(method="POST", target=target.path, headers=list(all_headers.items()))
        for part in (request, h11.Data(data=body), h11.EndOfMessage()):
            self._writer.write(self._http.send(part) or b"")
        # Whoever answers before reading everything has answered all the same.
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                return event
            if isinstance(event, h11.ConnectionClosed):
                raise EOFError

    async def beginning_of_body(self, timeout_s: float) -> bytes:
        """What comes of the answer's body in time. That it stays away or breaks off changes nothing of the answer."""
        read = b""
        with contextlib.suppress(TimeoutError, h11.ProtocolError, OSError):
            async with asyncio.timeout(timeout_s):
                while len(read) < BODY_BYTES:
                    event = await self._next_event()
                    if not isinstance(event, h11.Data):
                        break
                    read += bytes(event.data)
        return read[:BODY_BYTES]

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data = await self._reader.read(READ_BYTES)
            if not data and not self._has_heard:
                raise EOFError  # closed without a word
            self._has_heard = True
            self._http.receive_data(data)
        return event


def _retry_after_s(head: h11.Response) -> int | None:
    for name, value in head.headers:
        if name == b"retry-after" and value.isdigit() and len(value) < 8:
            return int(value)
    return None
