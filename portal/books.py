"""The nightly reconciliation: the books' own questions and those of the pool."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, timedelta

from django.db import transaction

from billing.models import Reconciliation
from billing.reconciliation.checks import Outcome
from billing.services.reconciliation import reconcile
from portal.lib.clock import now
from tts.selectors.reconciliation import CHECKS


def reconcile_books(*, day: date | None, tell: Callable[[Outcome], None] | None = None) -> Reconciliation:
    """Look at a day, or at everything, and store what was found."""
    return reconcile(day=day, more=CHECKS, tell=tell)


def reconcile_yesterday() -> None:
    """Once a day: the day that has ended, by UTC. A task of the clock, of which one leads; later calls do nothing."""
    yesterday = now().astimezone(UTC).date() - timedelta(days=1)
    if Reconciliation.objects.filter(day=yesterday, finished_at__isnull=False).exists():
        return
    if transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError("a reconciliation begins a transaction of its own")
    reconcile_books(day=yesterday)
