"""What the clock does about money: messages of providers, open payments and refunds, automatic top-ups, expiry.

In a thread of its own: a provider that does not answer must not keep the clock from its other work.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.db import connection

from billing.services.grants import expire_grants
from billing.services.inbox import work_inbox
from billing.services.payment_asking import ask_open_payments, run_automatic_top_ups
from billing.services.payment_refunds import ask_open_refunds

logger = logging.getLogger(__name__)
# What is done, and every how many ticks (seconds).
STEPS: tuple[tuple[Callable[[], int], int], ...] = (
    (work_inbox, 1),
    (ask_open_payments, 5),
    (ask_open_refunds, 5),
    (run_automatic_top_ups, 10),
    (expire_grants, 60),
)


def run_steps(tick: int) -> None:
    """All steps whose turn it is at this tick. One that fails does not keep the others from their turn."""
    for step, every in STEPS:
        if tick % every:
            continue
        try:
            step()
        except Exception:
            # The next turn tries again; everything it does is done once, however often it is tried.
            logger.exception("money_step_failed", extra={"step": step.__name__})


class MoneyUpkeep:
    """`tick` once a second while this process's clock leads."""

    def __init__(self) -> None:
        self._ticks = 0
        self._running: threading.Thread | None = None

    def tick(self) -> None:
        """Start the steps whose turn it is, unless those before are still at work. Returns at once."""
        if self._running is not None and self._running.is_alive():
            return
        # A daemon: a clock that is told to stop does not wait for a provider. What was asked of one is asked again.
        self._running = threading.Thread(target=self._run, args=[self._ticks], daemon=True, name="money")
        self._ticks += 1
        self._running.start()

    @staticmethod
    def _run(tick: int) -> None:
        try:
            run_steps(tick)
        finally:
            connection.close()
