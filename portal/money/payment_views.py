"""Topping up, vouchers, and what became of each payment. For owners and the billing role.

A form is answered by a page of ours that leads on to the provider's: the content security policy lets no form end
elsewhere.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Final, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User, Workspace
from accounts.tenancy import require_money_role
from billing import errors
from billing.models import Payment, PaymentState
from billing.payments import registry
from billing.selectors.balances import currency_of
from billing.selectors.payments import payment_of, payments_of
from billing.services.payment_asking import refresh_payment
from billing.services.payments import begin_top_up
from billing.services.vouchers import redeem
from portal.lib.display import money_text
from portal.lib.newest_first import page_before
from portal.money.payment_forms import TopUpForm, VoucherForm
from portal.money.payment_words import failure_words

PAYMENTS_SHOWN: Final = 50
TONES: Final = {
    PaymentState.CREATED: "wait",
    PaymentState.UNKNOWN: "wait",
    PaymentState.SUCCEEDED: "ok",
    PaymentState.FAILED: "bad",
    PaymentState.EXPIRED: "idle",
}
# Why a code brings nothing: said beside its field.
VOUCHER_REFUSALS: Final = (
    errors.VoucherMistyped,
    errors.VoucherUnknown,
    errors.VoucherUsed,
    errors.VoucherExpired,
    errors.VoucherVoided,
    errors.CurrencyNotAccepted,
)


@dataclass(frozen=True)
class PaymentRow:
    payment: Payment
    tone: str
    way: str | Promise

    @property
    def is_open(self) -> bool:
        return self.payment.state in (PaymentState.CREATED, PaymentState.UNKNOWN)


def payment_row(payment: Payment) -> PaymentRow:
    way: str | Promise = payment.provider
    try:
        way = registry.provider(payment.provider).title
    except errors.PaymentProviderUnknown:
        # It is not set up here any more; the payment is there all the same.
        way = payment.provider
    if payment.method is not None:
        way = payment.method.label
    return PaymentRow(payment, TONES[PaymentState(payment.state)], way)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def top_up(request: HttpRequest) -> HttpResponse:
    """Amounts and ways to pay; a POST begins the payment. The same form sent again leads to the same payment."""
    workspace = require_money_role(request)
    if request.method != "POST":
        return _top_up_page(request, workspace)
    currency = currency_of(workspace.pk)
    form = TopUpForm(request.POST, providers=registry.offered(), currency=currency)
    if not form.is_valid():
        return _top_up_page(request, workspace, form=form)
    payment = begin_top_up(
        workspace_id=workspace.pk,
        provider_name=form.cleaned_data["provider"],
        amount_micros=form.cleaned_data["amount_micros"],
        currency=currency,
        idempotency_key=f"form:{form.cleaned_data['form_id']}",
        saves_method=form.cleaned_data["saves_method"],
    )
    return redirect("payment", payment_id=payment.pk)


def _top_up_page(request: HttpRequest, workspace: Workspace, **forms: Any) -> HttpResponse:
    providers = registry.offered()
    context = {
        "form": TopUpForm(providers=providers, currency=currency_of(workspace.pk)),
        "voucher_form": VoucherForm(),
        "providers": providers,
        "may_manage": True,
        **forms,
    }
    return render(request, "billing/top_up.html", context, status=422 if forms else 200)


@login_required
@require_POST
def voucher_redeem(request: HttpRequest) -> HttpResponse:
    """Give the workspace a voucher's credit. Each code works once, whoever sends it how often."""
    workspace = require_money_role(request)
    form = VoucherForm(request.POST)
    if not form.is_valid():
        return _top_up_page(request, workspace, voucher_form=form)
    try:
        voucher = redeem(
            workspace_id=workspace.pk, user_id=cast(User, request.user).pk, code=form.cleaned_data["code"]
        )
    except VOUCHER_REFUSALS as refusal:
        form.add_error("code", refusal.text())
        return _top_up_page(request, workspace, voucher_form=form)
    amount = money_text(voucher.batch.amount_micros, voucher.batch.currency)
    messages.success(request, _("The voucher brought %(amount)s.") % {"amount": amount})
    return redirect("billing")


@login_required
@never_cache
@require_safe
def payments(request: HttpRequest) -> HttpResponse:
    """Every payment with its state, the newest first."""
    workspace = require_money_role(request)
    page = page_before(
        payments_of(workspace),
        moment_field="created_at",
        before=request.GET.get("before", "")[:100],
        size=PAYMENTS_SHOWN,
    )
    context = {"page": page, "rows": [payment_row(row) for row in page.rows], "may_manage": True}
    return render(request, "billing/payments.html", context)


@login_required
@never_cache
@require_safe
def payment(request: HttpRequest, payment_id: uuid.UUID) -> HttpResponse:
    """One payment, as its provider says now: here its customer comes back from the provider's page."""
    workspace = require_money_role(request)
    found = payment_of(workspace, payment_id)
    refresh_payment(payment_id=found.pk)
    row = payment_row(payment_of(workspace, payment_id))
    context = {
        "row": row,
        "payment": row.payment,
        "reason": failure_words(row.payment.failure_code),
        # It is tried again where invoices are paid, not as a top-up.
        "is_of_invoice": row.payment.invoice_id is not None,
        "may_manage": True,
    }
    return render(request, "billing/payment.html", context)
