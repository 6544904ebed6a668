"""The plan, the question before it is changed, and what waits for the next month."""

from __future__ import annotations

import uuid
from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from accounts.tenancy import may_manage_money, require_money_role, require_workspace
from billing.errors import PlanChangeOver, PlanFeeNotCovered
from billing.models import PlanVersion
from billing.selectors.balances import time_zone_of
from billing.selectors.plans import begins_next_month, current_subscription, offered_plans, waiting_change
from billing.services.plan_changes import first_day_of_next_month, take_back
from billing.services.plans import change_plan
from portal.lib.clock import now
from portal.lib.errors import Conflict, NotFound
from portal.money.plan_page import compared, plan_facts
from portal.templatetags.charts import long_date


@login_required
@never_cache
@require_safe
def plans(request: HttpRequest) -> HttpResponse:
    """The plan that the workspace is on, what follows it, and those that it may change to."""
    workspace = require_workspace(request)
    subscription = current_subscription(workspace.pk)
    current = subscription.plan_version if subscription is not None else None
    waiting = waiting_change(workspace.pk)
    shown = {version.pk for version in (current, waiting and waiting.plan_version) if version is not None}
    context = {
        "subscription": subscription,
        "current": current,
        "waiting": waiting,
        "facts": plan_facts(current) if current is not None else [],
        "offers": [(version, plan_facts(version)) for version in offered_plans() if version.pk not in shown],
        "may_manage": may_manage_money(request),
    }
    return render(request, "billing/plans.html", context)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def plan_change(request: HttpRequest, plan_code: str) -> HttpResponse:
    """What a change would change, and when, as a question; a POST is the answer yes. Twice yes is as good as once."""
    workspace = require_money_role(request)
    version = _offered(plan_code)
    subscription = current_subscription(workspace.pk)
    current = subscription.plan_version if subscription is not None else None
    if current is not None and current.pk == version.pk:
        return redirect("plans")
    zone = time_zone_of(workspace.pk)
    first_day = (
        first_day_of_next_month(time_zone=zone, at=now()) if begins_next_month(current, version) else None
    )
    begins = first_day.isoformat() if first_day is not None else "now"
    if request.method == "POST":
        # The plan may have got another version while the question stood there, or the month may have ended.
        if (request.POST.get("version"), request.POST.get("begins")) != (str(version.pk), begins):
            raise Conflict
        return _change(request, workspace.pk, version)
    context = {
        "version": version,
        "current": current,
        "facts": compared(version, current),
        "begins": begins,
        "first_day": first_day,
        "zone": zone,
        "waiting": waiting_change(workspace.pk),
        "may_manage": True,
    }
    return render(request, "billing/plan_change.html", context)


def _change(request: HttpRequest, workspace_id: uuid.UUID, version: PlanVersion) -> HttpResponse:
    try:
        waiting = change_plan(
            workspace_id=workspace_id, plan_version=version, requested_by_id=cast(User, request.user).pk
        )
    except PlanFeeNotCovered as refused:
        messages.error(request, refused.text())
        return redirect("plans")
    name = version.plan.name
    if waiting is None:
        messages.success(request, _("The plan is “%(name)s” from now on.") % {"name": name})
    else:
        values = {"name": name, "day": long_date(waiting.first_day)}
        messages.success(request, _("The plan changes to “%(name)s” on %(day)s.") % values)
    return redirect("plans")


@login_required
@require_POST
def plan_change_take_back(request: HttpRequest, change_id: uuid.UUID) -> HttpResponse:
    """Stay on the plan. Twice is as good as once; what has begun meanwhile is said, and stays."""
    workspace = require_money_role(request)
    try:
        take_back(workspace_id=workspace.pk, change_id=change_id)
    except PlanChangeOver as refused:
        messages.error(request, refused.text())
    else:
        messages.success(request, _("The change is taken back: the plan stays as it is."))
    return redirect("plans")


def _offered(plan_code: str) -> PlanVersion:
    for version in offered_plans():
        if version.plan.code == plan_code:
            return version
    raise NotFound
