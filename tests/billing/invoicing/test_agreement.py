"""Wallet, ledger and invoices agree, whatever happened: everything is recomputed from records and entries."""

from __future__ import annotations

import contextlib
import uuid
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db.models import Q, Sum
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from billing.errors import CreditNoteTooHigh, InsufficientCredit, RefundTooHigh
from billing.models import (
    BillingProfile,
    CreditAccount,
    CreditGrant,
    GrantKind,
    GrantUse,
    Hold,
    Invoice,
    InvoiceKind,
    InvoiceLine,
    LedgerAccount,
    LedgerTransaction,
    LineKind,
    PlanVersion,
    Subscription,
    UsageRecord,
)
from billing.services import grants
from billing.services.credit_notes import credit
from billing.services.invoice_lines import LATE_MONTHS
from billing.services.invoices import close_month
from billing.services.refunds import refund_part
from tests.billing.books import assert_books_agree, total
from tests.billing.speech import plan, speak, subscribed

# The months that refunds, dated by now, may fall in are closed at last.
MONTHS = [date(2026, 8, 1), date(2026, 9, 1), date(2026, 10, 1)]
AMOUNT = st.integers(1, 5_000_000)
STEP = st.one_of(
    st.tuples(st.just("speak"), AMOUNT, st.integers(0, 2), st.integers(1, 28)),
    st.tuples(st.just("credit"), st.sampled_from(list(GrantKind)), st.integers(1, 20_000_000)),
    st.tuples(st.just("plan"), st.integers(0, 5_000), st.integers(0, 2), st.integers(1, 28)),
    st.tuples(st.just("refund"), st.integers(0, 10), AMOUNT),
    st.tuples(st.just("note"), AMOUNT),
    st.tuples(st.just("close"), st.just(0)),
)


class World:
    """A workspace whose months are lived through in the order of the steps, and closed in their own order."""

    def __init__(self, *, rate: int, inclusive: bool, limit: int, zone: str) -> None:
        self.workspace_id = uuid.uuid4()
        CreditAccount.objects.create(
            workspace_id=self.workspace_id, credit_limit_micros=limit, time_zone=zone
        )
        BillingProfile.objects.create(
            workspace_id=self.workspace_id, tax_rate_basis_points=rate, tax_inclusive=inclusive
        )
        self.zone = zone
        self.jobs: list[uuid.UUID] = []
        self.closed = 0
        # The days on which plans began, with their fees.
        self.plans: list[tuple[date, int]] = []

    def take(self, step: tuple[Any, ...]) -> None:
        getattr(self, f"take_{step[0]}")(*step[1:])

    def take_speak(self, amount: int, month: int, day: int) -> None:
        if self.closed - month > LATE_MONTHS:
            return
        finished_at = datetime.combine(MONTHS[month].replace(day=day), datetime.min.time(), UTC)
        with contextlib.suppress(InsufficientCredit):
            self.jobs.append(
                speak(
                    self.workspace_id,
                    amount,
                    finished_at=finished_at + timedelta(hours=12),
                    device_class=("h200", "t4")[amount % 2],
                )
            )

    def take_credit(self, kind: GrantKind, amount: int) -> None:
        grants.grant(
            workspace_id=self.workspace_id,
            amount_micros=amount,
            kind=kind,
            idempotency_key=str(uuid.uuid4()),
        )

    def take_plan(self, fee_cents: int, month: int, day: int) -> None:
        on = MONTHS[month].replace(day=day)
        if month < self.closed or (self.plans and on < self.plans[-1][0]):
            return
        moment = datetime.combine(on, datetime.min.time(), UTC) + timedelta(hours=12)
        Subscription.objects.filter(workspace_id=self.workspace_id, ends_at__isnull=True).update(
            ends_at=moment
        )
        version: PlanVersion = plan(fee_cents * 10_000)
        subscribed(self.workspace_id, version, moment)
        self.plans.append((on, fee_cents * 10_000))

    def take_refund(self, which: int, amount: int) -> None:
        if not self.jobs:
            return
        job_id = self.jobs[which % len(self.jobs)]
        hold = Hold.objects.get(job_id=job_id)
        left = min(amount, hold.captured_micros - hold.refunded_micros)
        if left:
            # What a note gave back goes back no second time.
            with contextlib.suppress(RefundTooHigh):
                refund_part(
                    job_id=job_id, amount_micros=left, idempotency_key=str(uuid.uuid4()), reason="noise"
                )

    def take_note(self, amount: int) -> None:
        invoice = self.invoices().filter(kind=InvoiceKind.INVOICE).order_by("-total_micros").first()
        if invoice is None or invoice.total_micros <= 0:
            return
        with contextlib.suppress(CreditNoteTooHigh):
            credit(
                invoice_id=invoice.pk,
                reason="noise",
                idempotency_key=str(uuid.uuid4()),
                amount_micros=amount,
            )

    def take_close(self, _: int) -> None:
        if self.closed < len(MONTHS):
            close_month(workspace_id=self.workspace_id, month=MONTHS[self.closed], at=LATER)
            self.closed += 1

    def close_the_rest(self) -> None:
        while self.closed < len(MONTHS):
            self.take_close(0)
        month = MONTHS[-1]
        while month <= datetime.now(UTC).date():
            month = (month + timedelta(days=32)).replace(day=1)
            close_month(workspace_id=self.workspace_id, month=month, at=LATER)

    def invoices(self) -> Any:
        """The documents of months: invoices, and notes of those in which more was given back than charged."""
        return Invoice.objects.filter(workspace_id=self.workspace_id, corrects=None)


LATER = datetime(2030, 1, 1, tzinfo=UTC)


def summed(rows: Any, field: str) -> int:
    return rows.aggregate(total=Sum(field))["total"] or 0


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    # A world takes a second: to shrink one would take many minutes. The steps are few anyway.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    steps=st.lists(STEP, max_size=25),
    rate=st.sampled_from([0, 600, 1_900]),
    inclusive=st.booleans(),
    limit=st.sampled_from([0, 10_000_000]),
    zone=st.sampled_from(["UTC", "Asia/Shanghai", "America/Santiago"]),
)
def test_wallet_ledger_and_invoices_agree(
    db: None, steps: list[tuple[Any, ...]], rate: int, inclusive: bool, limit: int, zone: str
) -> None:
    world = World(rate=rate, inclusive=inclusive, limit=limit, zone=zone)
    for step in steps:
        world.take(step)
        the_open_invoices_are_owed(world)
    world.close_the_rest()
    invoices = world.invoices()
    assert_books_agree(world.workspace_id)
    the_open_invoices_are_owed(world)
    everything_is_billed_once(world, invoices)
    no_more_goes_back_than_was_charged(world, invoices, inclusive=inclusive)
    each_invoice_adds_up(invoices, rate=rate, inclusive=inclusive)
    the_money_is_where_the_invoices_say(world, invoices, inclusive=inclusive)


def the_open_invoices_are_owed(world: World) -> None:
    due = summed(world.invoices(), "due_micros") - summed(world.invoices(), "paid_micros")
    assert due <= CreditAccount.objects.get(pk=world.workspace_id).owed_micros


def everything_is_billed_once(world: World, invoices: Any) -> None:
    records = UsageRecord.objects.filter(workspace_id=world.workspace_id)
    holds = Hold.objects.filter(workspace_id=world.workspace_id)
    spoken = summed(records, "charged_micros")
    assert spoken == summed(holds, "captured_micros")
    assert summed(invoices, "usage_micros") == spoken - summed(holds, "refunded_micros")
    lines = InvoiceLine.objects.filter(invoice__in=invoices)
    for device_class in ("h200", "t4"):
        of_class = Q(device_class=device_class)
        said = summed(lines.filter(of_class, kind=LineKind.USAGE), "amount_micros")
        assert said == summed(records.filter(of_class), "charged_micros")
    given_credit = GrantUse.objects.filter(
        transaction__workspace_id=world.workspace_id, transaction__job_id__isnull=False
    ).exclude(grant__kind=GrantKind.PAID)
    assert summed(invoices, "discount_micros") == summed(given_credit, "amount_micros")
    assert summed(invoices, "fee_micros") == fees_by_day(world, invoices)


def fees_by_day(world: World, invoices: Any) -> int:
    """Each fee, day by day in each month; neighbours of one fee are rounded to the cent together."""
    fee_sum = 0
    for invoice in invoices:
        first = invoice.period_start.date() + timedelta(days=invoice.period_start.hour > 12)
        days_in_month = ((first + timedelta(days=31)).replace(day=1) - first).days
        runs: list[list[int]] = []
        for offset in range(days_in_month):
            begun = [fee for on, fee in world.plans if on <= first + timedelta(days=offset)]
            fee = begun[-1] if begun else 0
            if runs and runs[-1][0] == fee:
                runs[-1][1] += 1
            else:
                runs.append([fee, 1])
        fee_sum += sum((2 * fee * days // days_in_month + 10_000) // 20_000 * 10_000 for fee, days in runs)
    return fee_sum


def no_more_goes_back_than_was_charged(world: World, invoices: Any, *, inclusive: bool) -> None:
    notes = Invoice.objects.filter(workspace_id=world.workspace_id, corrects__isnull=False)
    noted = summed(notes, "total_micros" if inclusive else "net_micros")
    refunded = summed(Hold.objects.filter(workspace_id=world.workspace_id), "refunded_micros")
    spoken = summed(UsageRecord.objects.filter(workspace_id=world.workspace_id), "charged_micros")
    assert noted + refunded <= spoken + summed(invoices, "fee_micros")


def each_invoice_adds_up(invoices: Any, *, rate: int, inclusive: bool) -> None:
    for invoice in invoices:
        amount = invoice.fee_micros + invoice.usage_micros - invoice.discount_micros
        assert summed(invoice.lines, "amount_micros") == amount
        assert invoice.kind == (InvoiceKind.INVOICE if amount >= 0 else InvoiceKind.CREDIT_NOTE)
        assert invoice.total_micros == invoice.net_micros + invoice.tax_micros >= 0
        assert invoice.total_micros == abs(amount) + (0 if inclusive else invoice.tax_micros)
        exact = abs(amount) * rate / ((10_000 + rate) if inclusive else 10_000)
        assert abs(invoice.tax_micros - exact) <= 5_001
        assert invoice.tax_micros % 10_000 == 0
        assert invoice.total_micros == invoice.prepaid_micros + invoice.due_micros
        assert 0 <= invoice.paid_micros <= invoice.due_micros
    numbers = sorted(invoices.filter(kind=InvoiceKind.INVOICE).values_list("number", flat=True))
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True


def the_money_is_where_the_invoices_say(world: World, invoices: Any, *, inclusive: bool) -> None:
    """What the platform earned is what invoices say less what notes gave back; and what of it is not covered by credit
    is owed: exactly what is due on the invoices."""
    notes = Invoice.objects.filter(workspace_id=world.workspace_id, corrects__isnull=False)
    went_back = invoices.filter(kind=InvoiceKind.CREDIT_NOTE)
    invoiced = invoices.filter(kind=InvoiceKind.INVOICE)
    totals = summed(invoiced, "total_micros") - summed(went_back, "total_micros")
    totals += summed(invoices, "discount_micros")
    earned = total(world.workspace_id, LedgerAccount.REVENUE)
    taxes = total(world.workspace_id, LedgerAccount.TAX)
    assert earned + taxes == totals - summed(notes, "total_micros")
    tax = summed(invoiced, "tax_micros") - summed(went_back, "tax_micros") - summed(notes, "tax_micros")
    assert taxes == (0 if inclusive else tax)
    account = CreditAccount.objects.get(pk=world.workspace_id)
    credit_used = summed(
        CreditGrant.objects.filter(workspace_id=world.workspace_id), "amount_micros"
    ) - summed(CreditGrant.objects.filter(workspace_id=world.workspace_id), "remaining_micros")
    came_back = summed(
        LedgerTransaction.objects.filter(
            workspace_id=world.workspace_id, idempotency_key__startswith="credit-note"
        ).filter(entries__account=LedgerAccount.AVAILABLE),
        "entries__amount_micros",
    )
    assert came_back == summed(notes, "total_micros")
    open_due = summed(invoices, "due_micros") - summed(invoices, "paid_micros")
    assert account.owed_micros == open_due
    assert credit_used + account.owed_micros >= earned + taxes
