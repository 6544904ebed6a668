"""The wish to stop: Ctrl-C, SIGTERM, a closed terminal, or the death of the process that started us."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from types import FrameType

# The kernel tells nobody that a parent died: it is looked for at this interval.
PARENT_CHECK_S = 1.0


class StopSignals:
    """Counts wishes to stop and lets the supervisor sleep until there is one, or until a child has ended."""

    def __init__(self) -> None:
        self.count = 0
        self._parent = os.getppid()
        self._orphaned = False
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(writer, False)
        # Python writes a byte for every signal, so that one which comes right before the sleep ends it at
        # once.
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1

    @property
    def asked(self) -> bool:
        return self.count > 0 or self._orphaned

    def sleep(self, seconds: float) -> None:
        """Sleep until a signal, the end of a child, or for `seconds`, at most a second."""
        select.select([self._reader], [], [], min(seconds, PARENT_CHECK_S))
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reader, 256):
                pass
        if os.getppid() != self._parent:
            self._orphaned = True
