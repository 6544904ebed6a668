"""Who is billed, when people are told that credit runs out, and in which zone the workspace's days begin."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.models import Workspace
from accounts.tenancy import require_money_role
from billing.selectors.balances import currency_of, time_zone_of
from billing.selectors.profiles import profile_of
from billing.services.profiles import BilledParty, set_billed_party, set_low_balance_notice, set_time_zone
from portal.money.forms import BilledPartyForm, NoticeForm, ZoneForm


@login_required
@never_cache
@require_safe
def billing_settings(request: HttpRequest) -> HttpResponse:
    return _page(request, require_money_role(request))


def _page(request: HttpRequest, workspace: Workspace, **forms: Any) -> HttpResponse:
    """The three forms: those that are given, the others with what is stored."""
    profile = profile_of(workspace.pk)
    context = {
        "party_form": BilledPartyForm(instance=profile),
        "notice_form": NoticeForm(initial={"below": profile.low_balance_micros}),
        "zone_form": ZoneForm(initial={"time_zone": time_zone_of(workspace.pk)}),
        "currency": currency_of(workspace.pk),
        **forms,
    }
    return render(request, "billing/settings.html", context, status=422 if forms else 200)


def _saved(request: HttpRequest) -> HttpResponse:
    messages.success(request, _("Saved."))
    return redirect("billing_settings")


@login_required
@require_POST
def billed_party_set(request: HttpRequest) -> HttpResponse:
    workspace = require_money_role(request)
    form = BilledPartyForm(request.POST)
    if not form.is_valid():
        return _page(request, workspace, party_form=form)
    set_billed_party(workspace_id=workspace.pk, party=BilledParty(**form.cleaned_data))
    return _saved(request)


@login_required
@require_POST
def low_balance_set(request: HttpRequest) -> HttpResponse:
    workspace = require_money_role(request)
    form = NoticeForm(request.POST)
    if not form.is_valid():
        return _page(request, workspace, notice_form=form)
    # A notice below nothing would never come: it is none.
    set_low_balance_notice(workspace_id=workspace.pk, below_micros=form.cleaned_data["below"] or None)
    return _saved(request)


@login_required
@require_POST
def time_zone_set(request: HttpRequest) -> HttpResponse:
    workspace = require_money_role(request)
    form = ZoneForm(request.POST)
    if not form.is_valid():
        return _page(request, workspace, zone_form=form)
    set_time_zone(workspace_id=workspace.pk, time_zone=form.cleaned_data["time_zone"])
    return _saved(request)
