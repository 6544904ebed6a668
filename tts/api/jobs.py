"""Jobs: submit, list, follow, hear, cancel, delete."""

from __future__ import annotations

import uuid
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from accounts.tenancy import require_workspace
from billing.errors import BudgetReached, InsufficientCredit, NoPrice
from portal.lib.api_views import ApiView, ListView
from portal.lib.openapi import IDEMPOTENCY_KEY, INVALID_INPUT, JSON_BODY, RANGE, Refusal, problems
from portal.lib.sse import TooManyStreams
from portal.lib.strict_fields import read_query
from portal.lib.throttling import SubmitThrottle
from tts.api.examples import JOB_EXAMPLES, TEXT_REFUSALS
from tts.api.representations import (
    JobDetailSerializer,
    JobSerializer,
    job_detail_json,
    job_json,
)
from tts.api.serializers import JobFilterSerializer, NewJobSerializer, validated
from tts.api.submissions import sender_of, submission_response
from tts.api.texts import TextProblemSerializer
from tts.api.voices import NOT_MODIFIED, NOT_SATISFIABLE
from tts.audio.formats import FORMATS, SAMPLE_RATES_HZ
from tts.errors import (
    AudioBeingMade,
    AudioNotMade,
    AudioNotReady,
    DailyCharactersReached,
    FormatUnknown,
    FreeInstructionNotSupported,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
    InstructionMissing,
    InstructionsConflict,
    InstructionTooLong,
    JobAlreadyEnded,
    JobNotFound,
    JobTooLong,
    ModeNotSupported,
    NotOffered,
    PronunciationTooLong,
    PronunciationVersionUnknown,
    QueueFull,
    SampleRateNotSupported,
    SpeakerWithoutVoice,
    StorageFull,
    TextBlocked,
    TooManyCharactersPriced,
    VoiceNotFound,
)
from tts.selectors.jobs import (
    LISTED_CHARACTERS,
    beginnings_of,
    followed_job_of,
    job_of,
    jobs_of,
    lone_job_of,
    receipt_of,
    with_beginning,
)
from tts.services.fair_share import place_of
from tts.services.jobs import cancel_job, delete_job
from tts.services.live_sound import LIVE_FORMATS
from tts.services.submit import JobRequest, submit_job
from tts.version_errors import VoiceChanged
from tts.views.media import job_audio_response, job_events_response, job_stream_response, wanted_form

SUBMITS = Refusal("rate_limited", 429, "Too many jobs in a minute; Retry-After says when to go on.")
DOWNLOAD = OpenApiParameter(
    "download",
    OpenApiTypes.STR,
    OpenApiParameter.QUERY,
    description="Given: to be saved as a file, not played.",
)
CANCEL_ON_CLOSE = OpenApiParameter(
    "cancel_on_close",
    OpenApiTypes.BOOL,
    OpenApiParameter.QUERY,
    default=False,
    description="Cancel the job when this connection ends before the audio does. What was spoken is charged.",
)
FORMAT = OpenApiParameter(
    "format",
    OpenApiTypes.STR,
    OpenApiParameter.QUERY,
    enum=list(FORMATS),
    description="Another format than the job's `response_format`. It is made when it is first asked for, and free.",
)
LIVE_FORMAT = OpenApiParameter(
    "format",
    OpenApiTypes.STR,
    OpenApiParameter.QUERY,
    enum=LIVE_FORMATS,
    default="wav",
    description="In what the live audio comes; the job's `response_format` is that of its file.",
)
SAMPLE_RATE = OpenApiParameter(
    "sample_rate_hz",
    OpenApiTypes.INT,
    OpenApiParameter.QUERY,
    enum=SAMPLE_RATES_HZ,
    description="Another sample rate than the job's.",
)
AUDIO = """The whole audio, in the job's `response_format` or in another one, mono.

Each file says that it was made by AI, in its container's field `AIGC` (a RIFF chunk, an ID3 frame TXXX, a Vorbis
comment, a key of MP4's metadata). The same JSON is the header `X-AIGC`: bare PCM has no place for it. Where the
workspace's rule asks for it, a tone or words can be heard too. A form that takes long to make is answered by 503
`audio_being_made` with `Retry-After`."""
AUDIO_ANSWERS: dict[tuple[int, str], Any] = {
    (status, audio_type): OpenApiResponse(OpenApiTypes.BINARY, description=text)
    for status, text in ((200, "The whole file."), (206, "The range that was asked for."))
    for audio_type in dict.fromkeys(known.content_type.split(";")[0] for known in FORMATS.values())
}
LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID",
    OpenApiTypes.INT,
    OpenApiParameter.HEADER,
    description="Of the last event seen; browsers send it.",
)
EVENTS = """Server-sent events from the job's present state to its end; the connection then closes.

Each event has an `id`, its kind as `event`, and JSON as `data`: `queued` {position, starts_in_ms},
`running` {segments_done, segment_count}, `segment` {index, part, state}, `first_audio` {at}, and at the end
`succeeded`, `failed` {code, message} or `canceled`, each with {gpu_ms, audio_ms, charged_micros, has_audio}.
Of a job with more than 60 segments, those that still wait are not told. A comment comes every 10 s when nothing else
does."""
LIVE = """The audio while it is made: 24 kHz, mono. It begins when the job does and ends when the job ends. `wav` leaves
its length open (0xFFFFFFFF) and `pcm` is the same without a header, both 16-bit. `mp3` and `opus` (in Ogg) are encoded
as it is spoken and hold the AIGC label at their beginning; whatever the format, the header X-AIGC says it too. Where
the workspace wants a label that is heard, it stands before or behind the speech. The loudness is the engine's own, not
the one that the job's file has."""


class JobsView(ListView):
    def get_throttles(self) -> list[BaseThrottle]:
        throttles = super().get_throttles()
        return [*throttles, SubmitThrottle()] if self.request.method == "POST" else throttles

    @extend_schema(
        operation_id="jobs_list",
        tags=["jobs"],
        summary="List jobs",
        description=f"Your jobs, newest first. Of a text its first {LISTED_CHARACTERS} characters; "
        "`GET /jobs/{id}` has all of it.",
        parameters=[JobFilterSerializer],
        responses={200: JobSerializer(many=True), **problems(INVALID_INPUT)},
    )
    def get(self, request: Request) -> Response:
        filters = read_query(JobFilterSerializer, request.query_params)
        jobs = beginnings_of(jobs_of(require_workspace(request), **filters))
        return self.page_of(request, jobs, lambda job: job_json(with_beginning(job)))

    @extend_schema(
        operation_id="jobs_create",
        tags=["jobs"],
        summary="Speak a text",
        description="Takes the job in and sets its highest price aside; the pool starts on it as soon as it can. "
        "Follow `events_url`, hear it live at `stream_url`, or ask again until `state` is an end.",
        parameters=[IDEMPOTENCY_KEY],
        request=NewJobSerializer,
        responses={
            202: OpenApiResponse(
                JobSerializer, description="Taken in, or (Idempotency-Replayed) taken in before."
            ),
            **problems(
                *JSON_BODY,
                *TEXT_REFUSALS,
                IdempotencyKeyInvalid,
                InsufficientCredit,
                VoiceNotFound,
                ModeNotSupported,
                FreeInstructionNotSupported,
                InstructionMissing,
                InstructionsConflict,
                InstructionTooLong,
                SpeakerWithoutVoice,
                IdempotencyKeyReused,
                QueueFull,
                JobTooLong,
                DailyCharactersReached,
                StorageFull,
                SampleRateNotSupported,
                BudgetReached,
                TextBlocked,
                NotOffered,
                PronunciationVersionUnknown,
                PronunciationTooLong,
                VoiceChanged,
                NoPrice,
                TooManyCharactersPriced,
                body=TextProblemSerializer,
            ),
        },
        examples=JOB_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        form = validated(NewJobSerializer, request.data)
        return submission_response(submit_job(request=JobRequest(**form), **sender_of(request)))


class JobView(ApiView):
    @extend_schema(
        operation_id="jobs_retrieve",
        tags=["jobs"],
        summary="Get a job",
        description="With its segments and their attempts, its place in the queue while it waits, and its receipt.",
        responses={200: JobDetailSerializer, **problems(JobNotFound)},
    )
    def get(self, request: Request, job_id: uuid.UUID) -> Response:
        job = job_of(require_workspace(request), job_id)
        return Response(job_detail_json(job, place=place_of(job), receipt=receipt_of(job)))

    @extend_schema(
        operation_id="jobs_delete",
        tags=["jobs"],
        summary="Delete a job",
        description="Text and audio go for good; one that waits or runs is canceled first. The receipt's figures "
        "are kept.",
        responses={204: None, **problems(JobNotFound)},
    )
    def delete(self, request: Request, job_id: uuid.UUID) -> Response:
        delete_job(workspace=require_workspace(request), job_id=job_id)
        return Response(status=204)


class JobCancelView(ApiView):
    @extend_schema(
        operation_id="jobs_cancel",
        tags=["jobs"],
        summary="Cancel a job",
        description="What waits is dropped; what is being spoken stops within a chunk and is charged until then.",
        request=None,
        responses={200: JobSerializer, **problems(JobNotFound, JobAlreadyEnded)},
    )
    def post(self, request: Request, job_id: uuid.UUID) -> Response:
        return Response(job_json(cancel_job(workspace=require_workspace(request), job_id=job_id)))


class JobAudioView(ApiView):
    @extend_schema(
        operation_id="jobs_audio",
        tags=["jobs"],
        summary="Get a job's audio",
        description=AUDIO,
        parameters=[RANGE, DOWNLOAD, FORMAT, SAMPLE_RATE],
        responses={
            **AUDIO_ANSWERS,
            **NOT_MODIFIED,
            **NOT_SATISFIABLE,
            **problems(
                JobNotFound,
                AudioNotReady,
                FormatUnknown,
                SampleRateNotSupported,
                AudioBeingMade,
                AudioNotMade,
            ),
        },
    )
    def get(self, request: Request, job_id: uuid.UUID) -> HttpResponseBase:
        job = lone_job_of(require_workspace(request), job_id)
        form = wanted_form(job, request.query_params)
        return job_audio_response(request._request, job, form, download="download" in request.query_params)


class JobStreamView(ApiView):
    @extend_schema(
        operation_id="jobs_stream",
        tags=["jobs"],
        summary="Hear a job while it is made",
        description=LIVE,
        parameters=[CANCEL_ON_CLOSE, LIVE_FORMAT],
        responses={
            **{
                (200, FORMATS[code].content_type.split(";")[0]): OpenApiResponse(
                    OpenApiTypes.BINARY, description="Chunks as they are made."
                )
                for code in LIVE_FORMATS
            },
            **problems(JobNotFound, FormatUnknown, AudioNotReady, TooManyStreams),
        },
    )
    def get(self, request: Request, job_id: uuid.UUID) -> HttpResponseBase:
        cancel_on_close = request.query_params.get("cancel_on_close", "").lower() in ("1", "true")
        job = followed_job_of(require_workspace(request), job_id)
        return job_stream_response(
            request._request,
            job,
            format_code=request.query_params.get("format"),
            cancel_on_close=cancel_on_close,
        )


class JobEventsView(ApiView):
    @extend_schema(
        operation_id="jobs_events",
        tags=["jobs"],
        summary="Follow a job",
        description=EVENTS,
        parameters=[LAST_EVENT_ID],
        responses={
            (200, "text/event-stream"): OpenApiResponse(
                OpenApiTypes.STR, description="Events until the job ends."
            ),
            **problems(JobNotFound, TooManyStreams),
        },
    )
    def get(self, request: Request, job_id: uuid.UUID) -> HttpResponseBase:
        return job_events_response(request._request, followed_job_of(require_workspace(request), job_id))
