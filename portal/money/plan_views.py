"""The plan, and the question before it is changed."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.tenancy import may_manage_money, require_money_role, require_workspace
from billing.errors import PlanFeeNotCovered, PlanNotLeftNow
from billing.models import PlanVersion
from billing.selectors.plans import current_subscription, offered_plans
from billing.services.plans import change_plan
from portal.lib.errors import Conflict, NotFound
from portal.money.plan_page import compared, plan_facts


@login_required
@never_cache
@require_safe
def plans(request: HttpRequest) -> HttpResponse:
    """The plan that the workspace is on, and those that it may change to."""
    workspace = require_workspace(request)
    subscription = current_subscription(workspace.pk)
    current = subscription.plan_version if subscription is not None else None
    context = {
        "subscription": subscription,
        "current": current,
        "facts": plan_facts(current) if current is not None else [],
        "offers": [
            (version, plan_facts(version))
            for version in offered_plans()
            if current is None or version.pk != current.pk
        ],
        "may_manage": may_manage_money(request),
    }
    return render(request, "billing/plans.html", context)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def plan_change(request: HttpRequest, plan_code: str) -> HttpResponse:
    """What a change would change, as a question; a POST is the answer yes. Twice yes is as good as once."""
    workspace = require_money_role(request)
    version = _offered(plan_code)
    subscription = current_subscription(workspace.pk)
    current = subscription.plan_version if subscription is not None else None
    if request.method == "POST":
        # The plan may have got another version while the question stood there.
        if request.POST.get("version") != str(version.pk):
            raise Conflict
        try:
            change_plan(workspace_id=workspace.pk, plan_version=version)
        except (PlanFeeNotCovered, PlanNotLeftNow) as refused:
            messages.error(request, refused.text())
            return redirect("plans")
        messages.success(request, _("The plan is “%(name)s” from now on.") % {"name": version.plan.name})
        return redirect("plans")
    if current is not None and current.pk == version.pk:
        return redirect("plans")
    context = {"version": version, "current": current, "facts": compared(version, current)}
    return render(request, "billing/plan_change.html", context)


def _offered(plan_code: str) -> PlanVersion:
    for version in offered_plans():
        if version.plan.code == plan_code:
            return version
    raise NotFound
