"""Refunding a payment: the credit is taken out, and the provider pays it back."""

from __future__ import annotations

import uuid
from typing import cast

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.models import User
from billing.errors import AmountTooPrecise, PaymentNotRefundable, RefundExceedsPayment
from billing.models import Payment
from billing.services.payment_refunds import refundable_micros
from portal.console import money_acts
from portal.console.access import operators_only
from portal.console.customer_page import find_payment
from portal.console.money_acts import Outcome
from portal.console.money_fields import AmountForm
from portal.lib.display import money_exact


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def payment_refund(request: HttpRequest, payment_id: uuid.UUID) -> HttpResponseBase:
    """Asks how much and why, and does it, or asks for a second operator."""
    payment = find_payment(payment_id)
    refundable = refundable_micros(payment)
    form = AmountForm(request.POST or None, initial={"amount": refundable})
    if request.method == "POST" and form.is_valid() and _do(request, payment, form):
        return redirect("console_customer", payment.workspace_id)
    context = {
        "form_template": "console/_payment_refund_form.html",
        "payment": payment,
        "refundable": refundable,
        "alone_micros": money_acts.left_alone_micros(
            actor=cast(User, request.user), workspace_id=payment.workspace_id
        ),
        "form": form,
    }
    is_dialog = request.headers.get("HX-Request")
    return render(
        request, "console/_payment_refund_form.html" if is_dialog else "console/form_page.html", context
    )


def _do(request: HttpRequest, payment: Payment, form: AmountForm) -> bool:
    act = money_acts.MoneyAct(
        id=form.cleaned_data["key"],
        act=money_acts.PAYMENT_REFUND,
        workspace_id=payment.workspace_id,
        amount_micros=form.cleaned_data["amount"],
        reason=form.cleaned_data["reason"],
        payment_id=payment.pk,
    )
    try:
        outcome = money_acts.do_or_ask(act=act, actor=cast(User, request.user))
    except (PaymentNotRefundable, RefundExceedsPayment, AmountTooPrecise) as error:
        form.add_error("amount", error.text())
        return False
    amount = {"amount": money_exact(act.amount_micros, payment.currency)}
    if outcome is Outcome.DONE:
        messages.success(request, _("%(amount)s goes back to whoever paid.") % amount)
    elif outcome is Outcome.ASKED:
        text = _("%(amount)s is above what one operator may do alone: another one has to confirm it.")
        messages.info(request, text % amount)
    else:
        messages.warning(request, _("This form was sent before. Nothing was done."))
    return True
