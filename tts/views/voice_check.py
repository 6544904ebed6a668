"""The report on a recording while the New voice page is still being filled in."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from accounts.tenancy import require_workspace
from portal.lib.errors import DomainError
from tts.audio.errors import ClipEmpty
from tts.audio.findings import checklist, verdict_text
from tts.services.voice_checks import check_recording


@login_required
@require_POST
def voice_check(request: HttpRequest) -> HttpResponse:
    """A part of the page: the checklist of the recording in the field `clip`, or why there is none."""
    workspace = require_workspace(request)
    try:
        upload = request.FILES.get("clip")
        if not isinstance(upload, UploadedFile):
            raise ClipEmpty
        report = check_recording(workspace=workspace, upload=upload)
    except DomainError as error:
        answer = render(request, "tts/_voice_check.html", {"error": error}, status=error.status)
    else:
        context = {
            "verdict": report.verdict.value,
            "verdict_text": verdict_text(report),
            "checks": checklist(report),
        }
        answer = render(request, "tts/_voice_check.html", context)
    answer["X-Part"] = "check"
    return answer
