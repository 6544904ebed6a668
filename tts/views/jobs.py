"""One job: what happened, what it cost, what can be done with it."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.tenancy import require_workspace
from tts.errors import JobAlreadyEnded
from tts.selectors.jobs import job_of
from tts.services.jobs import cancel_job, delete_job
from tts.views.job_page import render_job
from tts.views.live import live_context
from tts.views.revisions import editor_of
from tts.views.voice_drafts import test_address

# Which part of a page asks to be drawn again.
PARTS = {"studio": "tts/_studio_job.html", "draft": "tts/_draft_job.html", "job": "tts/_job_body.html"}


@login_required
@require_safe
def job(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """The page; with ?part=studio, ?part=draft or ?part=job only the live part, as that page shows it."""
    found = job_of(require_workspace(request), job_id)
    part = request.GET.get("part", "")
    if part in ("studio", "draft"):
        address = (
            f"{reverse('studio')}?job={job_id}#job" if part == "studio" else test_address(found.voice_id)
        )
        return render(request, PARTS[part], live_context(found, cancel_next=address))
    extra = {"editor": editor_of(found, request.GET.get("edit", "")), "left": request.GET.get("left", "")}
    return render_job(request, found, extra, template=PARTS.get(part, "tts/job.html"))


@login_required
@require_POST
def job_cancel(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    workspace = require_workspace(request)
    try:
        cancel_job(workspace=workspace, job_id=job_id)
    except JobAlreadyEnded:
        # It was faster than the press of the button: its page says how it ended.
        messages.info(request, _("The job had ended before it could be canceled."))
    return redirect(_next(request, fallback=reverse("job", args=[job_id])))


@login_required
@require_POST
def job_delete(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    delete_job(workspace=require_workspace(request), job_id=job_id)
    messages.success(request, _("The text and the audio are deleted. The receipt stays in the books."))
    return redirect(_next(request, fallback=reverse("history")))


def _next(request: HttpRequest, *, fallback: str) -> str:
    """Where the form says to go on, if that is one of our own pages."""
    address = request.POST.get("next", "")
    allowed = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if allowed else fallback
