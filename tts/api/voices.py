"""Voices: clone, list, rename, delete, hear."""

from __future__ import annotations

import uuid
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http.response import HttpResponseBase
from django.utils.translation import get_language
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from accounts.tenancy import require_workspace
from portal.lib.api_views import ApiView, ListView
from portal.lib.http import client_address
from portal.lib.openapi import (
    INVALID_INPUT,
    JSON_BODY,
    MALFORMED_FORM,
    NOT_A_TYPE,
    RANGE,
    TOO_LARGE,
    problems,
)
from portal.lib.strict_fields import read_query
from tts.api.serializers import ChangedVoiceSerializer, NewVoiceSerializer, VoiceFilterSerializer, validated
from tts.api.voice_representations import ClipProblemSerializer, VoiceSerializer, voice_json
from tts.audio import errors as clips
from tts.errors import (
    ConsentRequired,
    NameInvalid,
    PresetVoiceFixed,
    SpokenConsentMissing,
    SpokenConsentUnusable,
    TooManyVoices,
    VoiceNotFound,
    VoiceNotYours,
)
from tts.models import Voice
from tts.selectors.voices import known_voice_of, usable_voices, voice_of
from tts.services.voices import change_voice, create_voice, delete_voice
from tts.views.media import voice_audio_response

CLIP_REFUSALS = (
    clips.ClipEmpty,
    clips.ClipTooLarge,
    clips.ClipQualityRejected,
    *clips.REFUSAL_BY_CODE.values(),
    clips.ClipInspectionUnavailable,
)
WAV_ANSWERS: dict[tuple[int, str], Any] = {
    (200, "audio/wav"): OpenApiResponse(OpenApiTypes.BINARY, description="The whole file."),
    (206, "audio/wav"): OpenApiResponse(OpenApiTypes.BINARY, description="The range that was asked for."),
}
NOT_MODIFIED = {304: OpenApiResponse(description="If-None-Match names the file as it is.")}
NOT_SATISFIABLE = {
    416: OpenApiResponse(description="The range begins behind the end; Content-Range says where that is.")
}


class VoicesView(ListView):
    # An upload is a form; nothing else is made here.
    parser_classes = [MultiPartParser]
    field_names = MappingProxyType(
        {clips.ClipRejected.field: "file", SpokenConsentMissing.field: "consent_file"}
    )

    @property
    def body_limit_bytes(self) -> int:
        limit: int = settings.VOICEPOOL["UPLOAD_BYTES"]
        return limit

    @extend_schema(
        operation_id="voices_list",
        tags=["voices"],
        summary="List voices",
        description="The cloned voices that you may use and the preset ones, newest first. A key stands for the member "
        "who made it: what another member keeps private is not among them.",
        parameters=[VoiceFilterSerializer],
        responses={200: VoiceSerializer(many=True), **problems(INVALID_INPUT)},
    )
    def get(self, request: Request) -> Response:
        filters = read_query(VoiceFilterSerializer, request.query_params)
        user = cast(User, request.user)
        voices = usable_voices(require_workspace(request), user).select_related("consent__user")
        return self.page_of(request, voices.filter(**filters), partial(voice_json, reader=user))

    @extend_schema(
        operation_id="voices_create",
        tags=["voices"],
        summary="Clone a voice",
        description="Judges the recording first: a clip that is refused answers with the reason and, where it was "
        "measured, with its quality report in `quality`. Takes about a second. The upload itself is not kept.",
        request={"multipart/form-data": NewVoiceSerializer},
        responses={
            201: VoiceSerializer,
            **problems(
                INVALID_INPUT,
                MALFORMED_FORM,
                NOT_A_TYPE,
                TOO_LARGE,
                ConsentRequired,
                SpokenConsentMissing,
                SpokenConsentUnusable,
                NameInvalid,
                TooManyVoices,
                *CLIP_REFUSALS,
                body=ClipProblemSerializer,
            ),
        },
    )
    def post(self, request: Request) -> Response:
        form = validated(NewVoiceSerializer, request.data)
        voice = create_voice(
            workspace=require_workspace(request),
            user=cast(User, request.user),
            upload=cast("UploadedFile[Any]", form["file"]),
            name=form["name"],
            language=form["language"],
            transcript=form["transcript"],
            consent=form["consent"],
            locale=get_language() or "",
            address=client_address(request._request),
            spoken_consent=form.get("consent_file"),
            shared=form["shared"],
        )
        return Response(
            voice_json(voice, cast(User, request.user)), status=201, headers={"Location": _address_of(voice)}
        )


class VoiceView(ApiView):
    @extend_schema(
        operation_id="voices_retrieve",
        tags=["voices"],
        summary="Get a voice",
        responses={200: VoiceSerializer, **problems(VoiceNotFound)},
    )
    def get(self, request: Request, voice_id: uuid.UUID) -> Response:
        user = cast(User, request.user)
        return Response(voice_json(known_voice_of(require_workspace(request), user, voice_id), user))

    @extend_schema(
        operation_id="voices_change",
        tags=["voices"],
        summary="Rename or share a voice",
        description="Another `name`, or with `shared` who may use it: every member, or only who made it. That is for "
        "who made it and for owners and administrators to say. Jobs that wait go on.",
        request=ChangedVoiceSerializer,
        responses={
            200: VoiceSerializer,
            **problems(*JSON_BODY, VoiceNotFound, PresetVoiceFixed, NameInvalid, VoiceNotYours),
        },
        examples=[
            OpenApiExample("another name", value={"name": "Narrator"}, request_only=True),
            OpenApiExample("only for who made it", value={"shared": False}, request_only=True),
        ],
    )
    def patch(self, request: Request, voice_id: uuid.UUID) -> Response:
        workspace, user = require_workspace(request), cast(User, request.user)
        form = validated(ChangedVoiceSerializer, request.data)
        return Response(
            voice_json(change_voice(workspace=workspace, user=user, voice_id=voice_id, **form), user)
        )

    @extend_schema(
        operation_id="voices_delete",
        tags=["voices"],
        summary="Delete a voice",
        description="The recording and what was computed from it go for good. Jobs that it spoke keep their audio; the "
        "record of consent is kept.",
        responses={204: None, **problems(VoiceNotFound, PresetVoiceFixed)},
    )
    def delete(self, request: Request, voice_id: uuid.UUID) -> Response:
        delete_voice(workspace=require_workspace(request), user=cast(User, request.user), voice_id=voice_id)
        return Response(status=204)


class VoiceAudioView(ApiView):
    @extend_schema(
        operation_id="voices_audio",
        tags=["voices"],
        summary="Hear a voice",
        description="The recording as it is used (24 kHz mono WAV), or a preset voice's sample.",
        parameters=[RANGE],
        responses={**WAV_ANSWERS, **NOT_MODIFIED, **NOT_SATISFIABLE, **problems(VoiceNotFound)},
    )
    def get(self, request: Request, voice_id: uuid.UUID) -> HttpResponseBase:
        voice = voice_of(require_workspace(request), cast(User, request.user), voice_id)
        return voice_audio_response(request._request, voice)


def _address_of(voice: Voice) -> str:
    return f"/api/v1/voices/{voice.pk}"
