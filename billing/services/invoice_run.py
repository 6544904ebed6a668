"""The monthly run: every month that is over becomes an invoice, and every month that begins its included credit."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import islice

from django.db import IntegrityError, connection

from billing.services.included import grant_all_included
from billing.services.invoices import close_months
from portal.lib.clock import database_now
from portal.lib.errors import DomainError

logger = logging.getLogger(__name__)
# How long after its end a month is closed, so that what was spoken at its end is on its invoice.
CLOSE_AFTER = timedelta(hours=1)
# How many months are caught up after a time without a clock; those before are closed by `manage.py invoice`.
CATCH_UP_MONTHS = 3
# Nothing is charged to a workspace while its batch is closed: few at once.
CLOSE_AT_ONCE = 20

# Workspaces whose month %(first_day)s is over at %(moment)s in their own zone, that have something to bill in it, and
# that have no invoice of that month or of a later one.
_DUE = """
SELECT account.workspace_id FROM billing_creditaccount account
WHERE (%(moment)s AT TIME ZONE account.time_zone)::date > %(last_day)s
    AND NOT EXISTS (
        SELECT 1 FROM billing_invoice invoice
        WHERE invoice.workspace_id = account.workspace_id AND invoice.corrects_id IS NULL AND invoice.state = 'final'
            AND invoice.period_end > %(first_day)s::date - 3
            AND (invoice.period_end AT TIME ZONE invoice.time_zone)::date > %(last_day)s
    ) AND (
        EXISTS (
            SELECT 1 FROM billing_usageday used WHERE used.workspace_id = account.workspace_id
                AND used.day BETWEEN %(first_day)s AND %(last_day)s
                AND (used.charged_micros > 0 OR used.refunded_micros > 0)
        ) OR EXISTS (
            SELECT 1 FROM billing_subscription subscription
            JOIN billing_planversion version
                ON version.id = subscription.plan_version_id AND version.monthly_fee_micros > 0
            WHERE subscription.workspace_id = account.workspace_id
                AND (subscription.starts_at AT TIME ZONE account.time_zone)::date <= %(last_day)s
                AND (subscription.ends_at IS NULL
                    OR (subscription.ends_at AT TIME ZONE account.time_zone)::date > GREATEST(
                        %(first_day)s, (subscription.starts_at AT TIME ZONE account.time_zone)::date
                    ))
        )
    )
ORDER BY account.workspace_id
"""


def close_due_periods(*, at: datetime | None = None) -> int:
    """Give what plans include in the month that has begun, and close every month that is over; returns how many
    invoices were made. For the clock: it may run at any time, as often as one likes, and twice at once.

    A workspace that cannot be invoiced is logged and left for the next run; it keeps none of the others waiting.
    """
    now = at or database_now()
    grant_all_included(at=now)
    moment = now - CLOSE_AFTER
    # A month ends first where the day begins first, 14 hours before it does in UTC.
    newest = _month_before((moment + timedelta(hours=14)).date().replace(day=1))
    months = [newest]
    while len(months) < CATCH_UP_MONTHS:
        months.append(_month_before(months[-1]))
    return sum(close_all(month=month, at=moment) for month in reversed(months))


def close_all(*, month: date, at: datetime) -> int:
    """Close a month, named by its first day, for every workspace in whose zone it is over at `at`; returns how many
    invoices were made."""
    last_day = _month_after(month) - timedelta(days=1)
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {"moment": at, "first_day": month, "last_day": last_day})
        due = [workspace_id for (workspace_id,) in cursor.fetchall()]
    made = sum(_close_batch(batch, month, at) for batch in _batches(due))
    if made:
        logger.info("invoices_made", extra={"month": month.isoformat(), "invoices": made})
    return made


def _close_batch(workspace_ids: Sequence[uuid.UUID], month: date, at: datetime) -> int:
    try:
        return close_months(workspace_ids=workspace_ids, month=month, at=at)
    except (DomainError, IntegrityError, RuntimeError) as error:
        if len(workspace_ids) > 1:
            return sum(_close_batch([workspace_id], month, at) for workspace_id in workspace_ids)
        code = error.code if isinstance(error, DomainError) else type(error).__name__
        logger.error("invoice_refused", extra={"workspace_id": str(workspace_ids[0]), "error_code": code})
        return 0


def _batches(workspace_ids: Sequence[uuid.UUID]) -> Iterator[list[uuid.UUID]]:
    left = iter(workspace_ids)
    while batch := list(islice(left, CLOSE_AT_ONCE)):
        yield batch


def _month_before(first_day: date) -> date:
    return (first_day - timedelta(days=1)).replace(day=1)


def _month_after(first_day: date) -> date:
    return (first_day + timedelta(days=31)).replace(day=1)
