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
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import Workspace
from accounts.tenancy import one_of, require_money_role
from billing.invoice_annex import VoiceNames, annex_response
from billing.invoice_document import invoice_pdf
from billing.invoicing.amounts import payable
from billing.models import Invoice, InvoiceKind, Payment, PaymentMethod
from billing.payments import registry
from billing.periods import local_day
from billing.selectors.invoices import invoice_of, invoices_of, name_of
from billing.selectors.payments import methods_of, open_payment_of
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
    # A payment of it that has no end yet.
    on_its_way: Payment | None
    form_id: uuid.UUID


def _row(invoice: Invoice) -> InvoiceRow:
    is_invoice = invoice.kind == InvoiceKind.INVOICE
    open_micros = max(0, invoice.due_micros - invoice.paid_micros) if is_invoice else 0
    return InvoiceRow(
        invoice=invoice,
        number=name_of(invoice),
        corrects=name_of(invoice.corrects) if invoice.corrects is not None else "",
        first_day=local_day(invoice.period_start, invoice.time_zone),
        last_day=local_day(invoice.period_end - timedelta(microseconds=1), invoice.time_zone),
        open_micros=open_micros,
        on_its_way=open_payment_of(invoice) if open_micros else None,
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
        "has_method": bool(_chargeable(workspace)),
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
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invoice_pay(request: HttpRequest, invoice_id: uuid.UUID) -> HttpResponse:
    """Whether to charge what is due to a saved way to pay, as a question; a POST begins the payment, with that or on a
    provider's page. The same form sent again leads to the same payment."""
    workspace = require_money_role(request)
    invoice = invoice_of(workspace.pk, invoice_id)
    if request.method != "POST":
        return _question(request, workspace, invoice)
    try:
        form_id = uuid.UUID(request.POST.get("form_id", ""))
        agreed = int(request.POST["agreed_micros"]) if "agreed_micros" in request.POST else None
    except ValueError as error:
        raise InvalidInput(field="form_id", reason="form_id") from error
    method = one_of(methods_of(workspace), request.POST["method"]) if "method" in request.POST else None
    payment = begin_invoice_payment(
        invoice=invoice,
        provider_name=method.provider if method is not None else request.POST.get("provider", ""),
        idempotency_key=f"form:{form_id}",
        method=method,
        agreed_micros=agreed,
    )
    return redirect("payment", payment_id=payment.pk)


def _question(request: HttpRequest, workspace: Workspace, invoice: Invoice) -> HttpResponse:
    row = _row(invoice)
    methods = _chargeable(workspace)
    if row.on_its_way is not None:
        return redirect("payment", payment_id=row.on_its_way.pk)
    if not row.open_micros or not methods:
        return redirect("invoices")
    context = {
        "row": row,
        "methods": methods,
        "payable_micros": payable(row.open_micros),
        "may_manage": True,
    }
    return render(request, "billing/invoice_pay.html", context)


def _chargeable(workspace: Workspace) -> list[PaymentMethod]:
    """The saved ways to pay whose providers are offered, the one that is charged by itself first."""
    names = registry.offered_names()
    return [method for method in methods_of(workspace) if method.provider in names]
