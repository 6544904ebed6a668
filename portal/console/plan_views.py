"""Plans: what each means, who is on it, and new versions with their effect shown before they are saved."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User
from billing.models import Plan, PlanVersion
from billing.selectors.plans import newest_version
from portal.console.access import operators_only
from portal.console.plan_acts import add_version_for_operator, move_for_operator, subscribers_elsewhere
from portal.console.plan_form import (
    MoveForm,
    NewPlanForm,
    PlanVersionForm,
    digest,
    first_values,
    version_of,
)
from portal.console.plan_rows import (
    TERMS,
    all_plans,
    differences,
    find_plan,
    plan_rows,
    workspaces_without_plan,
)
from portal.console.price_views import CURRENCY
from portal.lib.errors import Conflict


@never_cache
@require_safe
@operators_only
def plans(request: HttpRequest) -> HttpResponseBase:
    """Which plans are there, and who is on them?"""
    context = {
        "plans": all_plans(),
        "without_plan": workspaces_without_plan(),
        "terms": [label for _name, label in TERMS],
    }
    return render(request, "console/plans.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def plan_new(request: HttpRequest) -> HttpResponseBase:
    """A plan that does not exist yet, with its first version."""
    form = NewPlanForm(request.POST or None, initial=first_values(None))
    plan = Plan()
    if request.method == "POST" and form.is_valid():
        plan = Plan(
            code=form.cleaned_data["code"],
            name=form.cleaned_data["name"],
            is_offered=form.cleaned_data["is_offered"],
        )
    return _version_page(request, form, plan, None)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def plan(request: HttpRequest, code: str) -> HttpResponseBase:
    """A plan with the form of its next version."""
    found = find_plan(code)
    before = newest_version(found)
    form = PlanVersionForm(request.POST or None, initial=first_values(before))
    return _version_page(request, form, found, before)


def _version_page(
    request: HttpRequest, form: PlanVersionForm, plan: Plan, before: PlanVersion | None
) -> HttpResponseBase:
    """The preview, and then what was previewed is saved."""
    context: dict[str, Any] = {"form": form, "plan": plan, "before": before}
    if before is not None:
        (context["row"],) = plan_rows([plan])
        context["terms"] = [label for _name, label in TERMS]
        context["elsewhere"] = len(subscribers_elsewhere(before))
    if request.method == "POST" and form.is_valid():
        version = version_of(form, plan, before.currency if before is not None else CURRENCY)
        shown = digest(form, before)
        if form.cleaned_data["seen"] == shown and "save" in request.POST:
            _save(request, version, form)
            return redirect("console_plans")
        context["differences"] = differences(before, version)
        context["seen"] = shown
    return render(request, "console/plan.html", context)


def _save(request: HttpRequest, version: PlanVersion, form: PlanVersionForm) -> None:
    actor, reason = cast(User, request.user), form.cleaned_data["reason"]
    stored = add_version_for_operator(version=version, actor=actor, reason=reason)
    values = {"plan": stored.plan.name, "number": stored.number}
    messages.success(request, _("Version %(number)d of %(plan)s is stored.") % values)
    if form.cleaned_data.get("move"):
        _move(request, stored.plan, reason)


def _move(request: HttpRequest, plan: Plan, reason: str) -> None:
    try:
        moved = move_for_operator(plan=plan, actor=cast(User, request.user), reason=reason)
    except Conflict:
        messages.warning(request, _("Nobody was to be moved."))
        return
    text = ngettext("%(count)d customer was moved to it.", "%(count)d customers were moved to it.", moved)
    messages.success(request, text % {"count": moved})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def plan_move(request: HttpRequest, code: str) -> HttpResponseBase:
    """Asks for the reason, and puts everybody on the version in force."""
    found = find_plan(code)
    version = newest_version(found)
    form = MoveForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        _move(request, found, form.cleaned_data["reason"])
        return redirect("console_plans")
    template = "console/_move_form.html" if request.headers.get("HX-Request") else "console/form_page.html"
    context = {
        "form_template": "console/_move_form.html",
        "form": form,
        "plan": found,
        "version": version,
        "elsewhere": len(subscribers_elsewhere(version)) if version is not None else 0,
    }
    return render(request, template, context)
