"""The pages of customers, and what operators do to them."""

from __future__ import annotations

import uuid
from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User, Workspace
from billing.errors import AmountTooPrecise, PaymentReferenceUsed, PlanNotInForce
from portal.console import money_acts
from portal.console.access import operators_only
from portal.console.customer_acts import (
    ACTS,
    PLAN,
    SUSPEND,
    CustomerAct,
    change_plan,
    money_act,
    offered_acts,
    suspend,
    unsuspend,
)
from portal.console.customer_page import account_of, find_workspace, read_customer
from portal.console.customer_search import (
    CUSTOMERS_PER_PAGE,
    CustomerSearchForm,
    customer_rows,
    find_customers,
)
from portal.console.money_acts import Outcome, TooLittleLeft
from portal.console.money_fields import MoneyActForm
from portal.console.pages import chart_file, live
from portal.lib.clock import database_now
from portal.lib.display import money_exact
from portal.lib.errors import Conflict
from portal.lib.newest_first import page_before

CUSTOMER_PARTS = (
    "customer-state",
    "customer-figures",
    "pending-rows",
    "hold-rows",
    "payment-rows",
    "ledger-rows",
    "job-rows",
    "customer-audit-rows",
)


@never_cache
@require_safe
@operators_only
def customers(request: HttpRequest) -> HttpResponseBase:
    """Who is this?"""
    now = database_now()
    form = CustomerSearchForm(request.GET)
    page = page_before(
        find_customers(form),
        moment_field="created_at",
        before=form.known("before") or "",
        size=CUSTOMERS_PER_PAGE,
    )
    context = live(now=now, every_s=10 if page.is_first and not form.query else 0, parts=("customer-rows",))
    rows = customer_rows(page.rows, now=now)
    return render(
        request, "console/customers.html", {"form": form, "page": page, "customers": rows, **context}
    )


@never_cache
@require_safe
@operators_only
def customer(request: HttpRequest, workspace_id: uuid.UUID) -> HttpResponseBase:
    """Are they all right?"""
    now = database_now()
    shown = read_customer(workspace_id, now=now, before=request.GET.get("before", ""))
    if wanted := request.GET.get("csv"):
        return chart_file([shown.usage], wanted)
    every_s = 5 if shown.ledger_page.is_first else 0
    context = live(now=now, every_s=every_s, parts=CUSTOMER_PARTS, charts=[shown.usage])
    return render(request, "console/customer.html", {"shown": shown, "page": shown.ledger_page, **context})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def customer_act(request: HttpRequest, workspace_id: uuid.UUID, act: str) -> HttpResponseBase:
    """Asks for the reason, says what will happen, and does it, or asks for a second operator."""
    if act not in ACTS:
        raise Http404
    chosen = ACTS[act]
    workspace = find_workspace(workspace_id)
    offered = chosen in offered_acts(workspace)
    form = chosen.form(request.POST or None)
    if request.method == "POST" and offered and form.is_valid() and _do(request, workspace, chosen, form):
        return redirect("console_customer", workspace_id)
    context = {
        "workspace": workspace,
        "account": account_of(workspace_id),
        "act": chosen,
        "offered": offered,
        "form": form,
        "alone_micros": money_acts.left_alone_micros(
            actor=cast(User, request.user), workspace_id=workspace_id
        ),
    }
    is_dialog = request.headers.get("HX-Request")
    template = "console/_customer_act_form.html" if is_dialog else "console/customer_act.html"
    return render(request, template, context, status=200 if offered or request.method != "POST" else 409)


def _do(request: HttpRequest, workspace: Workspace, act: CustomerAct, form: MoneyActForm) -> bool:
    """Do it and say so; False where the form has to be filled in otherwise. What changed in the meantime is said too,
    and changes nothing."""
    actor, reason = cast(User, request.user), form.cleaned_data["reason"]
    try:
        if act.money:
            _say(
                request,
                workspace,
                money_acts.do_or_ask(
                    act=money_act(act=act, workspace_id=workspace.pk, form=form), actor=actor
                ),
                form.cleaned_data["amount"],
            )
            return True
        if act.slug == PLAN:
            change_plan(
                workspace=workspace, version_id=form.cleaned_data["version"], actor=actor, reason=reason
            )
            messages.success(request, _("The plan is changed."))
        elif act.slug == SUSPEND:
            suspend(workspace=workspace, actor=actor, reason=reason)
            messages.success(request, _("The customer is suspended."))
        else:
            unsuspend(workspace=workspace, actor=actor, reason=reason)
            messages.success(request, _("The customer can work again."))
    except TooLittleLeft as error:
        form.add_error("amount", error.text())
        return False
    except (PaymentReferenceUsed, AmountTooPrecise) as error:
        form.add_error(error.field or "amount", error.text())
        return False
    except (Conflict, PlanNotInForce):
        messages.warning(request, _("The customer had changed in the meantime. Nothing was done."))
    return True


def _say(request: HttpRequest, workspace: Workspace, outcome: Outcome, amount_micros: int) -> None:
    values = {"amount": money_exact(amount_micros, account_of(workspace.pk).currency)}
    if outcome is Outcome.DONE:
        messages.success(request, _("Done: %(amount)s.") % values)
    elif outcome is Outcome.ASKED:
        messages.info(
            request,
            _("%(amount)s is above what one operator may do alone: another one has to confirm it.") % values,
        )
    else:
        messages.warning(request, _("This form was sent before, or it changes nothing. Nothing was done."))
