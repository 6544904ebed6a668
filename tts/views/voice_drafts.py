"""The page of a voice that is not saved yet: it says a sentence, and is saved or discarded."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User, Workspace
from accounts.selectors.limits import voices_limit
from accounts.tenancy import require_workspace
from billing.selectors.balances import balance_of
from portal.lib.errors import DomainError
from portal.lib.http import client_address
from portal.lib.logging import request_id_var
from tts.audio.findings import checklist, verdict_text
from tts.errors import VoiceNotFound
from tts.forms import DraftTestForm
from tts.languages import first_sentence, language_name
from tts.models import SynthesisJob, Voice
from tts.selectors.jobs import job_of, jobs_of
from tts.selectors.voice_drafts import draft_by, draft_of, former_draft_of
from tts.selectors.voices import voice_count
from tts.services.voice_drafts import discard_draft, kept_until, quote_test, save_draft, speak_test
from tts.states import VoiceState
from tts.text.limits import MAX_TEST_CHARACTERS
from tts.views.cards import report_of, verdict_badge
from tts.views.live import live_context
from tts.views.media import voice_audio_response
from tts.views.player import Player, voice_player
from tts.views.text_faults import text_faults


def test_address(draft_id: uuid.UUID) -> str:
    """The draft's page, at what was spoken last."""
    return f"{reverse('voice_draft', args=[draft_id])}#test"


def draft_notice(workspace: Workspace, user: User) -> dict[str, Any]:
    """What other pages say of the user's draft: that there is one, and until when."""
    draft = draft_by(workspace, user)
    return {"draft": draft, "draft_until": kept_until(draft) if draft else None}


@login_required
@require_safe
def voice_draft(request: HttpRequest, draft_id: uuid.UUID) -> HttpResponse:
    workspace, user = require_workspace(request), cast(User, request.user)
    try:
        draft = draft_of(workspace, user, draft_id)
    except VoiceNotFound:
        # Whoever goes back to it finds what it has become.
        if former_draft_of(workspace, user, draft_id).state != VoiceState.READY:
            raise
        return redirect("voice", voice_id=draft_id)
    return _page(request, workspace, draft)


@login_required
@require_safe
def voice_draft_audio(request: HttpRequest, draft_id: uuid.UUID) -> HttpResponseBase:
    draft = draft_of(require_workspace(request), cast(User, request.user), draft_id)
    return voice_audio_response(request, draft)


@login_required
@require_POST
def voice_draft_price(request: HttpRequest, draft_id: uuid.UUID) -> HttpResponse:
    """What the sentence in the form would cost, as a part of the page. Refusals are an answer too."""
    workspace = require_workspace(request)
    draft = draft_of(workspace, cast(User, request.user), draft_id)
    return render(
        request, "tts/_draft_price.html", _price(request, workspace, draft, request.POST.get("text", ""))
    )


@login_required
@require_POST
def voice_draft_speak(request: HttpRequest, draft_id: uuid.UUID) -> HttpResponse:
    workspace, user = require_workspace(request), cast(User, request.user)
    draft = draft_of(workspace, user, draft_id)
    form = DraftTestForm(request.POST)
    if not form.is_valid():
        return redirect("voice_draft", draft_id=draft_id)
    if "show_price" in request.POST:
        return _page(request, workspace, draft, form=form)
    try:
        speak_test(
            workspace=workspace,
            user=user,
            voice_id=draft_id,
            text=form.cleaned_data["text"],
            token=form.cleaned_data["token"],
            client_address=client_address(request),
            request_id=request_id_var.get(),
        )
    except VoiceNotFound:
        raise
    except DomainError as error:
        # Beside the sentence, which stays as it was typed.
        return _page(request, workspace, draft, form=form, refused=error)
    return redirect(test_address(draft_id))


@login_required
@require_POST
def voice_draft_save(request: HttpRequest, draft_id: uuid.UUID) -> HttpResponse:
    workspace, user = require_workspace(request), cast(User, request.user)
    try:
        save_draft(workspace=workspace, user=user, voice_id=draft_id)
    except VoiceNotFound:
        raise
    except DomainError as error:
        return _page(request, workspace, draft_of(workspace, user, draft_id), unsaved=error)
    return redirect(f"{reverse('voice', args=[draft_id])}?new=1")


@login_required
@require_POST
def voice_draft_discard(request: HttpRequest, draft_id: uuid.UUID) -> HttpResponse:
    discarded = discard_draft(
        workspace=require_workspace(request), user=cast(User, request.user), voice_id=draft_id
    )
    messages.success(request, _("“%(name)s” and its recording are deleted.") % {"name": discarded.name})
    return redirect("voices")


def _price(request: HttpRequest, workspace: Workspace, draft: Voice, text: str) -> dict[str, Any]:
    balance = balance_of(workspace.pk)
    context: dict[str, Any] = {"balance": balance, "quote": None, "refusal": "", "faults": []}
    try:
        priced = quote_test(workspace=workspace, user=cast(User, request.user), voice_id=draft.pk, text=text)
    except DomainError as error:
        return context | {"refusal": error.text(), "faults": text_faults(error, text)}
    return context | {"quote": priced, "is_affordable": priced.held_micros <= balance.available_micros}


def _last_test(workspace: Workspace, draft: Voice) -> SynthesisJob | None:
    """Nothing else speaks with a draft."""
    last = jobs_of(workspace, voice_id=draft.pk).first()
    return job_of(workspace, last.pk) if last else None


def _recording(draft: Voice) -> Player | None:
    player = voice_player(draft, title=_("The recording"))
    address = reverse("voice_draft_audio", args=[draft.pk])
    return replace(player, audio_url=address) if player else None


def _page(
    request: HttpRequest,
    workspace: Workspace,
    draft: Voice,
    *,
    form: DraftTestForm | None = None,
    refused: DomainError | None = None,
    unsaved: DomainError | None = None,
) -> HttpResponse:
    """`refused`: why the sentence was not spoken; `unsaved`: why the voice was not saved."""
    test = _last_test(workspace, draft)
    if form is None:
        ours = (get_language() or "").partition("-")[0]
        text = test.text if test else first_sentence(draft.language, else_in=ours)
        form = DraftTestForm(initial={"text": text, "token": uuid.uuid4()})
    report, limit = report_of(draft), voices_limit(workspace)
    error = refused or unsaved
    context: dict[str, Any] = {
        "draft": draft,
        "draft_until": kept_until(draft),
        "language": language_name(draft.language),
        "badge": verdict_badge(draft),
        "recording": _recording(draft),
        "verdict": verdict_text(report) if report else "",
        "checks": checklist(report) if report else [],
        "form": form,
        "text_limit": MAX_TEST_CHARACTERS,
        "refused": refused,
        "unsaved": unsaved,
        "is_full": voice_count(workspace) >= limit,
        "limit": limit,
        **_price(request, workspace, draft, str(form["text"].value() or "")),
    }
    if test is not None:
        context |= live_context(test, cancel_next=test_address(draft.pk))
    return render(request, "tts/voice_draft.html", context, status=error.status if error else 200)
