"""Subtitles and chapters of a job."""

from __future__ import annotations

import uuid
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.tenancy import require_workspace
from portal.lib.api_views import ApiView
from portal.lib.openapi import problems
from tts.errors import FormatUnknown, JobNotFound, SubtitlesNotReady
from tts.selectors.jobs import lone_job_of
from tts.views.subtitles import SUBTITLE_FORMATS, subtitles_response

FORMAT = OpenApiParameter(
    "format", OpenApiTypes.STR, OpenApiParameter.QUERY, enum=list(SUBTITLE_FORMATS), default="vtt"
)
DOWNLOAD = OpenApiParameter(
    "download", OpenApiTypes.STR, OpenApiParameter.QUERY, description="Given: to be saved as a file."
)
SUBTITLES = """What is said when, of a job that has ended with audio: SubRip (srt), WebVTT with a voice span for each
speaker (vtt), or the chapters as WebVTT. The text is as it was written, without annotations."""


class ChapterSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(help_text="Empty where the text begins without one.")
    first_index = serializers.IntegerField(help_text="The segment that it begins with.")
    start_ms = serializers.IntegerField(
        allow_null=True,
        help_text="Where it begins in the audio; null until it has been spoken and the job has ended.",
    )
    end_ms = serializers.IntegerField(
        allow_null=True, help_text="Where the next one begins, or the audio ends."
    )


class JobSubtitlesView(ApiView):
    @extend_schema(
        operation_id="jobs_subtitles",
        tags=["jobs"],
        summary="Get a job's subtitles",
        description=SUBTITLES,
        parameters=[FORMAT, DOWNLOAD],
        responses={
            (200, "text/vtt"): OpenApiResponse(OpenApiTypes.STR, description="WebVTT."),
            (200, "application/x-subrip"): OpenApiResponse(OpenApiTypes.STR, description="SubRip."),
            **problems(JobNotFound, SubtitlesNotReady, FormatUnknown),
        },
    )
    def get(self, request: Request, job_id: uuid.UUID) -> HttpResponseBase:
        job = lone_job_of(require_workspace(request), job_id)
        return subtitles_response(
            job, request.query_params.get("format") or "vtt", download="download" in request.query_params
        )
