"""GET /api/v1/log: what a workspace asked for and what came of it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.tenancy import require_workspace
from portal.lib.api_views import ListView
from portal.lib.openapi import INVALID_INPUT, problems
from portal.lib.pagination import NewestFirst
from portal.lib.strict_fields import StrictChoiceField, StrictDateTimeField, StrictSerializer, read_query
from portal.logs.models import RequestLog
from portal.logs.selectors import People, attempt_line, attempts_of, people_of, requests_of
from tts.models import Attempt
from tts.states import AttemptState, JobClass

KINDS = ["request", "attempt"]


class LogFilterSerializer(StrictSerializer):
    kind = StrictChoiceField(
        choices=KINDS,
        required=False,
        default="request",
        help_text="request: what you asked of the API and of the pages that make something, for 30 days. "
        "attempt: each try of a device at a segment of your jobs.",
    )
    since = StrictDateTimeField(required=False, help_text="Only from this moment on.")
    until = StrictDateTimeField(required=False, help_text="Only before this moment.")


class LogRequestSerializer(serializers.Serializer[Any]):
    method = serializers.CharField()
    route = serializers.CharField(help_text="The pattern of the address, without ids.")
    status = serializers.IntegerField()
    duration_ms = serializers.IntegerField(help_text="Until the answer was complete.")
    code = serializers.CharField(help_text="Of a refusal: the problem’s code; else empty.")


class LogAttemptSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    job_id = serializers.UUIDField()
    job_class = serializers.ChoiceField(choices=JobClass.choices)
    mode = serializers.CharField()
    segment_number = serializers.IntegerField(help_text="Counted from 1.")
    attempt_number = serializers.IntegerField(help_text="Of this segment, counted from 1.")
    characters = serializers.IntegerField(help_text="Of the segment.")
    wait_ms = serializers.IntegerField(
        allow_null=True, help_text="From the submission to the start; null for one that never started."
    )
    gpu_ms = serializers.IntegerField()
    audio_ms = serializers.IntegerField()
    device = serializers.CharField()
    state = serializers.ChoiceField(choices=AttemptState.choices)
    error_code = serializers.CharField(help_text="Why it failed; else empty.")


class LogEntrySerializer(serializers.Serializer[Any]):
    """One line. Of `request` and `attempt` the one that `kind` names is given, the other is null."""

    kind = serializers.ChoiceField(choices=KINDS)
    created_at = serializers.DateTimeField(
        help_text="When the request came, or a device was given the segment."
    )
    user = serializers.CharField(help_text="E-mail address; empty where it is not known any more.")
    api_key_prefix = serializers.CharField(help_text="The key’s first characters; empty for pages.")
    address = serializers.CharField(help_text="IP address of the client; empty where it is not known.")
    request_id = serializers.CharField()
    request = LogRequestSerializer(allow_null=True)
    attempt = LogAttemptSerializer(allow_null=True)


class NewestAttemptsFirst(NewestFirst):
    ordering = ("-bound_at", "-pk")


def request_json(row: RequestLog, people: People) -> dict[str, Any]:
    """A request as LogEntrySerializer describes it."""
    return {
        "kind": "request",
        "created_at": row.created_at,
        "user": people.email(row.user_id),
        "api_key_prefix": people.key_prefix(row.api_key_id),
        "address": row.address or "",
        "request_id": row.request_id,
        "request": {
            name: getattr(row, name) for name in ("method", "route", "status", "duration_ms", "code")
        },
        "attempt": None,
    }


def attempt_json(row: Attempt) -> dict[str, Any]:
    """An attempt as LogEntrySerializer describes it."""
    line = attempt_line(row)
    same = (
        "id",
        "job_id",
        "job_class",
        "mode",
        "segment_number",
        "attempt_number",
        "characters",
        "wait_ms",
        "gpu_ms",
        "audio_ms",
        "state",
        "error_code",
    )
    return {
        "kind": "attempt",
        "created_at": line.bound_at,
        "user": line.user_email,
        "api_key_prefix": line.key_prefix,
        "address": line.address,
        "request_id": line.request_id,
        "request": None,
        "attempt": {**{name: getattr(line, name) for name in same}, "device": line.device_name},
    }


class LogView(ListView):
    @extend_schema(
        operation_id="log_list",
        tags=["account"],
        summary="Read the log",
        description="Your requests, or the attempts at your jobs, newest first. A line stands here about a second "
        "after its answer.",
        parameters=[LogFilterSerializer],
        responses={200: LogEntrySerializer(many=True), **problems(INVALID_INPUT)},
    )
    def get(self, request: Request) -> Response:
        workspace = require_workspace(request)
        filters = read_query(LogFilterSerializer, request.query_params)
        span = {"since": filters.get("since"), "until": filters.get("until")}
        if filters["kind"] == "attempt":
            paginator: NewestFirst = NewestAttemptsFirst()
            attempts = paginator.paginate_queryset(attempts_of(workspace, **span), request, view=self) or []
            return paginator.get_paginated_response([attempt_json(row) for row in attempts])
        paginator = self.pagination_class()
        rows = paginator.paginate_queryset(requests_of(workspace, **span), request, view=self) or []
        people = people_of(rows)
        return paginator.get_paginated_response([request_json(row, people) for row in rows])
