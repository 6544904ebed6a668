"""Saved ways to pay, the automatic top-up, and the test provider's pages. For owners and the billing role."""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import Workspace
from accounts.tenancy import one_of, require_money_role
from billing import errors
from billing.models import PaymentState
from billing.payments import registry
from billing.selectors.balances import currency_of
from billing.selectors.payments import automatic_top_up_of, methods_of, payment_of
from billing.services import automatic_top_up, payment_methods
from billing.services.pretend_payments import decide_test_payment, save_test_method
from portal.lib.errors import NotFound
from portal.money.payment_forms import AutomaticTopUpForm, automatic_initial

# What the rule of the automatic top-up may be refused for: said above its form.
RULE_REFUSALS = (
    errors.NoPaymentMethod,
    errors.AutomaticTopUpInvalid,
    errors.AmountNotPositive,
    errors.AmountOutOfRange,
    errors.AmountTooPrecise,
)


@login_required
@never_cache
@require_safe
def methods(request: HttpRequest) -> HttpResponse:
    return _page(request, require_money_role(request))


def _page(request: HttpRequest, workspace: Workspace, form: AutomaticTopUpForm | None = None) -> HttpResponse:
    rule = automatic_top_up_of(workspace)
    context: dict[str, Any] = {
        "methods": [(method, f"remove-{method.pk}") for method in methods_of(workspace)],
        "savers": [one for one in registry.offered() if one.saves_methods],
        "form": form or AutomaticTopUpForm(initial=automatic_initial(rule)),
        "rule": rule,
        "currency": currency_of(workspace.pk),
        "may_manage": True,
    }
    return render(request, "billing/methods.html", context, status=422 if form is not None else 200)


@login_required
@require_POST
def method_save(request: HttpRequest) -> HttpResponse:
    """The way to the provider's page on which a way to pay is saved."""
    workspace = require_money_role(request)
    provider = registry.offered_provider(request.POST.get("provider", ""))
    address = payment_methods.begin_saving(
        workspace_id=workspace.pk,
        provider_name=provider.name,
        return_url=f"{settings.BASE_URL}{reverse('methods')}",
    )
    context = {"address": address, "provider": provider, "may_manage": True}
    return render(request, "billing/method_save.html", context)


@login_required
@require_POST
def method_default(request: HttpRequest, method_id: uuid.UUID) -> HttpResponse:
    workspace = require_money_role(request)
    _check_method(workspace, method_id)
    payment_methods.set_default(workspace_id=workspace.pk, method_id=method_id)
    messages.success(request, _("From now on this one is charged."))
    return redirect("methods")


@login_required
@require_POST
def method_remove(request: HttpRequest, method_id: uuid.UUID) -> HttpResponse:
    workspace = require_money_role(request)
    _check_method(workspace, method_id)
    payment_methods.remove_method(workspace_id=workspace.pk, method_id=method_id)
    messages.success(request, _("It is removed here and at the provider."))
    return redirect("methods")


def _check_method(workspace: Workspace, method_id: uuid.UUID) -> None:
    one_of(methods_of(workspace), method_id)


@login_required
@require_POST
def automatic_set(request: HttpRequest) -> HttpResponse:
    """Set the rule by which the workspace is topped up: twice the same is as good as once."""
    workspace = require_money_role(request)
    form = AutomaticTopUpForm(request.POST)
    if not form.is_valid():
        return _page(request, workspace, form)
    try:
        automatic_top_up.set_up(
            workspace_id=workspace.pk,
            is_on=form.cleaned_data["is_on"],
            below_micros=form.cleaned_data["below"],
            amount_micros=form.cleaned_data["amount"],
            monthly_cap_micros=form.cleaned_data["monthly_cap"],
        )
    except RULE_REFUSALS as refusal:
        form.add_error(None, refusal.text())
        return _page(request, workspace, form)
    messages.success(request, _("Saved."))
    return redirect("methods")


# -- The test provider ---------------------------------------------------------------------------------------


def _require_test_provider() -> None:
    if "test" not in registry.offered_names():
        raise NotFound


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def test_payment(request: HttpRequest, payment_id: uuid.UUID) -> HttpResponse:
    """In place of a provider's page: two buttons, and no money moves."""
    workspace = require_money_role(request)
    _require_test_provider()
    found = payment_of(workspace, payment_id)
    if found.provider != "test":
        raise NotFound
    if request.method == "POST":
        succeeds = request.POST.get("outcome") == "paid"
        decide_test_payment(workspace_id=workspace.pk, payment_id=payment_id, succeeds=succeeds)
        return redirect("payment", payment_id=payment_id)
    is_open = found.state in (PaymentState.CREATED, PaymentState.UNKNOWN)
    return render(
        request, "billing/test_payment.html", {"payment": found, "is_open": is_open, "may_manage": True}
    )


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def test_method(request: HttpRequest) -> HttpResponse:
    """In place of a provider's page that saves a card."""
    workspace = require_money_role(request)
    _require_test_provider()
    if request.method == "POST":
        save_test_method(workspace_id=workspace.pk)
        messages.success(request, _("A test card is saved. No money moves with it."))
        return redirect("methods")
    return render(request, "billing/test_method.html", {"may_manage": True})
