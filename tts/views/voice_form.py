"""The form that takes a recording: of a new voice, and of one that there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language

from accounts.consent_statements import current_statement
from portal.lib.errors import DomainError
from tts.audio.findings import checklist
from tts.audio.limits import BEST_CLIP_SECONDS, MAX_CLIP_SECONDS, MAX_UPLOAD_BYTES, MIN_CLIP_SECONDS
from tts.audio.quality import QualityReport
from tts.forms import RecordingForm
from tts.languages import LANGUAGES


def new_recording() -> dict[str, Any]:
    """What the form says at first."""
    language = (get_language() or "").partition("-")[0]
    statement = current_statement(get_language())
    return {"language": language, "statement_locale": statement.locale}


def sent_on(request: HttpRequest, url: str) -> HttpResponse:
    """A redirect that htmx follows as a whole page too."""
    if request.headers.get("HX-Request"):
        response = HttpResponse(status=204)
        response["HX-Redirect"] = url
        return response
    return redirect(url)


def form_page(
    request: HttpRequest,
    template: str,
    form: RecordingForm,
    extra: Mapping[str, Any],
    *,
    error: DomainError | None = None,
    status: int = 200,
) -> HttpResponse:
    """The whole page, or for htmx, whose page still holds the recording, only what was found."""
    report: QualityReport | None = getattr(error, "report", None)
    statement = current_statement(form["statement_locale"].value())
    context = {
        "form": form,
        "error": error,
        "checks": checklist(report) if report else [],
        "statement": statement,
        "asks_spoken_consent": settings.VOICEPOOL["SPOKEN_CONSENT"],
        "readings": LANGUAGES,
        "minimum_ms": round(MIN_CLIP_SECONDS * 1000),
        "maximum_ms": round(MAX_CLIP_SECONDS * 1000),
        "minimum_s": round(MIN_CLIP_SECONDS),
        "maximum_s": round(MAX_CLIP_SECONDS),
        "best_s": BEST_CLIP_SECONDS,
        "upload_limit_bytes": MAX_UPLOAD_BYTES,
        "upload_limit_mib": MAX_UPLOAD_BYTES // (1024 * 1024),
        **extra,
    }
    if request.headers.get("HX-Request"):
        part = render(request, "tts/_voice_findings.html", context, status=status)
        part["X-Part"] = "findings"
        return part
    return render(request, template, context, status=status)
