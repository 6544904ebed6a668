"""Money as operators see it: whether the books balance, what came in, what is owed, and what is under way."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Q, Sum
from django.utils.functional import Promise

from accounts.models import Workspace
from billing.models import (
    CreditAccount,
    CreditGrant,
    Difference,
    Dispute,
    GrantKind,
    Hold,
    HoldState,
    LedgerAccount,
    LedgerTransaction,
    Payment,
    Reconciliation,
    Refund,
    TransactionKind,
)
from billing.reconciliation.checks import CHECKS
from billing.selectors.ledger import moved
from billing.selectors.payments import disputes, messages_in_trouble, open_refunds, unknown_payments
from portal.charts import Chart
from portal.console.pending_page import open_count
from portal.console.revenue import revenue_by_day, revenue_chart
from tts.selectors import reconciliation as pool

LISTED: Final = 20
DIFFERENCES_LISTED: Final = 100
SOON: Final = timedelta(days=7)
AGES_DAYS: Final = (30, 60, 90)

# What is owed is what was spent last: credit that comes in pays the oldest first. Of each workspace that owes, the days
# on which it spent, the newest first, until they make up what it owes; what is older than the last age is the rest.
_AGED: Final = """
WITH spent AS (
    SELECT a.workspace_id, a.owed_micros, t.created_at,
        -SUM(e.amount_micros) AS amount
    FROM billing_creditaccount a
    JOIN billing_ledgertransaction t ON t.workspace_id = a.workspace_id AND t.created_at >= %(oldest)s
    JOIN billing_ledgerentry e ON e.transaction_id = t.id AND e.account IN ('available', 'held')
    WHERE a.workspace_id = ANY(%(workspaces)s)
    GROUP BY a.workspace_id, a.owed_micros, t.id, t.created_at
    HAVING SUM(e.amount_micros) < 0
), running AS (
    SELECT *, SUM(amount) OVER (PARTITION BY workspace_id ORDER BY created_at DESC) - amount AS newer FROM spent
)
SELECT workspace_id, created_at >= %(first)s, created_at >= %(second)s,
    SUM(LEAST(amount, owed_micros - newer))::bigint
FROM running WHERE newer < owed_micros
GROUP BY 1, 2, 3
"""


@dataclass(frozen=True)
class DifferenceRow:
    difference: Difference
    title: str | Promise


@dataclass(frozen=True)
class ReceivableRow:
    """What a workspace owes by the age of what it was spent on: below 30, 60, 90 days, and older. `name` is empty where
    the workspace is gone."""

    workspace_id: uuid.UUID
    name: str
    currency: str
    owed_micros: int
    ages: list[int]


@dataclass(frozen=True)
class GrantRow:
    """What is left of one kind of credit, and what of it ends within a week."""

    label: str
    grants: int
    remaining_micros: int
    soon_micros: int


@dataclass(frozen=True)
class RefundRow:
    created_at: datetime
    workspace_id: uuid.UUID
    name: str
    job_id: uuid.UUID | None
    reason: str
    amount_micros: int


@dataclass(frozen=True)
class MoneyPage:
    """`books` is the last reconciliation that came to its end, None before the first."""

    books: Reconciliation | None
    checked: int
    differences: list[DifferenceRow]
    open_differences: int
    revenue: Chart
    today_micros: int
    receivables: list[ReceivableRow]
    owed_micros: int
    grants: list[GrantRow]
    holds: list[tuple[Hold, str]]
    hold_count: int
    held_micros: int
    unknown_payments: list[tuple[Payment, str]]
    payment_refunds: list[Refund]
    disputes: list[Dispute]
    messages_in_trouble: int
    refunds: list[RefundRow]
    pending_count: int


def open_difference_count() -> int:
    """How many differences stand that nobody has explained."""
    return Difference.objects.filter(explained_at__isnull=True, gone_at__isnull=True).count()


def read_money(*, now: datetime) -> MoneyPage:
    """Everything at one moment. The number of queries does not depend on how much there is."""
    finished = Reconciliation.objects.filter(finished_at__isnull=False)
    books = finished.order_by("-started_at").first()
    days = revenue_by_day(now=now)
    open_holds = Hold.objects.filter(state=HoldState.OPEN)
    held = open_holds.aggregate(many=Count("pk"), amount=Sum("amount_micros"), used=Sum("captured_micros"))
    owed = CreditAccount.objects.aggregate(total=Sum("owed_micros"))["total"] or 0
    holds = list(open_holds.order_by("created_at")[:LISTED])
    unknown = list(unknown_payments()[:LISTED])
    names = _names([*(hold.workspace_id for hold in holds), *(one.workspace_id for one in unknown)])
    return MoneyPage(
        books=books,
        checked=sum(books.counts.values()) if books is not None else 0,
        differences=_differences(),
        open_differences=open_difference_count(),
        revenue=revenue_chart(days),
        today_micros=days[-1].net_micros,
        receivables=receivable_rows(now=now),
        owed_micros=owed,
        grants=grant_rows(now=now),
        holds=[(hold, names.get(hold.workspace_id, "")) for hold in holds],
        hold_count=held["many"],
        held_micros=(held["amount"] or 0) - (held["used"] or 0),
        unknown_payments=[(payment, names.get(payment.workspace_id, "")) for payment in unknown],
        payment_refunds=list(open_refunds()[:LISTED]),
        disputes=list(disputes()[:LISTED]),
        messages_in_trouble=messages_in_trouble().count(),
        refunds=_refunds(),
        pending_count=open_count(),
    )


def _names(workspaces: list[uuid.UUID]) -> dict[uuid.UUID, str]:
    return dict(Workspace.objects.filter(pk__in=workspaces).values_list("pk", "name"))


def _differences() -> list[DifferenceRow]:
    titles = {check.name: check.title for check in (*CHECKS, *pool.CHECKS)}
    unexplained = Difference.objects.filter(explained_at__isnull=True, gone_at__isnull=True).select_related(
        "reconciliation"
    )
    return [
        DifferenceRow(difference, titles.get(difference.check_name, difference.check_name))
        for difference in unexplained.order_by("-pk")[:DIFFERENCES_LISTED]
    ]


def receivable_rows(*, now: datetime) -> list[ReceivableRow]:
    """Who owes most, first."""
    accounts = list(CreditAccount.objects.filter(owed_micros__gt=0).order_by("-owed_micros")[:LISTED])
    names = _names([account.pk for account in accounts])
    aged: dict[uuid.UUID, list[int]] = {account.pk: [0, 0, 0] for account in accounts}
    first, second, oldest = (now - timedelta(days=days) for days in AGES_DAYS)
    with connection.cursor() as cursor:
        arguments: dict[str, Any] = {
            "workspaces": list(aged),
            "oldest": oldest,
            "first": first,
            "second": second,
        }
        cursor.execute(_AGED, arguments)
        for workspace_id, below_first, below_second, amount in cursor.fetchall():
            aged[workspace_id][0 if below_first else 1 if below_second else 2] += amount
    rows = []
    for account in accounts:
        ages = aged[account.pk]
        rows.append(
            ReceivableRow(
                workspace_id=account.pk,
                name=names.get(account.pk, ""),
                currency=account.currency,
                owed_micros=account.owed_micros,
                ages=[*ages, account.owed_micros - sum(ages)],
            )
        )
    return rows


def grant_rows(*, now: datetime) -> list[GrantRow]:
    """What is left of grants by their kind, in the order of spending."""
    soon = Q(expires_at__lte=now + SOON)
    sums = (
        CreditGrant.objects.filter(is_spent=False)
        .values("kind")
        .annotate(many=Count("pk"), left=Sum("remaining_micros"), ending=Sum("remaining_micros", filter=soon))
    )
    found = {row["kind"]: row for row in sums}
    return [
        GrantRow(
            label=str(kind.label),
            grants=found[kind.value]["many"] if kind.value in found else 0,
            remaining_micros=found[kind.value]["left"] if kind.value in found else 0,
            soon_micros=(found[kind.value]["ending"] or 0) if kind.value in found else 0,
        )
        for kind in GrantKind
    ]


def _refunds() -> list[RefundRow]:
    """The newest refunds of jobs, as the ledger has them."""
    newest = list(
        LedgerTransaction.objects.filter(kind=TransactionKind.REFUND)
        .prefetch_related("entries")
        .order_by("-created_at")[:LISTED]
    )
    names = _names([refund.workspace_id for refund in newest])
    return [
        RefundRow(
            created_at=refund.created_at,
            workspace_id=refund.workspace_id,
            name=names.get(refund.workspace_id, ""),
            job_id=refund.job_id,
            reason=refund.reason,
            amount_micros=moved(refund, LedgerAccount.AVAILABLE),
        )
        for refund in newest
    ]
