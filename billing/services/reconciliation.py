"""Reconciling: ask every question, and keep what does not add up until an operator has explained it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import date

from django.db import transaction
from django.db.models.functions import Now

from billing.errors import DifferenceNotFound
from billing.models import Difference, Reconciliation
from billing.reconciliation.checks import CHECKS, Check, Outcome, run_all
from portal.lib.clock import now

logger = logging.getLogger(__name__)


def reconcile(
    *, day: date | None, more: tuple[Check, ...] = (), tell: Callable[[Outcome], None] | None = None
) -> Reconciliation:
    """Look at a day (of UTC; None: at everything), store what was found, and return the run.

    `more`: questions of others about the same day. `tell` is called with each outcome as it comes. Differences are kept
    with the run, and are an alert on the console until somebody explains them.
    """
    run = Reconciliation.objects.create(day=day, started_at=now())
    counts: dict[str, int] = {}
    differing = 0
    found: list[Difference] = []
    # One snapshot: what moves meanwhile differs in none of the questions, or in all.
    with transaction.atomic():
        with transaction.get_connection().cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # Sums over all of the ledger: in memory, not by way of the disk.
            cursor.execute("SET LOCAL work_mem = '256MB'")
        for outcome in run_all((*CHECKS, *more), day=day):
            counts[outcome.check.name] = outcome.looked_at
            differing += outcome.differing
            found += [
                Difference(
                    reconciliation=run,
                    check_name=difference.check,
                    subject=difference.subject[:120],
                    expected=difference.expected,
                    actual=difference.actual,
                )
                for difference in outcome.differences
            ]
            if tell is not None:
                tell(outcome)
    Difference.objects.bulk_create(found)
    run.counts, run.differences, run.finished_at = counts, differing, now()
    run.save(update_fields=["counts", "differences", "finished_at"])
    if differing:
        logger.error("books_differ", extra={"reconciliation": run.pk, "differences": differing})
    return run


def explain_difference(*, difference_id: int, explanation: str) -> None:
    """Note why a difference is none, or how it was put right: it is no alert any more. Raises DifferenceNotFound."""
    explained = Difference.objects.filter(pk=difference_id, explained_at__isnull=True).update(
        explained_at=Now(), explanation=explanation[:300]
    )
    if not explained:
        raise DifferenceNotFound
