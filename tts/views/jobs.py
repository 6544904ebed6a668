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
from tts.selectors.jobs import job_of, receipt_of
from tts.selectors.timeline import chapters_of, has_subtitles
from tts.services.jobs import cancel_job, delete_job, repeat_request
from tts.views.cards import attempt_rows, output_text, text_start
from tts.views.curl import curl_command
from tts.views.live import live_context

# Which part of a page asks to be drawn again.
PARTS = {"studio": "tts/_studio_job.html", "job": "tts/_job_body.html"}


@login_required
@require_safe
def job(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """The page; with ?part=studio or ?part=job only the live part, as that page shows it."""
    found = job_of(require_workspace(request), job_id)
    part = request.GET.get("part", "")
    address = reverse("job", args=[job_id])
    if part == "studio":
        address = f"{reverse('studio')}?job={job_id}#job"
    context = live_context(found, cancel_next=address)
    if part != "studio":
        receipt = receipt_of(found)
        context |= {
            "receipt": receipt,
            "chapters": chapters_of(found),
            "has_subtitles": has_subtitles(found),
            "released_micros": receipt.held_micros - receipt.amount_micros,
            "attempts": attempt_rows(receipt),
            "curl": curl_command(repeat_request(found)),
            "text_start": text_start(found.text),
            "output_text": output_text(found),
        }
    return render(request, PARTS.get(part, "tts/job.html"), context)


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
