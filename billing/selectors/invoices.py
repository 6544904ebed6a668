"""Reads of invoices and credit notes. Drafts are for operators: customers see what is final."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import F, QuerySet
from django.utils.translation import gettext_lazy as _

from billing.invoicing.numbers import number_text
from billing.models import Invoice, InvoiceKind, InvoiceLine, InvoiceState
from portal.lib.errors import NotFound

AGE_NAMES = (
    _("Not due yet"),
    _("Up to 30 days late"),
    _("31 to 60 days late"),
    _("61 to 90 days late"),
    _("More than 90 days late"),
)


def invoices_of(workspace_id: uuid.UUID) -> QuerySet[Invoice]:
    """A workspace's invoices and credit notes; portal.lib.newest_first pages them by `finalized_at`."""
    return Invoice.objects.filter(workspace_id=workspace_id, state=InvoiceState.FINAL)


def invoice_of(workspace_id: uuid.UUID, invoice_id: uuid.UUID) -> Invoice:
    """One of a workspace's invoices or credit notes. Raises NotFound, also for another's and for a draft."""
    invoice = invoices_of(workspace_id).select_related("corrects").filter(pk=invoice_id).first()
    if invoice is None:
        raise NotFound
    return invoice


def lines_of(invoice: Invoice) -> list[InvoiceLine]:
    """The lines in their order: fees, speech by day and class of device, what was given back, what credit covered."""
    return list(invoice.lines.order_by("position"))


def notes_of(invoice: Invoice) -> list[Invoice]:
    """The credit notes that correct an invoice, the oldest first."""
    return list(
        invoice.credit_notes.filter(kind=InvoiceKind.CREDIT_NOTE, state=InvoiceState.FINAL).order_by("number")
    )


def name_of(invoice: Invoice) -> str:
    """`INV2026-000042`; empty for a draft."""
    return number_text(invoice.series, invoice.number)


def every_invoice() -> QuerySet[Invoice]:
    """For operators: invoices and credit notes of every workspace, those that are final."""
    return Invoice.objects.filter(state=InvoiceState.FINAL)


def every_draft() -> QuerySet[Invoice]:
    """For operators: the drafts there are."""
    return Invoice.objects.filter(state=InvoiceState.DRAFT)


def any_invoice(invoice_id: uuid.UUID) -> Invoice:
    """For operators: one invoice, credit note or draft of any workspace. Raises NotFound."""
    invoice = Invoice.objects.select_related("corrects").filter(pk=invoice_id).first()
    if invoice is None:
        raise NotFound
    return invoice


def open_invoices(workspace_id: uuid.UUID | None = None) -> QuerySet[Invoice]:
    """Invoices of which something is due and not paid, of one workspace or of all."""
    unpaid = Invoice.objects.filter(state=InvoiceState.FINAL, due_micros__gt=F("paid_micros"))
    return unpaid if workspace_id is None else unpaid.filter(workspace_id=workspace_id)


@dataclass(frozen=True)
class Receivable:
    """What one workspace owes by invoices in one currency, by how late it is, as in AGE_NAMES."""

    workspace_id: uuid.UUID
    currency: str
    by_age_micros: tuple[int, ...]

    @property
    def total_micros(self) -> int:
        return sum(self.by_age_micros)


_RECEIVABLES = """
SELECT workspace_id, currency, SUM(open) FILTER (WHERE late < 0)::bigint, SUM(open) FILTER (WHERE late = 0)::bigint,
    SUM(open) FILTER (WHERE late = 1)::bigint, SUM(open) FILTER (WHERE late = 2)::bigint,
    SUM(open) FILTER (WHERE late > 2)::bigint
FROM (
    SELECT workspace_id, currency, due_micros - paid_micros AS open, CASE WHEN due_at > %s THEN -1
        ELSE CEIL(GREATEST(EXTRACT(EPOCH FROM %s - due_at), 1) / (30 * 86400)) - 1 END AS late
    FROM billing_invoice WHERE state = 'final' AND due_micros > paid_micros
) AS aged
GROUP BY workspace_id, currency ORDER BY SUM(open) DESC, workspace_id
"""


def receivables(at: datetime) -> list[Receivable]:
    """What is owed by invoices at that moment, the most first. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_RECEIVABLES, [at, at])
        return [
            Receivable(workspace_id, currency, tuple(amount or 0 for amount in ages))
            for workspace_id, currency, *ages in cursor.fetchall()
        ]
