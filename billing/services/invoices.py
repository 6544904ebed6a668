"""From a month of a workspace to an invoice: drafted, then finalized, once.

The wallet, the ledger and the invoice agree because they are one transaction under the lock of the wallet:

- usage was taken from the wallet when it was spoken; the lines say what was taken, and what was given back since;
- `discount` is what included, promotional and voucher credit covered of that; `net` is the rest with the fee;
- a month in which more was given back than charged is a credit note, whose net, tax and total say what goes back;
- the fee, and a tax that comes on top, are taken now, from paid credit alone, and what that does not cover is owed;
- `due` is what is owed now: what the wallet owes, less what is due on older invoices, less what was charged for speech
  after the period and covered by no credit. `prepaid` is the rest of the total; negative where more is owed than the
  total, such as after a chargeback, or when what was given back has paid an older invoice. So whatever is owed is due
  on exactly one invoice, and what comes in pays the oldest first (a trigger on the wallet).

Every charge and refund holds that lock too, so that each is either in the invoice or in a later one.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db import connection, transaction

from billing.errors import LaterPeriodInvoiced, PeriodNotOver
from billing.invoicing.amounts import tax_on
from billing.models import (
    BillingProfile,
    CreditAccount,
    Invoice,
    InvoiceKind,
    InvoiceLine,
    InvoiceState,
    LineKind,
)
from billing.periods import Period, local_day, month_of
from billing.services import ledger
from billing.services.invoice_lines import DraftOf, write_lines
from billing.services.invoice_posting import finalize
from billing.services.plan_changes import carry_out_due
from portal.lib.clock import database_now


@dataclass(frozen=True)
class _Month:
    """What is known of a workspace before its month is drafted."""

    account: CreditAccount
    period: Period
    newest: Invoice | None
    draft_id: uuid.UUID | None


def draft(*, workspace_id: uuid.UUID, month: date) -> Invoice | None:
    """Write the draft of the month that the day `month` falls in, anew where there is one, and return it.

    Also of a month that is not over: how it stands so far. None where there is nothing to bill. Moves no money;
    `prepaid` and `due` are known when it is finalized. Locks the credit account.

    Raises:
        LaterPeriodInvoiced
        InvoiceCurrencyDiffers
    """
    with transaction.atomic():
        found = _months([workspace_id], month, database_now())[0]
        if found.newest is not None and _covers(found.newest, found.period):
            return _final_of(found)
        drafted = _write_drafts([found])
        return Invoice.objects.get(pk=drafted[0].invoice_id) if drafted else None


def close_month(*, workspace_id: uuid.UUID, month: date, at: datetime | None = None) -> Invoice | None:
    """Finalize the invoice of the month that the day `month` falls in, and return it; None where there is nothing to
    bill. One that is final already is returned as it is: a month is closed once. `at`: when it is (None: now).

    Locks the credit account, then the series of numbers, to the end of the transaction.

    Raises:
        PeriodNotOver
        LaterPeriodInvoiced
        InvoiceCurrencyDiffers
    """
    moment = at or database_now()
    with transaction.atomic():
        found = _months([workspace_id], month, moment)[0]
        if found.newest is not None and _covers(found.newest, found.period):
            return _final_of(found)
        if found.period.end > moment:
            raise PeriodNotOver
        made = _close([found], moment)
    return Invoice.objects.get(pk=made[0]) if made else None


def close_months(*, workspace_ids: Sequence[uuid.UUID], month: date, at: datetime) -> int:
    """Close the month for many workspaces in one transaction; returns how many invoices were made.

    Those whose month is not over, or was closed, are passed over. Locks their credit accounts in the order of their
    ids: few at once, as nothing is charged to them meanwhile.

    Raises InvoiceCurrencyDiffers, having closed none.
    """
    with transaction.atomic():
        open_months = [
            found
            for found in _months(workspace_ids, month, at)
            if found.period.end <= at
            and not (found.newest is not None and _covers(found.newest, found.period))
        ]
        return len(_close(open_months, at))


def _close(months: Sequence[_Month], moment: datetime) -> list[uuid.UUID]:
    drafted = _write_drafts(months)
    finalize(drafted, moment)
    return [draft.invoice_id for draft in drafted]


def _months(workspace_ids: Sequence[uuid.UUID], month: date, at: datetime) -> list[_Month]:
    """Lock the accounts, begin the plans that waited for months that have begun at `at`, and look up what was invoiced
    of each before."""
    if len(workspace_ids) == 1:
        ledger.ensure_account(workspace_id=workspace_ids[0])
    accounts = list(
        CreditAccount.objects.select_for_update(no_key=True).filter(pk__in=workspace_ids).order_by("pk")
    )
    carry_out_due(accounts=accounts, at=at)
    newest: dict[uuid.UUID, Invoice] = {}
    drafts: dict[tuple[uuid.UUID, date], uuid.UUID] = {}
    first_day = month.replace(day=1)
    of_months = Invoice.objects.filter(workspace_id__in=workspace_ids, corrects=None)
    for invoice in of_months.order_by("period_end"):
        if invoice.state == InvoiceState.FINAL:
            newest[invoice.workspace_id] = invoice
        else:
            drafts[invoice.workspace_id, _month_of_invoice(invoice)] = invoice.pk
    return [
        _Month(
            account=account,
            period=_period(account, first_day, newest.get(account.pk)),
            newest=newest.get(account.pk),
            draft_id=drafts.get((account.pk, first_day)),
        )
        for account in accounts
    ]


def _period(account: CreditAccount, first_day: date, newest: Invoice | None) -> Period:
    """The month in the workspace's zone. It begins where the one before it ended, also where the zone was another."""
    period = month_of(first_day, account.time_zone)
    if newest is not None and local_day(newest.period_end, newest.time_zone) == period.first_day:
        return Period(newest.period_end, period.end, period.first_day, period.last_day, period.time_zone)
    return period


def _month_of_invoice(invoice: Invoice) -> date:
    """The first day of the month that an invoice is about: its end is a month's end in its own zone."""
    last_day = local_day(invoice.period_end, invoice.time_zone) - timedelta(days=1)
    return last_day.replace(day=1)


def _covers(newest: Invoice, period: Period) -> bool:
    return _month_of_invoice(newest) >= period.first_day


def _final_of(found: _Month) -> Invoice:
    """The final invoice of the month. Raises LaterPeriodInvoiced where there is none, and cannot be any more."""
    for invoice in Invoice.objects.filter(
        workspace_id=found.account.pk, corrects=None, state=InvoiceState.FINAL
    ).order_by("-period_end"):
        if _month_of_invoice(invoice) == found.period.first_day:
            return invoice
    raise LaterPeriodInvoiced


def _write_drafts(months: Sequence[_Month]) -> list[DraftOf]:
    """Write drafts with their lines and sums; those with nothing on them are left out. Replaces drafts there are."""
    old = [found.draft_id for found in months if found.draft_id is not None]
    if old:
        InvoiceLine.objects.filter(invoice__in=old).delete()
        Invoice.objects.filter(pk__in=old, state=InvoiceState.DRAFT).delete()
    profiles = BillingProfile.objects.in_bulk([found.account.pk for found in months])
    invoices = [_draft_row(found, profiles.get(found.account.pk)) for found in months]
    Invoice.objects.bulk_create(invoices)
    drafts = [
        DraftOf(invoice.pk, found.account.pk, found.period, found.account.currency)
        for invoice, found in zip(invoices, months, strict=True)
    ]
    write_lines(drafts)
    empty = _write_sums(invoices)
    if empty:
        Invoice.objects.filter(pk__in=empty).delete()
    return [draft for draft in drafts if draft.invoice_id not in empty]


def _draft_row(found: _Month, profile: BillingProfile | None) -> Invoice:
    terms = profile or BillingProfile(workspace_id=found.account.pk)
    return Invoice(
        id=found.draft_id or uuid.uuid4(),
        workspace_id=found.account.pk,
        period_start=found.period.start,
        period_end=found.period.end,
        time_zone=found.period.time_zone,
        currency=found.account.currency,
        tax_rate_basis_points=terms.tax_rate_basis_points,
        tax_inclusive=terms.tax_inclusive,
    )


_READ_SUMS = """
SELECT invoice_id, kind, SUM(amount_micros)::bigint FROM billing_invoiceline
WHERE invoice_id = ANY(%s::uuid[]) GROUP BY 1, 2
"""
_STORE_SUMS = """
UPDATE billing_invoice invoice SET fee_micros = sums.fee, usage_micros = sums.usage, discount_micros = sums.discount,
    net_micros = sums.net, tax_micros = sums.tax, total_micros = sums.net + sums.tax, kind = sums.kind
FROM unnest(%s::uuid[], %s::varchar[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
    AS sums (id, kind, fee, usage, discount, net, tax)
WHERE invoice.id = sums.id
"""


def _write_sums(invoices: Sequence[Invoice]) -> set[uuid.UUID]:
    """Add up the lines, once, and the tax on them. Returns which drafts have no lines."""
    sums: dict[uuid.UUID, dict[str, int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_READ_SUMS, [[invoice.pk for invoice in invoices]])
        for invoice_id, kind, amount in cursor.fetchall():
            sums.setdefault(invoice_id, {})[kind] = amount
        rows = [_sums_of(invoice, sums[invoice.pk]) for invoice in invoices if invoice.pk in sums]
        cursor.execute(_STORE_SUMS, [list(column) for column in zip(*rows, strict=True)] or [[]] * 7)
    return {invoice.pk for invoice in invoices} - set(sums)


def _sums_of(invoice: Invoice, by_kind: dict[str, int]) -> tuple[uuid.UUID, str, int, int, int, int, int]:
    fee = by_kind.get(LineKind.FEE, 0)
    usage = by_kind.get(LineKind.USAGE, 0) + by_kind.get(LineKind.REFUND, 0)
    discount = -by_kind.get(LineKind.DISCOUNT, 0)
    amount = fee + usage - discount
    kind = InvoiceKind.INVOICE if amount >= 0 else InvoiceKind.CREDIT_NOTE
    tax = tax_on(
        abs(amount), rate_basis_points=invoice.tax_rate_basis_points, inclusive=invoice.tax_inclusive
    )
    net = abs(amount) - tax if invoice.tax_inclusive else abs(amount)
    return invoice.pk, kind.value, fee, usage, discount, net, tax
