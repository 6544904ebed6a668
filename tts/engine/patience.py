"""How long a worker waits for its engine."""

from __future__ import annotations

import time

from tts.engine.errors import EngineHung


class Patience:
    """How long to wait: for the next sign of life, and in all."""

    def __init__(self, no_progress_s: float, deadline_s: float) -> None:
        self._no_progress_s = no_progress_s
        self._started = self._last_sign = time.monotonic()
        self._deadline_s = deadline_s

    def renew(self) -> None:
        self._last_sign = time.monotonic()

    def check_deadline(self) -> None:
        elapsed = time.monotonic() - self._started
        if elapsed > self._deadline_s:
            raise EngineHung("deadline", elapsed)

    def check(self) -> None:
        self.check_deadline()
        silent = time.monotonic() - self._last_sign
        if silent > self._no_progress_s:
            raise EngineHung("no_progress", silent)
