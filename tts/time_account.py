"""Where a slot's time goes, by its worker's own monotonic clock: up, at work, at its test sentence; else idle."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Spent:
    """Whole milliseconds. `up_ms` is the time that the slot could be given work or was at work; `worked_ms` is the part
    of it in which a customer's request was with the engine; `canary_ms` is the engine's own measure, beside them."""

    up_ms: int
    worked_ms: int
    canary_ms: int


class TimeAccount:
    """Counts from whatever thread; nothing is counted twice, and fractions of a millisecond are kept for later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready = self._working = False
        self._counted_until_ns = time.monotonic_ns()
        self._up_ns = self._worked_ns = self._canary_ms = 0

    @property
    def ready(self) -> bool:
        """Whether the slot may be given work."""
        return self._ready

    @ready.setter
    def ready(self, is_ready: bool) -> None:
        with self._lock:
            self._count()
            self._ready = is_ready

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """While a request is with the engine."""
        self._set_working(True)
        try:
            yield
        finally:
            self._set_working(False)

    def add_canary(self, gpu_ms: int) -> None:
        """A test sentence took so long."""
        with self._lock:
            self._canary_ms += gpu_ms

    def take(self) -> Spent:
        """What has come together since the last time."""
        with self._lock:
            self._count()
            spent = Spent(self._up_ns // NS_PER_MS, self._worked_ns // NS_PER_MS, self._canary_ms)
            self._up_ns -= spent.up_ms * NS_PER_MS
            self._worked_ns -= spent.worked_ms * NS_PER_MS
            self._canary_ms = 0
            return spent

    def put_back(self, spent: Spent) -> None:
        """What could not be written down."""
        with self._lock:
            self._up_ns += spent.up_ms * NS_PER_MS
            self._worked_ns += spent.worked_ms * NS_PER_MS
            self._canary_ms += spent.canary_ms

    def _set_working(self, is_working: bool) -> None:
        with self._lock:
            self._count()
            self._working = is_working

    def _count(self) -> None:
        now_ns = time.monotonic_ns()
        passed_ns, self._counted_until_ns = now_ns - self._counted_until_ns, now_ns
        if self._working:
            self._worked_ns += passed_ns
        if self._working or self._ready:
            self._up_ns += passed_ns
