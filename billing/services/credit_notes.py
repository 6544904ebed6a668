"""Corrections of final invoices: credit notes, which give money back to the wallet."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Sum

from billing.errors import AmountNotPositive, CreditNoteTooHigh, NotAnInvoice, ReasonMissing
from billing.invoicing.amounts import CENT_MICROS, note_tax
from billing.models import (
    GRANT_PRIORITY,
    GrantKind,
    Invoice,
    InvoiceKind,
    InvoiceLine,
    InvoiceState,
    LedgerAccount,
    LineKind,
    TransactionKind,
)
from billing.services import holds, ledger
from billing.services.given_back import left_for_notes
from billing.services.invoice_paying import paying
from billing.services.invoice_posting import next_numbers
from portal.lib.clock import database_now
from portal.lib.display import money_exact


def creditable(invoice: Invoice) -> int:
    """What of an invoice's total was given back neither by notes nor for its jobs yet, in micros, tax included. A note
    over as much is never refused; where jobs were refunded it may be up to a cent less than could be."""
    left = max(0, invoice.total_micros - _credited(invoice))
    without_tax = left_for_notes(invoice)
    if invoice.tax_inclusive or invoice.tax_micros <= 0:
        return min(left, without_tax)
    if left - _tax_of(invoice, left) <= without_tax:
        return left
    most = without_tax * invoice.total_micros // invoice.net_micros
    # A note's tax is rounded to the cent.
    return min(left, most if most - _tax_of(invoice, most) <= without_tax else max(0, most - CENT_MICROS))


def credit(
    *, invoice_id: uuid.UUID, reason: str, idempotency_key: str, amount_micros: int | None = None
) -> Invoice:
    """Correct an invoice by a credit note over `amount_micros`, tax included (None: all that is left), and return it.

    The money goes back to the wallet as paid credit, which pays what is due on this invoice first. The same key again
    returns the note that was made. Locks the credit account, then the series of numbers.

    Raises, having changed nothing:
        Invoice.DoesNotExist
        NotAnInvoice: it is a draft or a credit note.
        ReasonMissing
        AmountNotPositive
        CreditNoteTooHigh: notes, and what its jobs were given back since, never exceed the invoice.
    """
    with transaction.atomic():
        holds.lock_account(workspace_id=Invoice.objects.values_list("workspace_id").get(pk=invoice_id)[0])
        invoice = Invoice.objects.get(pk=invoice_id)
        note_id = uuid.uuid5(invoice_id, idempotency_key)
        made = Invoice.objects.filter(pk=note_id).first()
        if made is not None:
            return made
        if invoice.kind != InvoiceKind.INVOICE or invoice.state != InvoiceState.FINAL:
            raise NotAnInvoice
        if not reason.strip():
            raise ReasonMissing(field="reason")
        left = creditable(invoice)
        amount = left if amount_micros is None else amount_micros
        if amount_micros is not None and amount_micros <= 0:
            raise AmountNotPositive(field="amount")
        without_tax = amount if invoice.tax_inclusive else amount - _tax_of(invoice, amount)
        if amount > left or left == 0 or without_tax > left_for_notes(invoice):
            raise CreditNoteTooHigh(field="amount", left=money_exact(left, invoice.currency))
        note = _make(invoice, note_id, amount, reason.strip())
        _give_back(invoice, note)
        return note


def _credited(invoice: Invoice) -> int:
    notes = Invoice.objects.filter(corrects=invoice, kind=InvoiceKind.CREDIT_NOTE)
    return notes.aggregate(total=Sum("total_micros"))["total"] or 0


def _tax_of(invoice: Invoice, amount: int) -> int:
    """The tax that the next note over `amount` gives back."""
    return note_tax(
        total_micros=invoice.total_micros,
        tax_micros=invoice.tax_micros,
        credited_micros=_credited(invoice),
        amount_micros=amount,
    )


def _make(invoice: Invoice, note_id: uuid.UUID, amount: int, reason: str) -> Invoice:
    tax = _tax_of(invoice, amount)
    moment = database_now()
    note = Invoice.objects.create(
        id=note_id,
        workspace_id=invoice.workspace_id,
        kind=InvoiceKind.CREDIT_NOTE,
        corrects=invoice,
        reason=reason[: Invoice._meta.get_field("reason").max_length],
        period_start=invoice.period_start,
        period_end=invoice.period_end,
        time_zone=invoice.time_zone,
        currency=invoice.currency,
        parties=invoice.parties,
        tax_rate_basis_points=invoice.tax_rate_basis_points,
        tax_inclusive=invoice.tax_inclusive,
        net_micros=amount - tax,
        tax_micros=tax,
        total_micros=amount,
        prepaid_micros=amount,
    )
    InvoiceLine.objects.create(invoice=note, position=1, kind=LineKind.REFUND, amount_micros=amount)
    series, number = next_numbers(InvoiceKind.CREDIT_NOTE, moment, count=1)
    Invoice.objects.filter(pk=note.pk, state=InvoiceState.DRAFT).update(
        state=InvoiceState.FINAL, series=series, number=number, finalized_at=moment
    )
    note.refresh_from_db()
    return note


def _give_back(invoice: Invoice, note: Invoice) -> None:
    # A tax that prices contain was never booked apart from them.
    tax = 0 if invoice.tax_inclusive else note.tax_micros
    parts = [
        ("credit-note", TransactionKind.REFUND, LedgerAccount.REVENUE, note.total_micros - tax),
        ("credit-note-tax", TransactionKind.TAX, LedgerAccount.TAX, tax),
    ]
    with paying(invoice.pk):
        for name, kind, source, amount in parts:
            if amount:
                _post(note, f"{name}:{note.pk}", kind, source, amount)


def _post(note: Invoice, key: str, kind: TransactionKind, source: LedgerAccount, amount: int) -> None:
    outcome = ledger.call(
        "billing_add_grant(%s, %s, %s, %s, %s, NULL, %s, %s, %s, %s)",
        [
            uuid.uuid4(),
            note.workspace_id,
            GrantKind.PAID.value,
            amount,
            GRANT_PRIORITY[GrantKind.PAID],
            kind.value,
            key,
            source.value,
            note.reason,
        ],
    )
    if outcome != "posted":
        raise RuntimeError("a new credit note was posted before")
