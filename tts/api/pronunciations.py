"""A workspace's pronunciations: read and replaced as a whole, under their version."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final, cast

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from accounts.tenancy import require_workspace
from portal.lib.api_views import ApiView
from portal.lib.openapi import JSON_BODY, ProblemSerializer, problems
from portal.lib.strict_fields import RawTextField, StrictSerializer
from tts.api.serializers import validated
from tts.errors import (
    IfMatchRequired,
    PronunciationsChanged,
    PronunciationsFull,
    PronunciationVersionUnknown,
)
from tts.models import PronunciationVersion
from tts.selectors.pronunciations import entries_of, newest_version, version_list, version_of
from tts.services.pronunciations import save_pronunciations
from tts.text.annotations import Problem
from tts.text.pronunciation import (
    MAX_ENTRIES,
    MAX_REPLACEMENT_CHARACTERS,
    MAX_WORD_CHARACTERS,
    Entry,
    Fault,
)
from tts.text.pronunciation_errors import PronunciationInvalid

_ETAG: Final = re.compile(r'\s*(?:W/)?"?(\d{1,9}|\*)"?\s*')
IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    required=True,
    description='The ETag of what was changed; "0" where there was nothing, * to replace whatever is there.',
)
ETAG = OpenApiParameter(
    "ETag", OpenApiTypes.STR, OpenApiParameter.HEADER, response=[200], description="The version, in quotes."
)
RULE = (
    "Of words that begin at one place the longest is taken. Latin words are found as whole words, whatever their "
    "case, unless they are written in capitals only; Chinese ones anywhere. What is said may hold annotations. Price "
    "and limits go by the text as it is written."
)


class EntrySerializer(StrictSerializer):
    word = RawTextField(help_text=f"At most {MAX_WORD_CHARACTERS} characters.")
    replacement = RawTextField(
        help_text=f"What is said for it: text, with annotations but no tags; at most {MAX_REPLACEMENT_CHARACTERS} "
        "characters."
    )


class NewPronunciationsSerializer(StrictSerializer):
    entries = EntrySerializer(many=True, help_text=f"All of them, at most {MAX_ENTRIES}.")


class PronunciationEntrySerializer(serializers.Serializer[Any]):
    word = serializers.CharField()
    replacement = serializers.CharField()


class PronunciationsSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(help_text="0: nothing was saved yet.")
    created_at = serializers.DateTimeField(allow_null=True)
    entries = PronunciationEntrySerializer(many=True)


class PronunciationVersionSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(
        help_text="The address of who saved it; empty where the account is gone."
    )
    entry_count = serializers.IntegerField()


class PronunciationVersionsSerializer(serializers.Serializer[Any]):
    versions = PronunciationVersionSerializer(many=True)


class EntryMistakeSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField(help_text="Of the entry, from 0.")
    side = serializers.ChoiceField(choices=["word", "replacement"])
    problem = serializers.ChoiceField(
        choices=sorted({fault.value for fault in Fault} | {problem.value for problem in Problem})
    )
    start = serializers.IntegerField(help_text="The first character at fault, from 0.")
    end = serializers.IntegerField(help_text="The first character after it.")
    message = serializers.CharField()
    suggestion = serializers.CharField(help_text="What was probably meant; empty: nothing is near.")


class PronunciationProblemSerializer(ProblemSerializer):
    """Why entries are refused; with the first mistake of each."""

    mistakes = EntryMistakeSerializer(many=True, required=False)


class PronunciationsView(ApiView):
    @extend_schema(
        operation_id="pronunciations_retrieve",
        tags=["pronunciations"],
        summary="Get the pronunciations",
        description=f"The newest version. {RULE}",
        parameters=[ETAG],
        responses={200: PronunciationsSerializer, **problems()},
    )
    def get(self, request: Request) -> Response:
        return _answer(newest_version(require_workspace(request)))

    @extend_schema(
        operation_id="pronunciations_replace",
        tags=["pronunciations"],
        summary="Replace the pronunciations",
        description=f"Makes a new version of all entries; jobs from now on are spoken by it. {RULE}",
        parameters=[IF_MATCH, ETAG],
        request=NewPronunciationsSerializer,
        responses={
            200: PronunciationsSerializer,
            **problems(
                *JSON_BODY,
                PronunciationInvalid,
                PronunciationsFull,
                PronunciationsChanged,
                IfMatchRequired,
                body=PronunciationProblemSerializer,
            ),
        },
    )
    def put(self, request: Request) -> Response:
        workspace = require_workspace(request)
        expected = _expected(request)
        form = validated(NewPronunciationsSerializer, request.data)
        version = save_pronunciations(
            workspace=workspace,
            user=cast(User, request.user),
            entries=[Entry(entry["word"], entry["replacement"]) for entry in form["entries"]],
            expected_number=expected,
        )
        return _answer(version)


class PronunciationVersionsView(ApiView):
    @extend_schema(
        operation_id="pronunciation_versions_list",
        tags=["pronunciations"],
        summary="List the versions",
        description="Those that are kept, the newest first: the last 100, and all that a job was spoken by.",
        responses={200: PronunciationVersionsSerializer, **problems()},
    )
    def get(self, request: Request) -> Response:
        columns = ("number", "created_at", "created_by__email", "entry_count")
        versions = version_list(require_workspace(request)).values_list(*columns)
        return Response({"versions": [_version_json(*version) for version in versions]})


class PronunciationVersionView(ApiView):
    @extend_schema(
        operation_id="pronunciation_versions_retrieve",
        tags=["pronunciations"],
        summary="Get a version",
        parameters=[ETAG],
        responses={200: PronunciationsSerializer, **problems(PronunciationVersionUnknown)},
    )
    def get(self, request: Request, number: int) -> Response:
        return _answer(version_of(require_workspace(request), number))


def _expected(request: Request) -> int | None:
    """The version that If-Match names, None for *. Raises IfMatchRequired, PronunciationsChanged."""
    given = request.headers.get("If-Match", "")
    if not given.strip():
        raise IfMatchRequired
    tag = _ETAG.fullmatch(given)
    if tag is None:
        raise PronunciationsChanged
    return None if tag[1] == "*" else int(tag[1])


def _answer(version: PronunciationVersion | None) -> Response:
    number = version.number if version else 0
    body = {
        "version": number,
        "created_at": version.created_at if version else None,
        "entries": [vars(entry) for entry in entries_of(version)],
    }
    return Response(body, headers={"ETag": f'"{number}"'})


def _version_json(
    number: int, created_at: datetime, created_by: str | None, entry_count: int
) -> dict[str, Any]:
    return {
        "version": number,
        "created_at": created_at,
        "created_by": created_by or "",
        "entry_count": entry_count,
    }
