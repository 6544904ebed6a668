"""Jobs said again with some of their segments changed."""

from __future__ import annotations

import uuid
from typing import Any, cast

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from accounts.models import User
from accounts.tenancy import require_workspace
from billing.errors import BudgetReached, InsufficientCredit, NoPrice
from portal.lib.api_views import ApiView
from portal.lib.openapi import IDEMPOTENCY_KEY, JSON_BODY, ProblemSerializer, problems
from portal.lib.throttling import SubmitThrottle
from tts.api.quotes import QuoteSerializer, quote_json
from tts.api.representations import JobSerializer
from tts.api.serializers import NewRevisionSerializer, validated
from tts.api.submissions import sender_of, submission_response
from tts.api.texts import AnnotationMistakeSerializer
from tts.errors import (
    AudioGone,
    DailyCharactersReached,
    FreeInstructionNotSupported,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
    JobNotFound,
    JobNotSucceeded,
    JobTooLong,
    ModeNotSupported,
    NotOffered,
    PronunciationVersionUnknown,
    QueueFull,
    RevisionInvalid,
    StorageFull,
    TextBlocked,
    TooManyCharactersPriced,
    VoiceNotFound,
)
from tts.selectors.jobs import jobs_of
from tts.services.revisions import SegmentEdit, quote_revision, revise_job
from tts.services.submit import is_key_used
from tts.text.errors import SpeechTooLong, TextEmpty, TextTooLong, TextTooManyParts
from tts.version_errors import VoiceChanged

REFUSALS = (
    JobNotFound,
    JobNotSucceeded,
    VoiceNotFound,
    AudioGone,
    RevisionInvalid,
    NotOffered,
    TextEmpty,
    TextTooLong,
    TextTooManyParts,
    SpeechTooLong,
    NoPrice,
    TooManyCharactersPriced,
)
EXAMPLES = [
    OpenApiExample(
        "another text for one segment, another seed for a second, a third left out",
        value={
            "segments": [
                {"index": 2, "text": "We open at nine o'clock."},
                {"index": 4, "seed": 11},
                {"index": 7, "text": ""},
            ]
        },
        request_only=True,
    )
]


class SegmentFaultSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    code = serializers.CharField()
    message = serializers.CharField(help_text="In the language of Accept-Language.")
    mistakes = AnnotationMistakeSerializer(many=True, required=False)


class RevisionProblemSerializer(ProblemSerializer):
    """Why a revision is refused; of `revision_invalid` with every segment at fault."""

    segments = SegmentFaultSerializer(many=True, required=False)


class RevisionsView(ApiView):
    def get_throttles(self) -> list[BaseThrottle]:
        return [*super().get_throttles(), SubmitThrottle()]

    @extend_schema(
        operation_id="jobs_revise",
        tags=["jobs"],
        summary="Say some segments again",
        description="Makes a new job of one that succeeded: the segments named here are spoken, all others keep their "
        "sound and cost nothing. The old job stays as it is. With nothing to speak (segments that are only left out), "
        "the new job waits for nobody: it has succeeded at once, or, if it is long, as soon as it is put together.",
        parameters=[IDEMPOTENCY_KEY],
        request=NewRevisionSerializer,
        responses={
            202: OpenApiResponse(
                JobSerializer, description="Taken in, or (Idempotency-Replayed) taken in before."
            ),
            **problems(
                *JSON_BODY,
                *REFUSALS,
                IdempotencyKeyInvalid,
                IdempotencyKeyReused,
                InsufficientCredit,
                BudgetReached,
                ModeNotSupported,
                FreeInstructionNotSupported,
                QueueFull,
                JobTooLong,
                DailyCharactersReached,
                StorageFull,
                TextBlocked,
                PronunciationVersionUnknown,
                VoiceChanged,
                body=RevisionProblemSerializer,
            ),
        },
        examples=EXAMPLES,
    )
    def post(self, request: Request, job_id: uuid.UUID) -> Response:
        sender = sender_of(request)
        edits = _edits(request, job_id, key=sender["idempotency_key"])
        return submission_response(revise_job(job_id=job_id, edits=edits, **sender))


class RevisionQuoteView(ApiView):
    @extend_schema(
        operation_id="jobs_revision_quote",
        tags=["jobs"],
        summary="Quote a revision",
        description="What it would cost to say these segments again, without doing it. Nothing is stored.",
        request=NewRevisionSerializer,
        responses={
            200: QuoteSerializer,
            **problems(*JSON_BODY, *REFUSALS, body=RevisionProblemSerializer),
        },
        examples=EXAMPLES,
    )
    def post(self, request: Request, job_id: uuid.UUID) -> Response:
        priced = quote_revision(
            workspace=require_workspace(request),
            user=cast(User, request.user),
            job_id=job_id,
            edits=_edits(request, job_id),
        )
        return Response(quote_json(priced))


def _edits(request: Request, job_id: uuid.UUID, *, key: str | None = None) -> list[SegmentEdit]:
    """Raises JobNotFound first: nothing else is told of another workspace's job. A request that may be a repeated one
    (`key` made a job before) is read all the same: its answer does not need the old job any more."""
    workspace = require_workspace(request)
    if not jobs_of(workspace).filter(pk=job_id).exists() and not is_key_used(workspace, key):
        raise JobNotFound
    form = validated(NewRevisionSerializer, request.data)
    return [SegmentEdit(**edit) for edit in form["segments"]]
