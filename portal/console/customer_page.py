"""One customer as operators see it: who belongs to it, what it may do, what it has and owes, and why."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Sum
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import ApiKey, AuditEntry, Membership, Workspace
from accounts.selectors.audit import audit_of
from billing.models import (
    CreditAccount,
    CreditGrant,
    Hold,
    HoldState,
    LedgerTransaction,
    Payment,
    PendingAct,
    PendingActState,
    PlanChange,
    Subscription,
    UsageDay,
)
from billing.periods import local_day
from billing.selectors.payments import payments_of
from billing.selectors.plans import current_subscription, waiting_change
from portal.charts import Chart, Series, bar_chart
from portal.console.customer_acts import CustomerAct, offered_acts
from portal.console.money_acts import OBJECT_KIND
from portal.console.plan_rows import TERMS, term_text
from portal.console.selectors import JobRow, rows_of, shown_jobs
from portal.lib.display import money_text
from portal.lib.errors import NotFound
from portal.lib.money import MICROS_PER_UNIT
from portal.lib.newest_first import PageOfRows, page_before

USAGE_DAYS: Final = 30
LINES_SHOWN: Final = 20
JOBS_SHOWN: Final = 10
GRANTS_SHOWN: Final = 50
AUDIT_SHOWN: Final = 20


@dataclass(frozen=True)
class LedgerRow:
    """A movement: what the workspace has more (or less, negative) to spend and set aside by it."""

    created_at: datetime
    kind_label: str
    job_id: uuid.UUID | None
    reason: str
    available_micros: int
    held_micros: int


@dataclass(frozen=True)
class CustomerPage:
    """`is_open` of its grants: something is left of them."""

    workspace: Workspace
    account: CreditAccount
    subscription: Subscription | None
    waiting: PlanChange | None
    terms: list[tuple[str | Promise, str]]
    members: list[Membership]
    keys: list[ApiKey]
    grants: list[CreditGrant]
    holds: list[Hold]
    payments: list[Payment]
    ledger: list[LedgerRow]
    ledger_page: PageOfRows[LedgerTransaction]
    usage: Chart
    jobs: list[JobRow]
    pending: list[PendingAct]
    audit: list[AuditEntry]
    acts: list[CustomerAct]

    @property
    def currency(self) -> str:
        return self.account.currency


def find_workspace(workspace_id: uuid.UUID) -> Workspace:
    """Raises NotFound."""
    workspace = Workspace.objects.filter(pk=workspace_id).first()
    if workspace is None:
        raise NotFound
    return workspace


def find_payment(payment_id: uuid.UUID) -> Payment:
    """Raises NotFound."""
    payment = Payment.objects.filter(pk=payment_id).first()
    if payment is None:
        raise NotFound
    return payment


def account_of(workspace_id: uuid.UUID) -> CreditAccount:
    """The workspace's account; an empty one that is not stored where it has none yet."""
    account = CreditAccount.objects.filter(pk=workspace_id).first()
    return account or CreditAccount(workspace_id=workspace_id)


def read_customer(workspace_id: uuid.UUID, *, now: datetime, before: str = "") -> CustomerPage:
    """Everything at one moment; `before` is the place in the ledger. Raises NotFound."""
    workspace = find_workspace(workspace_id)
    account = account_of(workspace_id)
    subscription = current_subscription(workspace_id)
    ledger_page = page_before(
        LedgerTransaction.objects.filter(workspace_id=workspace_id).prefetch_related("entries"),
        moment_field="created_at",
        before=before,
        size=LINES_SHOWN,
    )
    jobs = shown_jobs().filter(workspace=workspace).order_by("-created_at")[:JOBS_SHOWN]
    grants = CreditGrant.objects.filter(workspace_id=workspace_id)
    holds = Hold.objects.filter(workspace_id=workspace_id, state=HoldState.OPEN)
    pending = PendingAct.objects.filter(workspace_id=workspace_id, state=PendingActState.OPEN)
    return CustomerPage(
        workspace=workspace,
        account=account,
        subscription=subscription,
        waiting=waiting_change(workspace_id),
        terms=_terms(subscription),
        members=list(workspace.memberships.select_related("user").order_by("created_at")[:GRANTS_SHOWN]),
        keys=list(workspace.api_keys.defer("secret_sha256").order_by("-created_at")[:GRANTS_SHOWN]),
        # What is left stands above what was spent.
        grants=list(grants.order_by("is_spent", "priority", "expires_at", "-created_at")[:GRANTS_SHOWN]),
        payments=list(payments_of(workspace)[:LINES_SHOWN]),
        holds=list(holds.order_by("created_at")[:LINES_SHOWN]),
        ledger=[_ledger_row(one) for one in ledger_page.rows],
        ledger_page=ledger_page,
        usage=usage_chart(account, now=now),
        jobs=rows_of(list(jobs), now=now),
        pending=list(pending.order_by("created_at")),
        audit=audit_of(object_kind=OBJECT_KIND, object_id=workspace_id)[:AUDIT_SHOWN],
        acts=offered_acts(workspace),
    )


def _terms(subscription: Subscription | None) -> list[tuple[str | Promise, str]]:
    if subscription is None:
        return []
    return [(label, term_text(name, subscription.plan_version)) for name, label in TERMS]


def _ledger_row(transaction: LedgerTransaction) -> LedgerRow:
    moved = {"available": 0, "held": 0}
    for entry in transaction.entries.all():
        if entry.account in moved:
            moved[entry.account] += entry.amount_micros
    return LedgerRow(
        created_at=transaction.created_at,
        kind_label=transaction.get_kind_display(),
        job_id=transaction.job_id,
        reason=transaction.reason,
        available_micros=moved["available"],
        held_micros=moved["held"],
    )


def usage_chart(account: CreditAccount, *, now: datetime) -> Chart:
    """What was charged on each of the last days, in the workspace's own time zone, by class of job."""
    today = local_day(now, account.time_zone)
    days = [today - timedelta(days=back) for back in range(USAGE_DAYS - 1, -1, -1)]
    sums = (
        UsageDay.objects.filter(workspace_id=account.pk, day__gte=days[0])
        .values("day", "job_class")
        .annotate(charged=Sum("charged_micros"), refunded=Sum("refunded_micros"))
    )
    charged = {(row["day"], row["job_class"]): row["charged"] for row in sums}
    total = sum(row["charged"] for row in sums)
    refunded = sum(row["refunded"] for row in sums)
    title = gettext("Charged in the last %(days)d days: %(charged)s, given back: %(refunded)s") % {
        "days": USAGE_DAYS,
        "charged": money_text(total, account.currency),
        "refunded": money_text(refunded, account.currency),
    }
    classes = (
        ("interactive", _("Interactive"), "accent"),
        ("standard", _("Standard"), "live"),
        ("batch", _("Batch"), "warn"),
    )
    return bar_chart(
        chart_id="usage",
        title=title,
        unit=_("charged, by day of the customer’s time zone"),
        moments=days,
        series=[
            Series(label, tone, [charged.get((day, name), 0) / MICROS_PER_UNIT for day in days])
            for name, label, tone in classes
        ],
        value_text=lambda value: money_text(round(value * MICROS_PER_UNIT), account.currency),
        csv_address=f"{reverse('console_customer', args=[account.pk])}?csv=usage",
    )
