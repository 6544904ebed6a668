"""What the clock does about money: messages of providers, open payments and refunds, automatic top-ups, expiry, plans.

In a thread of its own: a provider that does not answer must not keep the clock from its other work.
"""

from __future__ import annotations

from collections.abc import Callable

from billing.services.grants import expire_grants
from billing.services.inbox import work_inbox
from billing.services.inbox_retention import delete_old_events
from billing.services.payment_asking import ask_open_payments, run_automatic_top_ups
from billing.services.payment_refunds import ask_open_refunds
from billing.services.plan_changes import carry_out_plan_changes
from portal.lib.side_thread import SideThread, run_each

# What is done, and every how many ticks (seconds).
STEPS: tuple[tuple[Callable[[], int], int], ...] = (
    (work_inbox, 1),
    (ask_open_payments, 5),
    (ask_open_refunds, 5),
    (run_automatic_top_ups, 10),
    (carry_out_plan_changes, 10),
    (expire_grants, 60),
    (delete_old_events, 300),
)


def due_steps(tick: int) -> list[Callable[[], int]]:
    """All steps whose turn it is at this tick."""
    return [step for step, every in STEPS if tick % every == 0]


def run_steps(tick: int) -> None:
    """All steps whose turn it is at this tick. One that fails does not keep the others from their turn."""
    run_each(due_steps(tick))


class MoneyUpkeep:
    """`tick` once a second while this process's clock leads."""

    def __init__(self) -> None:
        self._ticks = 0
        self.thread = SideThread("money")

    def tick(self) -> None:
        """Start the steps whose turn it is, unless those before are still at work. Returns at once."""
        if self.thread.start(due_steps(self._ticks)):
            self._ticks += 1
