"""Invoices and credit notes: final ones, as PDF, with every receipt as CSV, and what is due to be paid. For owners and
the billing role.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.translation import get_language
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.models import Workspace
from accounts.tenancy import require_money_role
from billing.invoice_annex import VoiceNames, annex_response
from billing.invoice_document import invoice_pdf
from billing.models import Invoice, InvoiceKind
from billing.payments import registry
from billing.periods import local_day
from billing.selectors.invoices import invoice_of, invoices_of, name_of
from billing.selectors.usage import Dimension
from billing.services.payments import begin_invoice_payment
from portal.lib.errors import InvalidInput
from portal.lib.newest_first import page_before
from portal.money.names import names_of

INVOICES_SHOWN: Final = 50


@dataclass(frozen=True)
class InvoiceRow:
    """An invoice or a credit note with its number, its days in its own zone, and what is still to be paid."""

    invoice: Invoice
    number: str
    corrects: str
    first_day: date
    last_day: date
    open_micros: int
    form_id: uuid.UUID


def _row(invoice: Invoice) -> InvoiceRow:
    is_invoice = invoice.kind == InvoiceKind.INVOICE
    return InvoiceRow(
        invoice=invoice,
        number=name_of(invoice),
        corrects=name_of(invoice.corrects) if invoice.corrects is not None else "",
        first_day=local_day(invoice.period_start, invoice.time_zone),
        last_day=local_day(invoice.period_end - timedelta(microseconds=1), invoice.time_zone),
        open_micros=max(0, invoice.due_micros - invoice.paid_micros) if is_invoice else 0,
        form_id=uuid.uuid4(),
    )


@login_required
@never_cache
@require_safe
def invoices(request: HttpRequest) -> HttpResponse:
    """All that have a number, the newest first."""
    workspace = require_money_role(request)
    page = page_before(
        invoices_of(workspace.pk).select_related("corrects"),
        moment_field="finalized_at",
        before=request.GET.get("before", "")[:100],
        size=INVOICES_SHOWN,
    )
    context = {
        "page": page,
        "rows": [_row(invoice) for invoice in page.rows],
        "providers": registry.offered(),
        "may_manage": True,
    }
    return render(request, "billing/invoices.html", context)


@login_required
@never_cache
@require_safe
def invoice_file(request: HttpRequest, invoice_id: uuid.UUID) -> HttpResponse:
    """The invoice as PDF, in the reader's language."""
    invoice = invoice_of(require_money_role(request).pk, invoice_id)
    response = HttpResponse(
        invoice_pdf(invoice, language=get_language() or "en"), content_type="application/pdf"
    )
    response["Content-Disposition"] = f'attachment; filename="{name_of(invoice)}.pdf"'
    return response


@login_required
@never_cache
@require_safe
def invoice_receipts(request: HttpRequest, invoice_id: uuid.UUID) -> HttpResponseBase:
    """What every attempt was charged, and what was given back, as CSV: adds up to the invoice's usage."""
    workspace = require_money_role(request)
    invoice = invoice_of(workspace.pk, invoice_id)
    return annex_response(request, invoice, voice_names=_voice_names(workspace, get_language() or "en"))


def _voice_names(workspace: Workspace, language: str) -> VoiceNames:
    """What voices are called in the reader's language; those that were deleted say so. The file is sent while it is
    read, when the request's language is in force no more."""

    def names(ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
        with translation.override(language):
            named = names_of(workspace, Dimension.VOICE, ids)
        return {key: name for key, name in named.items() if isinstance(key, uuid.UUID)}

    return names


@login_required
@require_POST
def invoice_pay(request: HttpRequest, invoice_id: uuid.UUID) -> HttpResponse:
    """Begin to pay what is due. The same form sent again leads to the same payment."""
    invoice = invoice_of(require_money_role(request).pk, invoice_id)
    try:
        form_id = uuid.UUID(request.POST.get("form_id", ""))
    except ValueError as error:
        raise InvalidInput(field="form_id", reason="form_id") from error
    payment = begin_invoice_payment(
        invoice=invoice,
        provider_name=request.POST.get("provider", ""),
        idempotency_key=f"form:{form_id}",
    )
    return redirect("payment", payment_id=payment.pk)
