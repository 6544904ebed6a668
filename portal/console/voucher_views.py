"""The pages of vouchers."""

from __future__ import annotations

import uuid
from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User
from billing.errors import AmountOutOfRange, AmountTooPrecise, VoucherBatchInvalid, VoucherDatesInvalid
from billing.selectors.payments import voucher_batches
from portal.console import money_acts
from portal.console.access import operators_only
from portal.console.books_acts import ExplainForm
from portal.console.pages import live
from portal.console.pending_page import open_count
from portal.console.price_views import CURRENCY
from portal.console.voucher_page import BatchForm, Made, find_batch, make_for_operator, void_for_operator
from portal.lib.clock import database_now
from portal.lib.errors import Conflict

BATCHES_SHOWN = 100


@never_cache
@require_safe
@operators_only
def vouchers(request: HttpRequest) -> HttpResponseBase:
    """Which vouchers were handed out, and which of them were redeemed?"""
    context = live(now=database_now(), every_s=10, parts=("batch-rows",))
    batches = voucher_batches()[:BATCHES_SHOWN]
    return render(
        request, "console/vouchers.html", {"batches": batches, "pending_count": open_count(), **context}
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def voucher_new(request: HttpRequest) -> HttpResponseBase:
    """Makes a batch, and shows its codes: this once, for only their hashes are stored."""
    form = BatchForm(request.POST or None)
    actor = cast(User, request.user)
    if request.method == "POST" and form.is_valid():
        try:
            made = make_for_operator(form=form, currency=CURRENCY, actor=actor)
        except Conflict:
            messages.warning(
                request, _("This form was sent before. Its codes were shown then, and are not shown again.")
            )
            return redirect("console_vouchers")
        except (AmountTooPrecise, AmountOutOfRange) as error:
            form.add_error("amount", error.text())
        except (VoucherBatchInvalid, VoucherDatesInvalid) as error:
            form.add_error(None, error.text())
        else:
            if made is not None:
                return codes_page(request, made)
            text = _("These are more than one operator may make alone: another one has to confirm it.")
            messages.info(request, text)
            return redirect("console_pending")
    context = {
        "form": form,
        "currency": CURRENCY,
        "alone_micros": money_acts.left_alone_micros(actor=actor, workspace_id=None),
    }
    return render(request, "console/voucher_new.html", context)


def codes_page(request: HttpRequest, made: Made) -> HttpResponse:
    """The codes of a batch, this once."""
    batch, codes = made
    return render(request, "console/voucher_codes.html", {"batch": batch, "codes": codes})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def voucher_void(request: HttpRequest, batch_id: uuid.UUID) -> HttpResponseBase:
    """Asks for the reason, and withdraws what nobody redeemed of a batch."""
    batch = find_batch(batch_id)
    form = ExplainForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            voided = void_for_operator(
                batch=batch, actor=cast(User, request.user), reason=form.cleaned_data["reason"]
            )
            text = ngettext("%(count)d voucher is withdrawn.", "%(count)d vouchers are withdrawn.", voided)
            messages.success(request, text % {"count": voided})
        except Conflict:
            messages.warning(request, _("No voucher of it was left to withdraw. Nothing was done."))
        return redirect("console_vouchers")
    template = "console/_void_form.html" if request.headers.get("HX-Request") else "console/form_page.html"
    return render(
        request, template, {"form_template": "console/_void_form.html", "form": form, "batch": batch}
    )
