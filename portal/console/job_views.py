"""The pages of jobs, and what operators do to them."""

from __future__ import annotations

import uuid
from typing import cast

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User
from billing.errors import RefundTooHigh
from portal.console import money_acts
from portal.console.access import operators_only
from portal.console.job_acts import JobActForm, RefundForm, cancel_for_operator
from portal.console.job_page import JobPage, read_job
from portal.console.job_search import JOBS_PER_PAGE, JobSearchForm, find_jobs
from portal.console.money_acts import Outcome
from portal.console.pages import live
from portal.console.selectors import rows_of
from portal.lib.clock import database_now
from portal.lib.display import money_exact
from portal.lib.errors import Conflict
from portal.lib.newest_first import page_before
from tts.errors import JobAlreadyEnded, JobNotFound

CANCEL = "cancel"
REFUND = "refund"


@never_cache
@require_safe
@operators_only
def jobs(request: HttpRequest) -> HttpResponseBase:
    """Which job do they mean?"""
    now = database_now()
    form = JobSearchForm(request.GET)
    page = page_before(
        find_jobs(form), moment_field="created_at", before=form.known("before") or "", size=JOBS_PER_PAGE
    )
    # What was searched for stands still: the search costs more than the newest rows.
    context = live(now=now, every_s=3 if page.is_first and not form.query else 0, parts=("job-rows",))
    rows = rows_of(page.rows, now=now)
    return render(request, "console/jobs.html", {"form": form, "page": page, "jobs": rows, **context})


@never_cache
@require_safe
@operators_only
def job(request: HttpRequest, job_id: uuid.UUID) -> HttpResponseBase:
    """What happened to this one?"""
    now = database_now()
    shown = read_job(job_id, now=now)
    parts = ("job-state", "job-acts", "segment-rows", "money-rows", "job-audit-rows")
    context = live(now=now, every_s=3, parts=parts)
    return render(request, "console/job.html", {"shown": shown, **context})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def job_act(request: HttpRequest, job_id: uuid.UUID, act: str) -> HttpResponseBase:
    """Asks for the reason, says what will happen, and does it."""
    if act not in (CANCEL, REFUND):
        raise Http404
    shown = read_job(job_id, now=database_now())
    form: forms.Form = (JobActForm if act == CANCEL else RefundForm)(request.POST or None)
    offered = shown.is_live if act == CANCEL else shown.refundable_micros > 0
    if request.method == "POST" and offered and form.is_valid() and _do(request, shown, act, form):
        return redirect("console_job", job_id)
    context = {
        "shown": shown,
        "act_name": act,
        "offered": offered,
        "form": form,
        "alone_micros": money_acts.left_alone_micros(
            actor=cast(User, request.user), workspace_id=shown.job.workspace_id
        ),
    }
    template = "console/_job_act_form.html" if request.headers.get("HX-Request") else "console/job_act.html"
    return render(request, template, context, status=200 if offered or request.method != "POST" else 409)


def _do(request: HttpRequest, shown: JobPage, act: str, form: forms.Form) -> bool:
    """Do it and say so; False where the form has to be filled in otherwise. What changed in the meantime is said too,
    and changes nothing."""
    actor = cast(User, request.user)
    try:
        if act == CANCEL:
            cancel_for_operator(job_id=shown.job.pk, actor=actor, reason=form.cleaned_data["reason"])
            messages.success(
                request, _("The job is canceled. What it had not used of its hold is free again.")
            )
        else:
            _refund(request, shown, form, actor)
    except RefundTooHigh as error:
        form.add_error("amount", error.text())
        return False
    except (Conflict, JobAlreadyEnded, JobNotFound):
        messages.warning(request, _("The job had changed in the meantime. Nothing was done."))
    return True


def _refund(request: HttpRequest, shown: JobPage, form: forms.Form, actor: User) -> None:
    amount_micros = form.cleaned_data["amount"] or shown.refundable_micros
    outcome = money_acts.do_or_ask(
        act=money_acts.MoneyAct(
            id=form.cleaned_data["key"] or uuid.uuid4(),
            act=money_acts.REFUND,
            workspace_id=shown.job.workspace_id,
            amount_micros=amount_micros,
            reason=form.cleaned_data["reason"],
            job_id=shown.job.pk,
        ),
        actor=actor,
    )
    amount = money_exact(amount_micros, shown.currency)
    if outcome is Outcome.DONE:
        messages.success(request, _("%(amount)s was given back to the customer.") % {"amount": amount})
    elif outcome is Outcome.ASKED:
        text = _("%(amount)s is above what one operator may do alone: another one has to confirm it.")
        messages.info(request, text % {"amount": amount})
    else:
        messages.warning(request, _("This form was sent before. Nothing was done."))
