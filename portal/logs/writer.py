"""The lines of the request log on their way to the database: kept in memory for a second, then written in bulk.

A request only puts its line into a bounded queue. A thread of each process writes what has gathered, every second or
at every 200 lines, and at the process's end. When the database is away the lines wait; when the queue is full, new
ones are dropped and counted.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable
from functools import cache
from typing import Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction

from portal.logs.models import RequestLog
from portal.logs.totals import Labels, add_totals, labels_of

logger = logging.getLogger(__name__)

FLUSH_LINES: Final = 200
CAPACITY: Final = 10_000
# Upper bounds of the histogram of durations, in milliseconds.
DURATION_BOUNDS_MS: Final = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
REQUESTS = "http_requests"
DURATION_BUCKETS = "http_duration_buckets"
DURATION_MS = "http_duration_ms"
DROPPED = "request_log_dropped"


class RequestLogWriter:
    """The queue of one process and what writes it. `flush_s` of 0: no thread, somebody calls `flush`."""

    def __init__(self, *, flush_s: float, capacity: int = CAPACITY) -> None:
        self._flush_s = flush_s
        self._capacity = capacity
        self._start_over()
        # The child of a fork has no thread, and its parent writes what is in the queue.
        mine: weakref.WeakMethod[Callable[[], None]] = weakref.WeakMethod(self._start_over)
        os.register_at_fork(after_in_child=lambda: _call(mine))

    def _start_over(self) -> None:
        self._lines: deque[RequestLog] = deque()
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._full = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def put(self, *, line: RequestLog | None, route: str, method: str, status: int, duration_ms: int) -> None:
        """Count a request and keep its line, if it has one. Never waits for the database, never raises."""
        with self._lock:
            self._counts[REQUESTS, labels_of(route=route, method=method, status=str(status))] += 1
            self._counts[DURATION_MS, labels_of(route=route, method=method)] += duration_ms
            bound = next((str(bound) for bound in DURATION_BOUNDS_MS if duration_ms <= bound), "+Inf")
            self._counts[DURATION_BUCKETS, labels_of(route=route, method=method, le=bound)] += 1
            if line is not None:
                if len(self._lines) < self._capacity:
                    self._lines.append(line)
                else:
                    self._counts[DROPPED, ()] += 1
            if len(self._lines) >= FLUSH_LINES:
                self._full.set()
            if self._thread is None and self._flush_s:
                self._start_thread()

    def flush(self) -> int:
        """Write what is there; returns how many lines were written. What cannot be written now is kept for later."""
        written = 0
        with self._flushing:
            while True:
                with self._lock:
                    self._full.clear()
                    lines = [self._lines.popleft() for _ in range(min(FLUSH_LINES, len(self._lines)))]
                    counts, self._counts = self._counts, Counter()
                if not lines and not counts:
                    return written
                try:
                    self._write(lines, counts)
                except (OperationalError, InterfaceError) as error:
                    self._take_back(lines, counts)
                    logger.warning("request_log_waits", extra={"error": type(error).__name__})
                    return written
                except DatabaseError as error:
                    # A line that can never be stored must not block the others.
                    logger.error("request_log_lost", extra={"lines": len(lines)}, exc_info=error)
                written += len(lines)

    def clear(self) -> None:
        """Forget what has gathered. For tests."""
        with self._lock:
            self._lines.clear()
            self._counts.clear()

    def stop(self) -> None:
        """End the thread and write the rest."""
        self._stopping.set()
        self._full.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        with contextlib.suppress(DatabaseError):
            self.flush()

    def _write(self, lines: list[RequestLog], counts: Counter[tuple[str, Labels]]) -> None:
        with transaction.atomic():
            RequestLog.objects.bulk_create(lines)
            add_totals(counts)

    def _take_back(self, lines: list[RequestLog], counts: Counter[tuple[str, Labels]]) -> None:
        with self._lock:
            self._lines.extendleft(reversed(lines))
            self._counts.update(counts)
            while len(self._lines) > self._capacity:
                self._lines.pop()
                self._counts[DROPPED, ()] += 1

    def _start_thread(self) -> None:
        self._thread = threading.Thread(target=self._run, name="request-log", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._full.wait(self._flush_s)
            self.flush()
            # The connection goes back to the pool between two writes.
            connection.close()
            # A database that is away leaves the queue full: not asked again at once.
            self._stopping.wait(min(0.1, self._flush_s))


def _call(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    target = method()
    if target is not None:
        target()


@cache
def request_log() -> RequestLogWriter:
    """This process's writer."""
    return RequestLogWriter(flush_s=settings.REQUEST_LOG_FLUSH_S)
