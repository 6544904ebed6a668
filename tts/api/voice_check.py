"""A recording, judged before a voice is made of it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, cast

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.tenancy import require_workspace
from portal.lib.api_views import ApiView
from portal.lib.openapi import INVALID_INPUT, MALFORMED_FORM, NOT_A_TYPE, TOO_LARGE, problems
from tts.api.serializers import RecordingSerializer, validated
from tts.api.voice_representations import QualitySerializer
from tts.audio import errors as clips
from tts.audio.report_json import report_as_json
from tts.errors import TooManyVoiceChecks
from tts.services.voice_checks import check_recording


class VoiceCheckView(ApiView):
    parser_classes = [MultiPartParser]
    field_names = MappingProxyType({clips.ClipRejected.field: "file"})

    @property
    def body_limit_bytes(self) -> int:
        limit: int = settings.VOICEPOOL["UPLOAD_BYTES"]
        return limit

    @extend_schema(
        operation_id="voices_check",
        tags=["voices"],
        summary="Check a recording",
        description="The quality report that a voice of this recording would have, with what to do better; a `verdict` "
        "of `rejected` says that no voice would be made. Takes about a second. Nothing is stored and nothing is "
        "charged.",
        request={"multipart/form-data": RecordingSerializer},
        responses={
            200: QualitySerializer,
            **problems(
                INVALID_INPUT,
                MALFORMED_FORM,
                NOT_A_TYPE,
                TOO_LARGE,
                TooManyVoiceChecks,
                clips.ClipEmpty,
                clips.ClipTooLarge,
                *clips.REFUSAL_BY_CODE.values(),
                clips.ClipInspectionUnavailable,
            ),
        },
    )
    def post(self, request: Request) -> Response:
        form = validated(RecordingSerializer, request.data)
        upload = cast("UploadedFile[Any]", form["file"])
        report = check_recording(workspace=require_workspace(request), upload=upload)
        return Response(report_as_json(report))
