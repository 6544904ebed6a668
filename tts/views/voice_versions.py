"""A voice's recordings on its page: replaced, heard, used again, deleted."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from accounts.tenancy import require_workspace
from portal.lib.errors import DomainError
from portal.lib.http import client_address
from tts.forms import RecordingForm
from tts.models import Voice, VoiceKind, VoiceVersion
from tts.selectors.voice_versions import recorded_in, version_of, versions_of
from tts.services.voice_versions import (
    MAX_VERSIONS,
    clone_of,
    delete_version,
    replace_recording,
    use_version,
)
from tts.version_errors import VoiceVersionCurrent, VoiceVersionNeeded
from tts.views.cards import Badge, verdict_badge
from tts.views.media import voice_audio_response
from tts.views.player import Player, voice_player
from tts.views.voice_form import form_page, new_recording, sent_on


@dataclass(frozen=True)
class VersionRow:
    version: VoiceVersion
    is_current: bool
    badge: Badge | None
    player: Player | None

    @property
    def dialog_id(self) -> str:
        return f"delete-version-{self.version.number}"


def versions_context(voice: Voice) -> dict[str, Any]:
    """What the page of a voice that one may hear says of its versions. A preset has none."""
    if voice.kind == VoiceKind.PRESET:
        return {}
    rows = [_row(voice, version) for version in versions_of(voice)]
    return {"versions": rows, "versions_limit": MAX_VERSIONS, "is_full": len(rows) >= MAX_VERSIONS}


def _row(voice: Voice, version: VoiceVersion) -> VersionRow:
    recorded = recorded_in(voice, version)
    player = voice_player(recorded, title=_("Version %(number)s") % {"number": version.number})
    if player is not None:
        address = reverse("voice_version_audio", args=[voice.pk, version.number])
        player = replace(player, element_id=f"{player.element_id}-{version.number}", audio_url=address)
    return VersionRow(version, version.number == voice.version, verdict_badge(recorded), player)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def voice_replace(request: HttpRequest, voice_id: uuid.UUID) -> HttpResponse:
    workspace, user = require_workspace(request), cast(User, request.user)
    voice = clone_of(workspace, user, voice_id)
    if request.method != "POST":
        return _page(request, voice, RecordingForm(initial={**new_recording(), "language": voice.language}))
    form = RecordingForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, voice, form, status=400)
    data = form.cleaned_data
    try:
        replace_recording(
            workspace=workspace,
            user=user,
            voice_id=voice_id,
            upload=data["clip"],
            language=data["language"],
            transcript=data["transcript"],
            consent=data["consent"],
            locale=data["statement_locale"],
            address=client_address(request),
            spoken_consent=data["consent_clip"],
        )
    except DomainError as error:
        # Shown above the form with the report, if the clip was measured, and at its field; what was typed stays.
        if error.field in form.fields:
            form.add_error(error.field, error.text())
        return _page(request, voice, form, error=error, status=error.status)
    messages.success(
        request, _("The voice has its new recording. Jobs from before still speak with the earlier one.")
    )
    return sent_on(request, reverse("voice", args=[voice_id]))


def _page(
    request: HttpRequest,
    voice: Voice,
    form: RecordingForm,
    *,
    error: DomainError | None = None,
    status: int = 200,
) -> HttpResponse:
    return form_page(request, "tts/voice_replace.html", form, {"voice": voice}, error=error, status=status)


@login_required
@require_POST
def voice_version_use(request: HttpRequest, voice_id: uuid.UUID, number: int) -> HttpResponse:
    workspace, user = require_workspace(request), cast(User, request.user)
    use_version(workspace=workspace, user=user, voice_id=voice_id, number=number)
    messages.success(request, _("The voice speaks with version %(number)s now.") % {"number": number})
    return redirect("voice", voice_id=voice_id)


@login_required
@require_POST
def voice_version_delete(request: HttpRequest, voice_id: uuid.UUID, number: int) -> HttpResponse:
    workspace, user = require_workspace(request), cast(User, request.user)
    try:
        delete_version(workspace=workspace, user=user, voice_id=voice_id, number=number)
    except (VoiceVersionCurrent, VoiceVersionNeeded) as error:
        messages.error(request, error.text())
    else:
        messages.success(request, _("Version %(number)s and its recording are deleted.") % {"number": number})
    return redirect("voice", voice_id=voice_id)


@login_required
@require_safe
def voice_version_audio(request: HttpRequest, voice_id: uuid.UUID, number: int) -> HttpResponseBase:
    voice = clone_of(require_workspace(request), cast(User, request.user), voice_id)
    return voice_audio_response(request, recorded_in(voice, version_of(voice, number)))
