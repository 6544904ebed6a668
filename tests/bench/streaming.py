"""From a chunk that the engine made to its first byte at the client, with fifty streams at once.

Five slots speak in three quarters of the time that the speech lasts; ten listeners follow each over HTTP, through
gunicorn as production configures it. The simulated engine stamps every chunk with the host's monotonic clock, which
all processes share.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from portal.embedded.ports import port_of, reserve_loopback_port
from tests.bench._pool import ROOT, BenchPool, bench_pool, percentile
from tts.engine.simulated import STAMP

if TYPE_CHECKING:
    from accounts.models import Workspace

SLOTS = 5
LISTENERS_PER_JOB = 10
ROUNDS = 4
CHUNK_MS = 400
WORK_MS_PER_CHARACTER = 150
AUDIO_MS_PER_CHARACTER = 200
SENTENCE = "声" * 39 + "。"
SENTENCES = 1  # a second one could be spoken beside it, and would wait for its turn
ENGINE_SETTINGS: dict[str, object] = {
    "real_time": True,
    "ms_per_character": WORK_MS_PER_CHARACTER,
    "audio_ms_per_character": AUDIO_MS_PER_CHARACTER,
    "chunk_ms": CHUNK_MS,
    "stamp_chunks": True,
}
STAMP_BYTES = len(STAMP) + 8
TIMEOUT_S = 120.0


def run() -> dict[str, float]:
    """Return `p50_ms` and `p99_ms` over all chunks of all streams, and how many `chunks` were counted."""
    streams = SLOTS * LISTENERS_PER_JOB
    # The kernel decides which of the two web processes takes a connection: each has room for all.
    limits = {
        "OPEN_STREAMS_PER_PROCESS": str(streams),
        "OPEN_STREAMS_PER_WORKSPACE": str(streams),
        "WEB_THREADS": "64",
    }
    with bench_pool(REQUESTS_PER_MINUTE="100000", RUNNING_JOBS_PER_WORKSPACE="100", **limits) as bench:
        bench.processes.start_node(engine_settings=ENGINE_SETTINGS, slots=SLOTS)
        bench.wait_for_slots(SLOTS)
        customer = bench.customer()
        with reserve_loopback_port() as reserved:
            port = port_of(reserved)
        web = _start_web(port)
        try:
            _wait_until_it_answers(port)
            key = _api_key(customer)
            _one_round(bench, customer, port, key)  # both web processes import what they need
            lags_ms = [lag_ms for _ in range(ROUNDS) for lag_ms in _one_round(bench, customer, port, key)]
        finally:
            web.terminate()
            web.wait(30)
    expected = ROUNDS * streams * SENTENCES * len(SENTENCE) * AUDIO_MS_PER_CHARACTER // CHUNK_MS
    if len(lags_ms) < expected / 2:
        raise RuntimeError(
            f"of {expected} chunks only {len(lags_ms)} were made while their listener was there"
        )
    return {
        "p50_ms": round(percentile(lags_ms, 50), 2),
        "p99_ms": round(percentile(lags_ms, 99), 2),
        "chunks": len(lags_ms),
    }


def _start_web(port: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "WEB_BIND": f"127.0.0.1:{port}", "WEB_WORKERS": "2"}
    command = [sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", "--log-level", "error"]
    return subprocess.Popen(command, cwd=ROOT, env=environment)


def _wait_until_it_answers(port: int) -> None:
    from tests.pool.processes import wait_for

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_for(answers, timeout_s=60, what="the web server to answer")


def _one_round(bench: BenchPool, customer: Workspace, port: int, key: str) -> list[float]:
    """How late each chunk was at each listener, in milliseconds."""
    jobs = [bench.submit(customer, SENTENCE * SENTENCES) for _ in range(SLOTS)]
    paths = [f"/api/v1/jobs/{job.pk}/stream" for job in jobs for _ in range(LISTENERS_PER_JOB)]
    listeners = [_Listener(port, path, key) for path in paths]
    try:
        _listen(listeners)
    finally:
        for listener in listeners:
            listener.connection.close()
    return [lag for listener in listeners for lag in listener.lags_ms]


def _api_key(customer: Workspace) -> str:
    from accounts.models import Membership, User
    from accounts.services.api_keys import create_api_key

    user = User.objects.create(email="bench@example.com")
    Membership.objects.create(workspace=customer, user=user)
    _, key = create_api_key(workspace=customer, user=user, name="bench")
    return key


def _listen(listeners: list[_Listener]) -> None:
    """Read all streams to their ends, in one thread, so that no listener waits for another's turn."""
    with selectors.DefaultSelector() as selector:
        for listener in listeners:
            selector.register(listener.connection, selectors.EVENT_READ, listener)
        deadline = time.monotonic() + TIMEOUT_S
        while selector.get_map():
            if time.monotonic() > deadline:
                raise RuntimeError("the streams did not end")
            for ready, _ in selector.select(1.0):
                if not ready.data.read():
                    selector.unregister(ready.fileobj)
                    ready.data.connection.close()  # as clients do; gunicorn waits for it


@dataclass
class _Listener:
    """One HTTP/1.0 client: the body comes as it is, and the connection's end is its end."""

    port: int
    path: str
    key: str
    lags_ms: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.connection = socket.create_connection(("127.0.0.1", self.port))
        self.connection.sendall(
            f"GET {self.path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\n\r\n".encode()
        )
        self._received = bytearray()
        self._listens_since_ns = 0

    def read(self) -> bool:
        """Take what is there and note the stamps in it; False at the end."""
        data = self.connection.recv(1 << 20)
        now_ns = time.monotonic_ns()
        if not data:
            return False
        self._received += data
        if not self._listens_since_ns:
            head, found, body = self._received.partition(b"\r\n\r\n")
            if not found:
                return True
            if b" 200 " not in head.split(b"\r\n", 1)[0]:
                raise RuntimeError(f"the stream was refused: {bytes(head)!r}")
            self._listens_since_ns = now_ns
            self._received = body
        self._note_stamps(now_ns)
        return True

    def _note_stamps(self, now_ns: int) -> None:
        while (found := self._received.find(STAMP)) >= 0 and len(self._received) >= found + STAMP_BYTES:
            number = self._received[found + len(STAMP) : found + STAMP_BYTES]
            made_ns = int.from_bytes(number, "little")
            # What was made before this listener was let in was waiting for it, not the other way round.
            if made_ns >= self._listens_since_ns:
                self.lags_ms.append((now_ns - made_ns) / 1e6)
            del self._received[: found + STAMP_BYTES]
        if found < 0:
            # A stamp may have come in half.
            del self._received[: -len(STAMP)]
