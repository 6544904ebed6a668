"""Answers that stay open: server-sent events, audio that is still being made, files that are read page by page.

Each holds a thread of the web process, so a process keeps only so many open
(VOICEPOOL["OPEN_STREAMS_PER_PROCESS"]): the others are asked to come back, and plain requests always find a
thread. One workspace has at most VOICEPOOL["OPEN_STREAMS_PER_WORKSPACE"] of them, so that it cannot take
everybody else's.
"""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Protocol

from django.conf import settings
from django.db import connections
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError

# What a browser waits before it connects again after the connection broke.
RECONNECT_MS = 2000
HEARTBEAT = "heartbeat"


class TooManyStreams(DomainError):
    code = "too_many_streams"
    status = 503
    message = _(
        "Too many live connections are open right now. Nothing is lost: the work goes on. "
        "Try again in a moment."
    )
    retry_after_s = 5


class StreamEvent(Protocol):
    """What can be sent: an id to go on from, a kind, plain JSON values.

    The kind `heartbeat` only keeps the line open.
    """

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


class OpenStreams:
    """Counts what this process holds open, by workspace."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: Counter[uuid.UUID] = Counter()

    @property
    def count(self) -> int:
        return self._open.total()

    def enter(self, workspace_id: uuid.UUID) -> None:
        """Take a place for the workspace. Raises TooManyStreams when there is none, or it has its share."""
        limits = settings.VOICEPOOL
        with self._lock:
            if (
                self._open.total() >= limits["OPEN_STREAMS_PER_PROCESS"]
                or self._open[workspace_id] >= limits["OPEN_STREAMS_PER_WORKSPACE"]
            ):
                raise TooManyStreams
            self._open[workspace_id] += 1

    def leave(self, workspace_id: uuid.UUID) -> None:
        with self._lock:
            self._open[workspace_id] -= 1
            # Without the empty ones, or every workspace that ever listened would stay in memory.
            self._open = +self._open


OPEN_STREAMS = OpenStreams()


def release_database() -> None:
    """Give this thread's database connections back, so that a stream that waits holds none of the pool.

    Inside a transaction (only tests stream from one) the connection is kept.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def _has_hung_up(peer: socket.socket | None) -> bool:
    """Whether the client closed its connection. False where the server does not give the socket away."""
    if peer is None:
        return False
    try:
        return peer.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class HeldStream:
    """Chunks from `source`, with a place among the open streams that is given back once, however this ends.

    An empty chunk says that the source still waits; the stream ends there when the client has gone meanwhile.
    The server calls `close` when the response is over or the client is gone; it closes the source, so that a
    generator's `finally` runs.
    """

    def __init__(
        self,
        source: Iterator[bytes],
        *,
        workspace_id: uuid.UUID,
        peer: socket.socket | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        OPEN_STREAMS.enter(workspace_id)
        self._workspace_id = workspace_id
        self._source = source
        self._peer = peer
        self._on_close = on_close
        self._lock = threading.Lock()
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        release_database()
        try:
            chunk = next(self._source)
            # With nothing to send, no write would fail: the end of the connection has to be looked for.
            if not chunk and _has_hung_up(self._peer):
                raise StopIteration
        except BaseException:
            self.close()
            raise
        return chunk

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        try:
            if isinstance(self._source, Generator):
                self._source.close()
        finally:
            release_database()
            OPEN_STREAMS.leave(self._workspace_id)
            if self._on_close is not None:
                self._on_close()


def encode_event(event: StreamEvent) -> bytes:
    """One event in the text/event-stream format. JSON has no bare line breaks, so one data line is enough."""
    if event.kind == HEARTBEAT:
        return b": heartbeat\n\n"
    data = json.dumps(event.data, ensure_ascii=False, separators=(",", ":"))
    identity = f"id: {event.id}\n" if event.id else ""
    return f"{identity}event: {event.kind}\ndata: {data}\n\n".encode()


def _encoded(events: Iterable[StreamEvent]) -> Generator[bytes, None, None]:
    try:
        # Sent at once: the browser knows that it is connected, and every buffer on the way is seen to be off.
        yield f"retry: {RECONNECT_MS}\n\n".encode()
        for event in events:
            yield encode_event(event)
    finally:
        if isinstance(events, Generator):
            events.close()


def open_stream_response(
    request: HttpRequest,
    chunks: Iterator[bytes],
    *,
    workspace_id: uuid.UUID,
    content_type: str,
    on_close: Callable[[], None] | None = None,
) -> StreamingHttpResponse:
    """A response that sends `chunks` as they come, unbuffered and uncached; `workspace_id` is who listens (for a file
    of the console: the operator's id, which has a share of its own). `on_close` is called once when it is over, also
    where nothing of it was ever sent.

    Raises TooManyStreams.
    """
    response = StreamingHttpResponse(
        HeldStream(
            chunks,
            workspace_id=workspace_id,
            peer=request.META.get("gunicorn.socket"),
            on_close=on_close,
        ),
        content_type=content_type,
    )
    response["Cache-Control"] = "private, no-store"
    # nginx would hold the first bytes back until its buffer is full.
    response["X-Accel-Buffering"] = "no"
    return response


def event_stream_response(
    request: HttpRequest, events: Iterable[StreamEvent], *, workspace_id: uuid.UUID
) -> StreamingHttpResponse:
    """Server-sent events from `events`, which is closed with the response. Raises TooManyStreams."""
    return open_stream_response(
        request,
        _encoded(events),
        workspace_id=workspace_id,
        content_type="text/event-stream; charset=utf-8",
    )
