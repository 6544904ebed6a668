"""Quotes: what a text would take and cost, and what is found in it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from accounts.tenancy import require_workspace
from billing.api.serializers import MoneySerializer, money
from billing.errors import NoPrice
from portal.lib.api_views import ApiView
from portal.lib.openapi import JSON_BODY, problems
from tts.api.examples import TEXT_REFUSALS
from tts.api.serializers import NewQuoteSerializer, validated
from tts.api.texts import TextProblemSerializer
from tts.errors import (
    FreeInstructionNotSupported,
    InstructionsConflict,
    InstructionTooLong,
    ModeNotSupported,
    NotOffered,
    PronunciationTooLong,
    PronunciationVersionUnknown,
    TooManyCharactersPriced,
    VoiceNotFound,
)
from tts.services.quotes import Quote
from tts.services.submit import JobRequest, quote_request


class QuotedChapterSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(help_text="Empty where the text begins without one.")
    first_index = serializers.IntegerField(help_text="The segment that it begins with.")


class QuotedSpeakerSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="As the script spells it.")
    voice_id = serializers.UUIDField(
        allow_null=True, help_text="Null: `cast` has none for this speaker, and a job would be refused."
    )
    characters = serializers.IntegerField()
    segment_count = serializers.IntegerField()


class HintSerializer(serializers.Serializer[Any]):
    written = serializers.CharField()
    meant = serializers.CharField(
        help_text="What would be obeyed; which tone it is to have is for you to say."
    )


class QuoteSerializer(serializers.Serializer[Any]):
    characters = serializers.IntegerField()
    segments = serializers.ListField(child=serializers.CharField())
    spoken = serializers.ListField(
        child=serializers.CharField(),
        help_text="What is said for each segment: numbers, dates and signs in words. The price goes by `segments`.",
    )
    chapters = QuotedChapterSerializer(many=True, help_text="Empty where the text has no titles.")
    speakers = QuotedSpeakerSerializer(
        many=True,
        help_text="Those with a name, of a script: what `cast` is to name. Empty for every other text.",
    )
    hints = HintSerializer(
        many=True,
        help_text="What is read as it stands and may have been meant as an annotation: pinyin without its tone.",
    )
    reused_segments = serializers.IntegerField(
        help_text="Of `segments`, those that were spoken before with this seed: they cost nothing."
    )
    reused_characters = serializers.IntegerField(help_text="Of `characters`, those of these segments.")
    estimate_audio_ms = serializers.IntegerField()
    estimate_gpu_ms = serializers.IntegerField(help_text="Of what is to be spoken.")
    estimate = MoneySerializer(help_text="What to expect.")
    held_gpu_ms = serializers.IntegerField()
    held = MoneySerializer(help_text="What would be set aside: the job never costs more.")
    price_version = serializers.IntegerField()
    pronunciation_version = serializers.IntegerField(
        allow_null=True, help_text="Of the workspace's pronunciations; null: none."
    )


def quote_json(quote: Quote) -> dict[str, Any]:
    """The quote as QuoteSerializer describes it."""
    return {
        "characters": quote.characters,
        "segments": quote.segments,
        "spoken": quote.spoken,
        "chapters": [asdict(chapter) for chapter in quote.chapters],
        "speakers": [
            {
                "name": speaker.name,
                "voice_id": speaker.voice.pk if speaker.voice else None,
                "characters": speaker.characters,
                "segment_count": speaker.segment_count,
            }
            for speaker in quote.speakers
        ],
        "hints": [asdict(hint) for hint in quote.hints],
        "reused_segments": len(quote.reused),
        "reused_characters": quote.reused_characters,
        "estimate_audio_ms": quote.estimate_audio_ms,
        "estimate_gpu_ms": quote.estimate_gpu_ms,
        "estimate": money(quote.estimate_micros, quote.currency),
        "held_gpu_ms": quote.held_gpu_ms,
        "held": money(quote.held_micros, quote.currency),
        "price_version": quote.price_version,
        "pronunciation_version": quote.pronunciation_version,
    }


class QuotesView(ApiView):
    @extend_schema(
        operation_id="quotes_create",
        tags=["jobs"],
        summary="Quote a text",
        description="What a job would take and cost, without making it. Nothing is stored.",
        request=NewQuoteSerializer,
        responses={
            200: QuoteSerializer,
            **problems(
                *JSON_BODY,
                *TEXT_REFUSALS,
                VoiceNotFound,
                NotOffered,
                ModeNotSupported,
                FreeInstructionNotSupported,
                InstructionsConflict,
                InstructionTooLong,
                NoPrice,
                PronunciationVersionUnknown,
                PronunciationTooLong,
                TooManyCharactersPriced,
                body=TextProblemSerializer,
            ),
        },
    )
    def post(self, request: Request) -> Response:
        wanted = JobRequest(**validated(NewQuoteSerializer, request.data))
        priced = quote_request(
            workspace=require_workspace(request), user=cast(User, request.user), request=wanted
        )
        return Response(quote_json(priced))
