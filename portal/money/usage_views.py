"""Where did my minutes go? And how much may be spent.

Every member sees the usage, as every member sees the jobs behind it; owners and the billing role set budgets.
"""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.models import Workspace
from accounts.tenancy import may_manage_money, require_money_role, require_workspace
from billing.selectors.balances import currency_of
from billing.selectors.budgets import budget_of
from billing.selectors.usage import Dimension, usage_by
from billing.selectors.usage_days import usage_of
from billing.services.budgets import remove_budget, set_budget
from portal.lib.csv_export import csv_response
from portal.lib.display import money_text
from portal.money import usage_files
from portal.money.days import MOST_DAYS, Days, days_between, last_month, this_month
from portal.money.forms import CHOSEN_DAYS, LAST_MONTH, BudgetForm, PeriodForm, budget_initial
from portal.money.measures import Measure
from portal.money.usage_page import read_usage_page


@login_required
@never_cache
@require_safe
def usage(request: HttpRequest) -> HttpResponseBase:
    """The page; `?format=csv&by=…` gives the same sums as a file."""
    workspace = require_workspace(request)
    form = PeriodForm(request.GET)
    days = _days(workspace, form)
    if request.GET.get("format") == "csv":
        return _file(workspace, days or this_month(workspace.pk), request.GET.get("by", ""))
    return _page(request, workspace, form, days, budget_form=_budget_form(request, workspace))


def _page(
    request: HttpRequest,
    workspace: Workspace,
    form: PeriodForm,
    days: Days | None,
    *,
    budget_form: BudgetForm,
    status: int = 200,
) -> HttpResponse:
    measure = Measure(form.known("measure") or Measure.CHARGED)
    shown = days or this_month(workspace.pk)
    context = {
        "form": form,
        "period": form.known("period") or "this_month",
        "measure": measure.value,
        "measures": Measure.choices,
        "page": read_usage_page(workspace, shown, measure),
        "days_refused": days is None,
        "most_days": MOST_DAYS,
        "may_manage": may_manage_money(request),
        "budget_form": budget_form,
    }
    return render(request, "billing/usage.html", context, status=status)


def _days(workspace: Workspace, form: PeriodForm) -> Days | None:
    """The days that were asked for; None for such as cannot be shown."""
    period = form.known("period")
    if period == CHOSEN_DAYS:
        return days_between(workspace.pk, form.known("first"), form.known("last"))
    return last_month(workspace.pk) if period == LAST_MONTH else this_month(workspace.pk)


def _file(workspace: Workspace, days: Days, by: str) -> HttpResponseBase:
    currency = currency_of(workspace.pk)
    name = f"usage-{days.first.isoformat()}-{days.last.isoformat()}"
    if by == usage_files.BY_DAY_AND_DEVICE_CLASS:
        rows = usage_files.chart_rows(usage_of(workspace.pk, days.first, days.last), currency)
    else:
        by = by if by in list(Dimension) else Dimension.DAY
        dimension = Dimension(by)
        parts = usage_by(workspace.pk, dimension, days.first, days.last)
        rows = usage_files.rows(workspace, dimension, parts, currency)
    return csv_response(f"{name}-{by}".replace("_", "-"), header=usage_files.header(by), rows=rows)


def _budget_form(request: HttpRequest, workspace: Workspace) -> BudgetForm:
    """Empty, or filled with the budget that is to be changed."""
    try:
        chosen = budget_of(workspace.pk, uuid.UUID(request.GET.get("budget", "")))
    except ValueError:
        chosen = None
    return BudgetForm(workspace=workspace, initial=budget_initial(chosen) if chosen is not None else None)


@login_required
@require_POST
def budget_set(request: HttpRequest) -> HttpResponse:
    """Set a budget, in place of the one before it: twice the same is as good as once."""
    workspace = require_money_role(request)
    form = BudgetForm(request.POST, workspace=workspace)
    if not form.is_valid():
        period = PeriodForm({})
        return _page(request, workspace, period, _days(workspace, period), budget_form=form, status=422)
    budget = set_budget(
        workspace_id=workspace.pk,
        scope=form.scope,
        subject_id=form.subject_id,
        monthly_micros=form.cleaned_data["monthly"],
        is_hard=form.is_hard,
        warn_percent=form.cleaned_data["warn_percent"],
    )
    amount = money_text(budget.monthly_micros, currency_of(workspace.pk))
    messages.success(request, _("The budget is %(amount)s a month.") % {"amount": amount})
    return redirect(f"{reverse('usage')}#budgets")


@login_required
@require_POST
def budget_remove(request: HttpRequest, budget_id: uuid.UUID) -> HttpResponse:
    workspace = require_money_role(request)
    remove_budget(workspace_id=workspace.pk, budget_id=budget_id)
    messages.success(request, _("The budget is removed."))
    return redirect(f"{reverse('usage')}#budgets")
