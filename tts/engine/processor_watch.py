"""A sign of life from an engine on the processor: while this process uses it, it works, however long a call takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# A process that hangs in a lock uses no processor time; this one's own watching uses far less than that.
WATCH_INTERVAL_S = 1.0
WORKING_S = 0.05


class ProcessorWatch:
    """While it is entered, reports progress as long as this process uses the processor."""

    def __init__(self, report_progress: Callable[[], None]) -> None:
        self._report_progress = report_progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="processor-watch", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        # Not waited for: what it may still say is of a request that has ended, and nobody listens to that any more.
        self._over.set()

    def _watch(self) -> None:
        used_s = time.process_time()
        while not self._over.wait(WATCH_INTERVAL_S):
            now_s = time.process_time()
            if now_s - used_s >= WORKING_S:
                used_s = now_s
                self._report_progress()
