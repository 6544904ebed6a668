"""The voices of a workspace: the library, a new voice, one voice."""

from __future__ import annotations

import uuid
from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User, Workspace
from accounts.selectors.limits import voices_limit
from accounts.tenancy import require_workspace
from portal.lib.errors import DomainError
from portal.lib.http import client_address
from tts.audio.findings import checklist, verdict_text
from tts.audio.quality import Verdict
from tts.forms import RenameForm, SharingForm, VoiceForm
from tts.languages import language_name
from tts.models import Voice, VoiceKind
from tts.selectors.jobs import beginnings_of, jobs_of, with_beginning
from tts.selectors.voices import (
    known_voice_of,
    may_arrange,
    may_use,
    preset_voices,
    private_voices_of_others,
    voice_count,
    voices_of,
)
from tts.services.voices import change_voice, create_voice, delete_voice
from tts.states import VoiceState
from tts.views.cards import job_rows, report_of, voice_card, voice_cards, voice_name
from tts.views.player import voice_player
from tts.views.voice_drafts import draft_notice
from tts.views.voice_form import form_page, new_recording, sent_on
from tts.views.voice_versions import versions_context

RECENT_JOBS = 5


@login_required
@require_safe
def voices(request: HttpRequest) -> HttpResponse:
    workspace, user = require_workspace(request), cast(User, request.user)
    context = {
        "own": voice_cards(voices_of(workspace, user)),
        "presets": voice_cards(preset_voices()),
        "private": private_voices_of_others(workspace, user),
        "kept": voice_count(workspace),
        "limit": voices_limit(workspace),
        **draft_notice(workspace, user),
    }
    return render(request, "tts/voices.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def voice_new(request: HttpRequest) -> HttpResponse:
    workspace = require_workspace(request)
    if request.method != "POST":
        return _new_page(request, VoiceForm(initial=new_recording()))
    form = VoiceForm(request.POST, request.FILES)
    if not form.is_valid():
        return _new_page(request, form, status=400)
    try:
        voice = _create(request, workspace, form)
    except DomainError as error:
        # Shown above the form with the report, if the clip was measured, and at its field; what was typed stays.
        if error.field in form.fields:
            form.add_error(error.field, error.text())
        return _new_page(request, form, error=error, status=error.status)
    if voice.state == VoiceState.DRAFT:
        return sent_on(request, reverse("voice_draft", args=[voice.pk]))
    return sent_on(request, f"{reverse('voice', args=[voice.pk])}?new=1")


def _create(request: HttpRequest, workspace: Workspace, form: VoiceForm) -> Voice:
    data = form.cleaned_data
    return create_voice(
        workspace=workspace,
        user=cast(User, request.user),
        upload=data["clip"],
        name=data["name"],
        language=data["language"],
        transcript=data["transcript"],
        consent=data["consent"],
        locale=data["statement_locale"],
        address=client_address(request),
        spoken_consent=data["consent_clip"],
        shared=data["shared"] != "false",
        as_draft="listen" in request.POST,
    )


def _new_page(
    request: HttpRequest, form: VoiceForm, *, error: DomainError | None = None, status: int = 200
) -> HttpResponse:
    extra = draft_notice(require_workspace(request), cast(User, request.user))
    return form_page(request, "tts/voice_new.html", form, extra, error=error, status=status)


@login_required
@require_safe
def voice(request: HttpRequest, voice_id: uuid.UUID) -> HttpResponse:
    workspace = require_workspace(request)
    found = known_voice_of(workspace, cast(User, request.user), voice_id)
    return _voice_page(request, workspace, found, RenameForm(initial={"name": found.name}))


@login_required
@require_POST
def voice_rename(request: HttpRequest, voice_id: uuid.UUID) -> HttpResponse:
    workspace = require_workspace(request)
    found = known_voice_of(workspace, cast(User, request.user), voice_id)
    form = RenameForm(request.POST)
    if not form.is_valid():
        return _voice_page(request, workspace, found, form, status=400)
    try:
        change_voice(
            workspace=workspace,
            user=cast(User, request.user),
            voice_id=voice_id,
            name=form.cleaned_data["name"],
        )
    except DomainError as error:
        if error.field != "name":
            raise
        form.add_error("name", error.text())
        return _voice_page(request, workspace, found, form, status=error.status)
    messages.success(request, _("The voice has its new name."))
    return redirect("voice", voice_id=voice_id)


@login_required
@require_POST
def voice_share(request: HttpRequest, voice_id: uuid.UUID) -> HttpResponse:
    """Set who may use the voice: `shared` is "true" (the workspace) or "false" (who made it)."""
    workspace, user = require_workspace(request), cast(User, request.user)
    known_voice_of(workspace, user, voice_id)
    form = SharingForm(request.POST)
    if form.is_valid():
        shared = form.cleaned_data["shared"] == "true"
        change_voice(workspace=workspace, user=user, voice_id=voice_id, shared=shared)
        messages.success(
            request,
            _("Everybody in the workspace may use the voice now.")
            if shared
            else _("Only who made it may use the voice now. Jobs that wait go on."),
        )
    return redirect("voice", voice_id=voice_id)


@login_required
@require_POST
def voice_delete(request: HttpRequest, voice_id: uuid.UUID) -> HttpResponse:
    workspace, user = require_workspace(request), cast(User, request.user)
    name = known_voice_of(workspace, user, voice_id).name
    delete_voice(workspace=workspace, user=user, voice_id=voice_id)
    messages.success(request, _("“%(name)s” and its recording are deleted.") % {"name": name})
    return redirect("voices")


def _voice_page(
    request: HttpRequest, workspace: Workspace, found: Voice, form: RenameForm, *, status: int = 200
) -> HttpResponse:
    name, user = voice_name(found), cast(User, request.user)
    usable = may_use(found, user)
    report = report_of(found) if usable else None
    jobs = jobs_of(workspace, voice_id=found.pk)
    context = {
        "voice": found,
        "card": voice_card(found),
        "name": name,
        "language": language_name(found.language),
        "is_preset": found.kind == VoiceKind.PRESET,
        "is_usable": usable,
        "may_share": may_arrange(workspace, user, found),
        "is_mine": found.created_by_id == user.pk,
        "player": voice_player(found, title=name) if usable else None,
        "report": report,
        "verdict": verdict_text(report) if report else "",
        "has_warnings": report is not None and report.verdict is Verdict.WARNINGS,
        "checks": checklist(report) if report else [],
        "is_new": "new" in request.GET,
        **(versions_context(found) if usable else {}),
        "form": form,
        "job_count": jobs.count(),
        "recent_jobs": job_rows(map(with_beginning, beginnings_of(jobs)[:RECENT_JOBS])),
    }
    return render(request, "tts/voice.html", context, status=status)
