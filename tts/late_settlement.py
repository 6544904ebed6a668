"""The settlement of the segment spoken last, made while the engine works on the next one.

Charging, closing and telling takes as long as many a short word: a device must not wait for it. Nothing is promised
to anybody meanwhile: until it is settled the attempt is a running one, and if its worker dies now, its lease runs out
and it is spoken again.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable

from portal.lib.database import drop_broken_connections

logger = logging.getLogger(__name__)
# The next segment is normally on its way to the engine within milliseconds. If it never comes, a side thread settles.
OVERDUE_S = 0.5


class LateSettlement:
    """Holds at most one settlement. Any thread may make it; it is made once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._task: Callable[[], None] | None = None
        self._give_up: Callable[[], None] | None = None
        self._put_at = 0.0

    def put(self, task: Callable[[], None], *, give_up: Callable[[], None]) -> None:
        """Keep this settlement for `make`; an earlier one is made first. `give_up` is called when it fails."""
        self.make()
        with self._lock:
            self._task, self._give_up, self._put_at = task, give_up, time.monotonic()

    def make(self) -> None:
        """Make the settlement that is due, if there is one; waits while another thread is making it. Never raises:
        whoever calls is busy with another customer's segment."""
        with self._lock:
            task, self._task = self._task, None
            if task is None or self._give_up is None:
                return
            try:
                task()
            except Exception as error:
                # Storage or database: either all of it is written, or nothing and the segment is spoken again.
                logger.error("settlement_failed", extra={"error": type(error).__name__})
                # The attempt that is being spoken meanwhile is to be settled on a connection that works.
                drop_broken_connections()
                with contextlib.suppress(Exception):  # then its lease runs out by itself
                    self._give_up()

    def make_if_overdue(self) -> None:
        if self._task is not None and time.monotonic() - self._put_at > OVERDUE_S:
            self.make()
