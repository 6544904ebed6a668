"""One request to a speech server, with a limit on everything: a thread of its own reads, whoever waits can leave.

Standard library only; redirects are not followed (they would carry the key elsewhere), proxies are not used.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Optional, Union

from tts.engine.remote_settings import RemoteSettings

BLOCK_BYTES = 65_536
# Blocks that wait for whoever takes them: then the server has to wait too.
BLOCKS_AHEAD = 32
POLL_S = 0.1
OUTLIVES_S = 30.0
MAX_JSON_BYTES = 1_000_000


class RemoteFailure(Exception):
    """The request came to nothing. `kind`: unreachable, timeout, broken or too_large. `detail` is for operators."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


@dataclass(frozen=True)
class Head:
    """The begin of an answer. `retry_after_s` None: it does not say."""

    status: int
    content_type: str
    retry_after_s: Optional[float]


class Exchange:
    """One request on its way. Use as a context manager: leaving closes the connection, wherever it stands."""

    def __init__(
        self, settings: RemoteSettings, method: str, path: str, body: Optional[dict[str, Any]] = None
    ) -> None:
        self._settings = settings
        base = settings.base
        made: type[http.client.HTTPConnection] = http.client.HTTPConnection
        more: dict[str, Any] = {}
        if base.secure:
            made, more = http.client.HTTPSConnection, {"context": ssl.create_default_context()}
        self._connection = made(base.host, base.port, timeout=settings.connect_s, **more)
        self._method, self._path, self._body = method, base.path + path, body
        self._events: queue.Queue[Union[Head, bytes, RemoteFailure, None]] = queue.Queue(BLOCKS_AHEAD)
        self._closed = threading.Event()
        self._connected = threading.Event()
        self._started_at = time.monotonic()

    def __enter__(self) -> Exchange:
        threading.Thread(target=self._run, name="remote-speech", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        sock = self._connection.sock
        if sock is not None:
            # Wakes a thread that waits in a read; closing alone does not.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def head(self, on_wait: Callable[[], None]) -> Head:
        """The answer's begin. `on_wait` is called ten times a second and may raise.

        Raises:
            RemoteFailure: there is none in time.
        """
        found = self._next(on_wait, self._settings.first_byte_s)
        if not isinstance(found, Head):
            raise RemoteFailure("broken", "an answer without a begin")
        return found

    def blocks(self, on_wait: Callable[[], None]) -> Iterator[bytes]:
        """The body as it comes. The first block has what is left of the time for the first byte, each later one
        `idle_s`, the whole `total_s`. Raises like `head`."""
        limit_s = max(0.0, self._settings.first_byte_s - (time.monotonic() - self._started_at))
        while True:
            found = self._next(on_wait, limit_s)
            if found is None:
                return
            if isinstance(found, bytes):
                yield found
            limit_s = self._settings.idle_s

    def _next(self, on_wait: Callable[[], None], limit_s: float) -> Union[Head, bytes, None]:
        waited_since = time.monotonic()
        while True:
            on_wait()
            now = time.monotonic()
            if now - self._started_at > self._settings.total_s:
                raise RemoteFailure("timeout", f"not done within {self._settings.total_s:g} s")
            if not self._connected.is_set() and now - self._started_at > self._settings.connect_s + 1:
                # Also the name's resolution, which has no limit of its own.
                raise RemoteFailure("unreachable", f"no connection within {self._settings.connect_s:g} s")
            with contextlib.suppress(queue.Empty):
                found = self._events.get(timeout=POLL_S)
                if isinstance(found, RemoteFailure):
                    raise found
                return found
            if self._connected.is_set() and time.monotonic() - waited_since > limit_s:
                raise RemoteFailure("timeout", f"nothing came for {limit_s:g} s")

    # --- in the thread

    def _run(self) -> None:
        try:
            self._talk()
        except (OSError, http.client.HTTPException, ValueError) as error:
            kind = "broken" if self._connected.is_set() else "unreachable"
            # The type alone: a message may hold what was sent.
            self._put(RemoteFailure(kind, type(error).__name__))
        finally:
            self._connection.close()

    def _talk(self) -> None:
        self._connection.connect()
        self._connected.set()
        if self._closed.is_set():
            return
        # Whoever waits keeps the time; this one only must not outlive that for long.
        self._connection.sock.settimeout(self._settings.total_s + OUTLIVES_S)
        headers = {"Accept": "*/*", "User-Agent": "VoicePool"}
        if self._settings.key:
            headers["Authorization"] = f"Bearer {self._settings.key}"
        content = None
        if self._body is not None:
            content = json.dumps(self._body, ensure_ascii=False).encode()
            headers["Content-Type"] = "application/json"
        self._connection.request(self._method, self._path, content, headers)
        response = self._connection.getresponse()
        self._put(
            Head(
                status=response.status,
                content_type=(response.getheader("Content-Type") or "").lower(),
                retry_after_s=_seconds(response.getheader("Retry-After")),
            )
        )
        while not self._closed.is_set():
            block = response.read1(BLOCK_BYTES)
            if not block:
                if response.length:
                    raise http.client.IncompleteRead(b"", response.length)
                self._put(None)
                return
            self._put(block)

    def _put(self, event: Union[Head, bytes, RemoteFailure, None]) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._events.put(event, timeout=POLL_S)
                return


def get_json(settings: RemoteSettings, path: str) -> tuple[int, Any]:
    """Status and content of a small JSON answer; content None where it is none.

    Raises:
        RemoteFailure: there is no answer in time.
    """
    with Exchange(settings, "GET", path) as exchange:
        head = exchange.head(lambda: None)
        content = b""
        for block in exchange.blocks(lambda: None):
            content += block
            if len(content) > MAX_JSON_BYTES:
                raise RemoteFailure("too_large", f"more than {MAX_JSON_BYTES} bytes of JSON")
    try:
        return head.status, json.loads(content)
    except ValueError:
        return head.status, None


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:  # a date: servers that are busy for so long are rather asked again soon
        return None
