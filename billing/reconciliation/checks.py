"""What must be so in the books, each as one question to the database whose answer is what is not so.

Every question takes a day (of UTC) or none, and counts what it has looked at. They read, and change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from django.db import connection
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise  # the stubs' name of what gettext_lazy gives

# More than that of one kind is one cause: the rest is counted, not listed.
LISTED = 100


@dataclass(frozen=True)
class Check:
    """`counted` and `differing` are queries; the second has (subject, expected, actual). `%(start)s` and `%(end)s` are
    the day's ends, or those of all time. `differing_at_all`: a quicker one for all time."""

    name: str
    title: _StrPromise
    counted: str
    differing: str
    differing_at_all: str = ""


@dataclass(frozen=True)
class Difference:
    check: str
    subject: str
    expected: int
    actual: int


@dataclass(frozen=True)
class Outcome:
    """How many things a check looked at, how many of them differ, and the first of those."""

    check: Check
    looked_at: int
    differing: int
    differences: list[Difference]


# Put before every question: whose money has moved in that time.
_MOVED = """
WITH moved AS (
    SELECT DISTINCT workspace_id FROM billing_ledgertransaction WHERE created_at >= %(start)s AND created_at < %(end)s
)
"""

CHECKS = (
    Check(
        name="transactions_sum_to_zero",
        title=_("Every transaction of the ledger sums to zero"),
        counted="""
            SELECT COUNT(*) FROM billing_ledgertransaction WHERE created_at >= %(start)s AND created_at < %(end)s""",
        differing="""
            SELECT e.transaction_id::text, 0, SUM(e.amount_micros)
            FROM billing_ledgerentry e JOIN billing_ledgertransaction t ON t.id = e.transaction_id
            WHERE t.created_at >= %(start)s AND t.created_at < %(end)s
            GROUP BY e.transaction_id HAVING SUM(e.amount_micros) <> 0""",
        differing_at_all="""
            SELECT transaction_id::text, 0, SUM(amount_micros)
            FROM billing_ledgerentry GROUP BY transaction_id HAVING SUM(amount_micros) <> 0""",
    ),
    Check(
        name="balances_are_the_ledgers",
        title=_("What is available and held is what the ledger says"),
        counted="SELECT COUNT(*) FROM moved",
        differing="""
            WITH sums AS (
                SELECT t.workspace_id, e.account, SUM(e.amount_micros) AS amount
                FROM billing_ledgerentry e JOIN billing_ledgertransaction t ON t.id = e.transaction_id
                WHERE e.account IN ('available', 'held') AND t.workspace_id IN (SELECT workspace_id FROM moved)
                GROUP BY t.workspace_id, e.account
            ), cached AS (
                SELECT workspace_id, 'available' AS account, available_micros AS amount FROM billing_creditaccount
                UNION ALL SELECT workspace_id, 'held', held_micros FROM billing_creditaccount
            )
            SELECT cached.workspace_id::text || ' ' || cached.account, COALESCE(sums.amount, 0), cached.amount
            FROM cached LEFT JOIN sums USING (workspace_id, account)
            WHERE cached.workspace_id IN (SELECT workspace_id FROM moved)
                AND cached.amount <> COALESCE(sums.amount, 0)""",
    ),
    Check(
        name="credit_is_what_is_left_of_grants",
        title=_("What is left of all grants, less what is owed, is what there is"),
        counted="SELECT COUNT(*) FROM moved",
        differing="""
            SELECT a.workspace_id::text, COALESCE(g.remaining, 0) - a.owed_micros, a.available_micros + a.held_micros
            FROM billing_creditaccount a LEFT JOIN (
                SELECT workspace_id, SUM(remaining_micros) AS remaining FROM billing_creditgrant GROUP BY workspace_id
            ) AS g USING (workspace_id)
            WHERE a.workspace_id IN (SELECT workspace_id FROM moved)
                AND a.available_micros + a.held_micros <> COALESCE(g.remaining, 0) - a.owed_micros""",
    ),
    Check(
        name="grants_are_spent_as_noted",
        title=_("What is left of a grant is its amount less what was noted of its use"),
        counted="SELECT COUNT(*) FROM billing_creditgrant WHERE workspace_id IN (SELECT workspace_id FROM moved)",
        differing="""
            SELECT g.id::text, g.amount_micros - COALESCE(u.used, 0), g.remaining_micros
            FROM billing_creditgrant g LEFT JOIN (
                SELECT grant_id, SUM(amount_micros) AS used FROM billing_grantuse GROUP BY grant_id
            ) AS u ON u.grant_id = g.id
            WHERE g.workspace_id IN (SELECT workspace_id FROM moved)
                AND g.remaining_micros <> g.amount_micros - COALESCE(u.used, 0)""",
    ),
    Check(
        name="held_is_the_open_holds",
        title=_("What is held is what the open holds have left"),
        counted="SELECT COUNT(*) FROM billing_hold WHERE state = 'open'",
        differing="""
            WITH open AS (
                SELECT workspace_id, SUM(amount_micros - captured_micros) AS held
                FROM billing_hold WHERE state = 'open' GROUP BY workspace_id
            )
            SELECT a.workspace_id::text, COALESCE(open.held, 0), a.held_micros
            FROM billing_creditaccount a LEFT JOIN open USING (workspace_id)
            WHERE a.held_micros <> COALESCE(open.held, 0)""",
    ),
    Check(
        name="holds_are_settled_as_posted",
        title=_("What was captured of a hold is what the ledger captured for its job"),
        counted="SELECT COUNT(*) FROM billing_hold WHERE created_at >= %(start)s AND created_at < %(end)s",
        differing="""
            WITH wanted AS (
                SELECT id, job_id, captured_micros FROM billing_hold
                WHERE created_at >= %(start)s AND created_at < %(end)s
            ), posted AS (
                SELECT t.job_id, SUM(e.amount_micros) AS amount
                FROM billing_ledgertransaction t JOIN billing_ledgerentry e ON e.transaction_id = t.id
                WHERE t.kind = 'capture' AND e.account = 'revenue' AND t.created_at >= %(start)s
                GROUP BY t.job_id
            )
            SELECT wanted.job_id::text, COALESCE(posted.amount, 0), wanted.captured_micros
            FROM wanted LEFT JOIN posted USING (job_id)
            WHERE wanted.captured_micros <> COALESCE(posted.amount, 0)""",
    ),
    Check(
        name="usage_is_charged_once",
        title=_("Every billable attempt has one charge in the ledger, of the amount on its record"),
        counted="""
            SELECT COUNT(*) FROM billing_usagerecord
            WHERE billable AND created_at >= %(start)s AND created_at < %(end)s""",
        differing="""
            -- The two moments are taken by two clocks, one before the other: an hour more on either side.
            WITH used AS (
                SELECT 'capture:' || attempt_id AS key, charged_micros, created_at FROM billing_usagerecord
                WHERE billable AND created_at >= %(start)s::timestamptz - interval '1 hour'
                    AND created_at < %(end)s::timestamptz + interval '1 hour'
            ), posted AS (
                SELECT t.idempotency_key AS key, COALESCE(SUM(e.amount_micros), 0) AS amount,
                    MIN(t.created_at) AS created_at
                FROM billing_ledgertransaction t
                LEFT JOIN billing_ledgerentry e ON e.transaction_id = t.id AND e.account = 'revenue'
                WHERE t.kind = 'capture' AND t.created_at >= %(start)s::timestamptz - interval '1 hour'
                    AND t.created_at < %(end)s::timestamptz + interval '1 hour'
                GROUP BY t.idempotency_key
            )
            SELECT key, COALESCE(used.charged_micros, 0), COALESCE(posted.amount, 0)
            FROM used FULL JOIN posted USING (key)
            WHERE COALESCE(used.created_at, posted.created_at) >= %(start)s
                AND COALESCE(used.created_at, posted.created_at) < %(end)s
                AND (used.key IS NULL OR posted.key IS NULL OR used.charged_micros <> posted.amount)""",
    ),
    Check(
        name="charges_are_usage_times_price",
        title=_("Every rated amount is device time times its price, rounded once"),
        counted="""
            SELECT COUNT(*) FROM billing_usagerecord
            WHERE billable AND created_at >= %(start)s AND created_at < %(end)s""",
        # Half up, as billing.pricing rounds. Rows from before rates were noted have none.
        differing="""
            SELECT attempt_id::text, (gpu_ms * gpu_second_micros + 500) / 1000, rated_micros FROM billing_usagerecord
            WHERE billable AND price_version_id IS NOT NULL AND created_at >= %(start)s AND created_at < %(end)s
                AND rated_micros <> (gpu_ms * gpu_second_micros + 500) / 1000""",
    ),
    Check(
        name="days_are_the_records",
        title=_("The sums by day are those of the records"),
        counted="""
            SELECT COUNT(*) FROM billing_usageday
            WHERE day >= (%(start)s AT TIME ZONE 'UTC')::date - 1 AND day <= (%(end)s AT TIME ZONE 'UTC')::date""",
        differing="""
            WITH days AS (
                SELECT workspace_id, day, SUM(gpu_ms) AS gpu_ms, SUM(charged_micros) AS charged FROM billing_usageday
                WHERE day >= (%(start)s AT TIME ZONE 'UTC')::date - 1 AND day <= (%(end)s AT TIME ZONE 'UTC')::date
                GROUP BY workspace_id, day
            ), records AS (
                SELECT workspace_id, day, SUM(gpu_ms) AS gpu_ms, SUM(charged_micros) AS charged FROM billing_usagerecord
                WHERE day >= (%(start)s AT TIME ZONE 'UTC')::date - 1 AND day <= (%(end)s AT TIME ZONE 'UTC')::date
                GROUP BY workspace_id, day
            )
            SELECT workspace_id || ' ' || day || ' ' || v.what, v.expected, v.actual
            FROM days FULL JOIN records USING (workspace_id, day) CROSS JOIN LATERAL (VALUES
                ('gpu_ms', COALESCE(records.gpu_ms, 0), COALESCE(days.gpu_ms, 0)),
                ('charged_micros', COALESCE(records.charged, 0), COALESCE(days.charged, 0))
            ) AS v (what, expected, actual)
            WHERE v.expected <> v.actual""",
    ),
    Check(
        name="payments_are_booked",
        title=_("Every payment that succeeded brought credit of its amount"),
        counted="SELECT COUNT(*) FROM billing_payment WHERE state = 'succeeded'",
        differing="""
            SELECT p.id::text, p.amount_micros, g.amount_micros
            FROM billing_payment p JOIN billing_creditgrant g ON g.id = p.grant_id
            WHERE p.state = 'succeeded' AND g.amount_micros <> p.amount_micros""",
    ),
    Check(
        name="invoices_are_their_lines",
        title=_("Every invoice's fee and usage, less its discount, are the sum of its lines"),
        counted="SELECT COUNT(*) FROM billing_invoice WHERE corrects_id IS NULL",
        differing="""
            SELECT i.id::text, COALESCE(l.amount, 0), i.fee_micros + i.usage_micros - i.discount_micros
            FROM billing_invoice i LEFT JOIN (
                SELECT invoice_id, SUM(amount_micros) AS amount FROM billing_invoiceline GROUP BY invoice_id
            ) AS l ON l.invoice_id = i.id
            WHERE i.corrects_id IS NULL
                AND i.fee_micros + i.usage_micros - i.discount_micros <> COALESCE(l.amount, 0)""",
    ),
)


def run(check: Check, *, day: date | None) -> Outcome:
    """Ask one question. Reads only."""
    times = _times(day)
    differing = (check.differing_at_all if day is None else "") or check.differing
    with connection.cursor() as cursor:
        cursor.execute(f"{_MOVED} {check.counted}", times)
        looked_at = cursor.fetchone()[0]
        cursor.execute(
            # Of constants of this module and its like alone.
            f"{_MOVED} SELECT *, COUNT(*) OVER () FROM ({differing}) AS found LIMIT {LISTED}",  # noqa: S608
            times,
        )
        rows = cursor.fetchall()
    differences = [
        Difference(check.name, str(subject), int(expected), int(actual))
        for subject, expected, actual, _n in rows
    ]
    return Outcome(check, looked_at, rows[0][3] if rows else 0, differences)


def run_all(checks: tuple[Check, ...] = CHECKS, *, day: date | None) -> Iterator[Outcome]:
    """Every question in turn."""
    for check in checks:
        yield run(check, day=day)


def _times(day: date | None) -> dict[str, str]:
    if day is None:
        return {"start": "-infinity", "end": "infinity"}
    return {"start": f"{day.isoformat()} 00:00+00", "end": f"{day.isoformat()} 24:00+00"}
