"""Work beside a loop that must not wait for it: one round at a time, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from django.db import connection

from portal.lib.database import drop_broken_connections

logger = logging.getLogger(__name__)


class SideThread:
    """Runs rounds of tasks. A round that is still at work when the next is due makes that one wait for its own turn."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._running: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return self._running is not None and self._running.is_alive()

    def start(self, tasks: Sequence[Callable[[], object]]) -> bool:
        """Begin a round and return at once; False when the one before is still at work."""
        if self.is_busy:
            return False
        # A daemon: whoever is told to stop does not wait for it. What it leaves undone is done in the next round.
        self._running = threading.Thread(target=_run_and_close, args=[tasks], daemon=True, name=self._name)
        self._running.start()
        return True

    def wait(self, timeout_s: float) -> bool:
        """Wait for the round that is at work; whether it has ended."""
        if self._running is not None:
            self._running.join(timeout_s)
        return not self.is_busy


def run_each(tasks: Sequence[Callable[[], object]]) -> None:
    """Every task in turn, in this thread. One that fails is told of and does not keep the others from theirs."""
    for task in tasks:
        try:
            task()
        except Exception:
            logger.exception("task_failed", extra={"task": getattr(task, "__name__", "?")})
            drop_broken_connections()


def _run_and_close(tasks: Sequence[Callable[[], object]]) -> None:
    try:
        run_each(tasks)
    finally:
        connection.close()
