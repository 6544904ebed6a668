"""Reconciling: ask every question, and keep what does not add up until it does, or an operator has explained it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import date
from typing import Final

from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now

from billing.errors import DifferenceNotFound
from billing.models import Difference, Reconciliation
from billing.reconciliation.checks import CHECKS, Check, Outcome, run_all
from portal.lib.clock import now

logger = logging.getLogger(__name__)

# One that stands already is the same one, and stays explained while its numbers do. Returns whether it is an alert that
# was none before this run.
_KEEP: Final = """
WITH before AS (
    SELECT expected, actual, explained_at FROM billing_difference
    WHERE check_name = %(check)s AND subject = %(subject)s AND gone_at IS NULL
), kept AS (
    INSERT INTO billing_difference AS d (
        check_name, subject, expected, actual, reconciliation_id, last_found_by_id, explanation
    ) VALUES (%(check)s, %(subject)s, %(expected)s, %(actual)s, %(run)s, %(run)s, '')
    ON CONFLICT (check_name, subject) WHERE gone_at IS NULL DO UPDATE SET
        expected = excluded.expected, actual = excluded.actual, last_found_by_id = excluded.last_found_by_id,
        explained_at = CASE WHEN (d.expected, d.actual) = (excluded.expected, excluded.actual)
            THEN d.explained_at END,
        explanation = CASE WHEN (d.expected, d.actual) = (excluded.expected, excluded.actual)
            THEN d.explanation ELSE '' END
    RETURNING explained_at
)
SELECT kept.explained_at IS NULL AND NOT EXISTS (SELECT FROM before WHERE explained_at IS NULL) FROM kept
"""


def reconcile(
    *, day: date | None, more: tuple[Check, ...] = (), tell: Callable[[Outcome], None] | None = None
) -> Reconciliation:
    """Look at a day (of UTC; None: at everything), store what was found, and return the run.

    `more`: questions of others about the same day. `tell` is called with each outcome as it comes. A difference is one
    alert on the console from the run that finds it first until somebody explains it, or a run that looks for it again
    (at the same day, or at everything) finds it no more. What was found and the end of the run are one commit.
    """
    run = Reconciliation.objects.create(day=day, started_at=now())
    outcomes: list[Outcome] = []
    # One snapshot: what moves meanwhile differs in none of the questions, or in all.
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # Sums over all of the ledger: in memory, not by way of the disk.
            cursor.execute("SET LOCAL work_mem = '256MB'")
        for outcome in run_all((*CHECKS, *more), day=day):
            outcomes.append(outcome)
            if tell is not None:
                tell(outcome)
    with transaction.atomic():
        alerts = _keep(run, outcomes)
        _end_those_gone(run, outcomes)
        run.counts = {outcome.check.name: outcome.looked_at for outcome in outcomes}
        run.differences, run.finished_at = sum(outcome.differing for outcome in outcomes), now()
        run.save(update_fields=["counts", "differences", "finished_at"])
    if alerts:
        logger.error(
            "books_differ", extra={"reconciliation": run.pk, "differences": run.differences, "new": alerts}
        )
    return run


def _keep(run: Reconciliation, outcomes: Sequence[Outcome]) -> int:
    """Store what was found; returns how many are alerts that were none before."""
    # In one order, so that two runs at once do not wait for each other in a circle.
    found = sorted(
        (difference for outcome in outcomes for difference in outcome.differences),
        key=lambda difference: (difference.check, difference.subject),
    )
    alerts = 0
    with connection.cursor() as cursor:
        for difference in found:
            values: dict[str, str | int] = {
                "check": difference.check,
                "subject": difference.subject[:120],
                "expected": difference.expected,
                "actual": difference.actual,
                "run": run.pk,
            }
            cursor.execute(_KEEP, values)
            alerts += cursor.fetchone()[0]
    return alerts


def _end_those_gone(run: Reconciliation, outcomes: Sequence[Outcome]) -> None:
    """End what this run looked for and did not find. Where more differs than is listed, the rest is not known."""
    listed = [outcome.check.name for outcome in outcomes if outcome.differing <= len(outcome.differences)]
    looked_for = Difference.objects.annotate(
        found_by=Coalesce(F("last_found_by"), F("reconciliation")),
        found_on=Coalesce(F("last_found_by__day"), F("reconciliation__day")),
    ).filter(check_name__in=listed, gone_at__isnull=True, found_by__lt=run.pk)
    if run.day is not None:
        looked_for = looked_for.filter(Q(found_on=run.day))
    gone = list(looked_for.values_list("pk", flat=True))
    Difference.objects.filter(pk__in=gone, gone_at__isnull=True).update(gone_at=Now())


def explain_difference(*, difference_id: int, explanation: str) -> None:
    """Note why a difference is none, or how it was put right: it is no alert any more. Raises DifferenceNotFound."""
    explained = Difference.objects.filter(
        pk=difference_id, explained_at__isnull=True, gone_at__isnull=True
    ).update(explained_at=Now(), explanation=explanation[:300])
    if not explained:
        raise DifferenceNotFound
