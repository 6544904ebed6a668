"""The pages of money: the books, and what waits for a second operator."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User
from billing.errors import (
    DifferenceNotFound,
    PaymentNotRefundable,
    PaymentReferenceUsed,
    PendingActDecided,
    RefundExceedsPayment,
    RefundTooHigh,
    SecondOperatorNeeded,
    VoucherDatesInvalid,
)
from billing.models import PendingAct
from portal.console import money_acts
from portal.console.access import operators_only
from portal.console.books_acts import (
    ExplainForm,
    ReconcileForm,
    explain_for_operator,
    find_difference,
    reconcile_for_operator,
)
from portal.console.money_acts import TooLittleLeft
from portal.console.money_page import read_money
from portal.console.pages import chart_file, live
from portal.console.pending_page import DeclineForm, open_count, read_pending
from portal.console.voucher_page import confirm_vouchers
from portal.console.voucher_views import codes_page
from portal.lib.clock import database_now
from portal.lib.errors import Conflict, NotFound

MONEY_PARTS = (
    "money-figures",
    "books-state",
    "difference-rows",
    "receivable-rows",
    "grant-rows",
    "hold-rows",
    "payment-rows",
    "return-state",
    "return-rows",
    "refund-rows",
)
CONFIRM = "confirm"
DECLINE = "decline"


@never_cache
@require_safe
@operators_only
def money(request: HttpRequest) -> HttpResponseBase:
    """Do the books balance?"""
    now = database_now()
    shown = read_money(now=now)
    if wanted := request.GET.get("csv"):
        return chart_file([shown.revenue], wanted)
    context = live(now=now, every_s=30, parts=MONEY_PARTS, charts=[shown.revenue])
    return render(request, "console/money.html", {"shown": shown, **context})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def reconcile(request: HttpRequest) -> HttpResponseBase:
    """Asks for the day and the reason, and looks at its books at once."""
    form = ReconcileForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        run = reconcile_for_operator(
            day=form.cleaned_data["day"], actor=cast(User, request.user), reason=form.cleaned_data["reason"]
        )
        if run.differences:
            text = ngettext(
                "%(count)d difference was found.", "%(count)d differences were found.", run.differences
            )
            messages.warning(request, text % {"count": run.differences})
        else:
            messages.success(request, _("The books balance."))
        return redirect("console_money")
    return _form_page(request, "reconcile", {"form": form})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def difference(request: HttpRequest, difference_id: int) -> HttpResponseBase:
    """Asks why a difference is none, and notes it."""
    found = find_difference(difference_id)
    form = ExplainForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            explain_for_operator(
                difference_id=difference_id,
                actor=cast(User, request.user),
                reason=form.cleaned_data["reason"],
            )
            messages.success(request, _("Noted. It is no alert any more."))
        except DifferenceNotFound:
            messages.warning(request, _("Somebody had explained it in the meantime. Nothing was done."))
        return redirect("console_money")
    return _form_page(request, "difference", {"form": form, "difference": found})


def _form_page(request: HttpRequest, name: str, context: dict[str, object]) -> HttpResponseBase:
    template = f"console/_{name}_form.html" if request.headers.get("HX-Request") else "console/form_page.html"
    return render(request, template, {"form_template": f"console/_{name}_form.html", **context})


@never_cache
@require_safe
@operators_only
def pending(request: HttpRequest) -> HttpResponseBase:
    """What waits for a second operator?"""
    shown = read_pending(reader=cast(User, request.user))
    context = live(now=database_now(), every_s=10, parts=("pending-rows", "decided-rows"))
    return render(
        request,
        "console/pending.html",
        {
            "shown": shown,
            "pending_count": open_count(),
            "limit_micros": money_acts.limit_micros(),
            "window_hours": money_acts.window() // timedelta(hours=1),
            **context,
        },
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def pending_act(request: HttpRequest, act_id: uuid.UUID, decision: str) -> HttpResponseBase:
    """Asks once more, and does what another operator asked for, or declines it with a reason."""
    if decision not in (CONFIRM, DECLINE):
        raise Http404
    rows = [row for row in read_pending(reader=cast(User, request.user)).waiting if row.pending.pk == act_id]
    if not rows:
        messages.warning(request, _("This was decided in the meantime. Nothing was done."))
        return redirect("console_pending")
    form = DeclineForm(request.POST or None)
    if request.method == "POST" and (decision == CONFIRM or form.is_valid()):
        return _decide(request, rows[0].pending, decision, form)
    return _form_page(request, "pending", {"form": form, "row": rows[0], "decision": decision})


def _decide(request: HttpRequest, pending: PendingAct, decision: str, form: DeclineForm) -> HttpResponseBase:
    """Decide and say so. What changed in the meantime is said too, and changes nothing."""
    actor, act_id = cast(User, request.user), pending.pk
    try:
        if decision == CONFIRM and pending.act == money_acts.VOUCHERS:
            return codes_page(request, confirm_vouchers(act_id=act_id, actor=actor))
        if decision == CONFIRM:
            money_acts.confirm(act_id=act_id, actor=actor)
            messages.success(request, _("Confirmed and done."))
        else:
            money_acts.decline(act_id=act_id, actor=actor, reason=form.cleaned_data["reason"])
            messages.success(request, _("Declined. Nothing was changed."))
    except (
        SecondOperatorNeeded,
        PendingActDecided,
        TooLittleLeft,
        RefundTooHigh,
        RefundExceedsPayment,
        PaymentNotRefundable,
        PaymentReferenceUsed,
        VoucherDatesInvalid,
    ) as error:
        messages.warning(request, error.text())
    except (Conflict, NotFound):
        messages.warning(request, _("What it is about had changed in the meantime. Nothing was done."))
    return redirect("console_pending")
