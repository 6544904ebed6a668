"""The recordings of a cloned voice: another one, an earlier one again, one less."""

from __future__ import annotations

import uuid
from types import MappingProxyType
from typing import Any, cast

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http.response import HttpResponseBase
from django.utils.translation import get_language
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from accounts.tenancy import require_workspace
from portal.lib.api_views import ApiView
from portal.lib.http import client_address
from portal.lib.openapi import INVALID_INPUT, MALFORMED_FORM, NOT_A_TYPE, RANGE, TOO_LARGE, problems
from tts.api.serializers import NewVersionSerializer, validated
from tts.api.voice_representations import (
    ClipProblemSerializer,
    VoiceSerializer,
    VoiceVersionSerializer,
    VoiceVersionsSerializer,
    version_json,
    voice_json,
)
from tts.api.voices import CLIP_REFUSALS, NOT_MODIFIED, NOT_SATISFIABLE, WAV_ANSWERS
from tts.audio.errors import ClipRejected
from tts.errors import (
    ConsentRequired,
    PresetVoiceFixed,
    SpokenConsentMissing,
    SpokenConsentUnusable,
    StorageFull,
    VoiceNotFound,
)
from tts.selectors.voice_versions import recorded_in, version_of, versions_of
from tts.services.voice_versions import (
    MAX_VERSIONS,
    clone_of,
    delete_version,
    replace_recording,
    use_version,
)
from tts.version_errors import (
    TooManyVoiceVersions,
    VoiceVersionCurrent,
    VoiceVersionNeeded,
    VoiceVersionNotFound,
)
from tts.views.media import voice_audio_response

UNKNOWN = (VoiceNotFound, PresetVoiceFixed, VoiceVersionNotFound)


class VoiceVersionsView(ApiView):
    # An upload is a form; nothing else is made here.
    parser_classes = [MultiPartParser]
    field_names = MappingProxyType({ClipRejected.field: "file", SpokenConsentMissing.field: "consent_file"})

    @property
    def body_limit_bytes(self) -> int:
        limit: int = settings.VOICEPOOL["UPLOAD_BYTES"]
        return limit

    @extend_schema(
        operation_id="voice_versions_list",
        tags=["voices"],
        summary="List a voice's recordings",
        description=f"Newest first; at most {MAX_VERSIONS}. For whoever may speak with the voice.",
        responses={200: VoiceVersionsSerializer, **problems(VoiceNotFound, PresetVoiceFixed)},
    )
    def get(self, request: Request, voice_id: uuid.UUID) -> Response:
        voice = clone_of(require_workspace(request), cast(User, request.user), voice_id)
        return Response({"versions": [version_json(voice, version) for version in versions_of(voice)]})

    @extend_schema(
        operation_id="voice_versions_create",
        tags=["voices"],
        summary="Replace a voice's recording",
        description="The voice keeps its id, name and history, and speaks with this recording from now on; jobs "
        "that were submitted before speak with the one that they were quoted with. Judged and consented to like a new "
        "voice.",
        request={"multipart/form-data": NewVersionSerializer},
        responses={
            201: VoiceSerializer,
            **problems(
                INVALID_INPUT,
                MALFORMED_FORM,
                NOT_A_TYPE,
                TOO_LARGE,
                VoiceNotFound,
                PresetVoiceFixed,
                TooManyVoiceVersions,
                StorageFull,
                ConsentRequired,
                SpokenConsentMissing,
                SpokenConsentUnusable,
                *CLIP_REFUSALS,
                body=ClipProblemSerializer,
            ),
        },
    )
    def post(self, request: Request, voice_id: uuid.UUID) -> Response:
        workspace, user = require_workspace(request), cast(User, request.user)
        clone_of(workspace, user, voice_id)
        form = validated(NewVersionSerializer, request.data)
        voice = replace_recording(
            workspace=workspace,
            user=user,
            voice_id=voice_id,
            upload=cast("UploadedFile[Any]", form["file"]),
            language=form["language"],
            transcript=form["transcript"],
            consent=form["consent"],
            locale=get_language() or "",
            address=client_address(request._request),
            spoken_consent=form.get("consent_file"),
        )
        address = f"/api/v1/voices/{voice.pk}"
        return Response(voice_json(voice, user), status=201, headers={"Location": address})


class VoiceVersionView(ApiView):
    @extend_schema(
        operation_id="voice_versions_retrieve",
        tags=["voices"],
        summary="Get a recording",
        responses={200: VoiceVersionSerializer, **problems(*UNKNOWN)},
    )
    def get(self, request: Request, voice_id: uuid.UUID, number: int) -> Response:
        voice = clone_of(require_workspace(request), cast(User, request.user), voice_id)
        return Response(version_json(voice, version_of(voice, number)))

    @extend_schema(
        operation_id="voice_versions_delete",
        tags=["voices"],
        summary="Delete an earlier recording",
        description="It goes for good, with what was computed from it; its number is not given again. Jobs that it "
        "spoke keep their audio. The one that the voice speaks with stays, and so does one that waiting jobs need.",
        responses={204: None, **problems(*UNKNOWN, VoiceVersionCurrent, VoiceVersionNeeded)},
    )
    def delete(self, request: Request, voice_id: uuid.UUID, number: int) -> Response:
        user = cast(User, request.user)
        delete_version(workspace=require_workspace(request), user=user, voice_id=voice_id, number=number)
        return Response(status=204)


class VoiceVersionUseView(ApiView):
    @extend_schema(
        operation_id="voice_versions_use",
        tags=["voices"],
        summary="Use an earlier recording again",
        description="The voice speaks with it from now on. Nothing happens where it does already.",
        request=None,
        responses={200: VoiceSerializer, **problems(*UNKNOWN)},
    )
    def post(self, request: Request, voice_id: uuid.UUID, number: int) -> Response:
        workspace, user = require_workspace(request), cast(User, request.user)
        voice = use_version(workspace=workspace, user=user, voice_id=voice_id, number=number)
        return Response(voice_json(voice, user))


class VoiceVersionAudioView(ApiView):
    @extend_schema(
        operation_id="voice_versions_audio",
        tags=["voices"],
        summary="Hear a recording",
        description="As it is used: 24 kHz mono WAV.",
        parameters=[RANGE],
        responses={**WAV_ANSWERS, **NOT_MODIFIED, **NOT_SATISFIABLE, **problems(*UNKNOWN)},
    )
    def get(self, request: Request, voice_id: uuid.UUID, number: int) -> HttpResponseBase:
        voice = clone_of(require_workspace(request), cast(User, request.user), voice_id)
        return voice_audio_response(request._request, recorded_in(voice, version_of(voice, number)))
