"""How errors, bodies of bytes and the shared headers are described in the OpenAPI file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from portal.lib.errors import DomainError
from portal.lib.problem import PROBLEM_CONTENT_TYPE

PLACE_IN_A_MESSAGE = re.compile(r"%\((\w+)\)[#0 +.\d-]*[a-z]")


class FieldProblemSerializer(serializers.Serializer[Any]):
    field = serializers.CharField(help_text="The input at fault, with dots between levels.")
    code = serializers.CharField(help_text="Why it was refused; stable.")
    detail = serializers.CharField(help_text="Why it was refused, in the language of Accept-Language.")


class ProblemSerializer(serializers.Serializer[Any]):
    """An error (RFC 9457). Programs decide by `code`, people read `detail`."""

    type = serializers.CharField(help_text="Where this kind of error is explained.")
    title = serializers.CharField(help_text="The code in words.")
    status = serializers.IntegerField(help_text="The HTTP status.")
    code = serializers.CharField(help_text="What happened; stable.")
    detail = serializers.CharField(
        help_text="What happened and what to do, in the language of Accept-Language."
    )
    request_id = serializers.CharField(help_text="Quote this when you write to us; also in X-Request-Id.")
    field = serializers.CharField(required=False, help_text="The input at fault, where it is one.")
    errors = FieldProblemSerializer(  # type: ignore[assignment]  # the stubs know the base class's property
        many=True, required=False, help_text="All inputs at fault."
    )


@dataclass(frozen=True)
class Refusal:
    """One documented error: a DomainError's, or one that the REST framework makes."""

    code: str
    status: int
    text: str


INVALID_INPUT = Refusal(
    "invalid_input", 400, "A field is missing, unknown or not valid; `errors` lists each."
)
MALFORMED_JSON = Refusal("malformed_json", 400, "The body is not one JSON object in UTF-8.")
MALFORMED_FORM = Refusal("malformed_request", 400, "The body is not a multipart form, or has too many parts.")
NOT_UNICODE = Refusal("invalid_unicode", 400, "A text holds half of a surrogate pair, which is no character.")
TWICE = Refusal("duplicate_field", 400, "A field of the JSON object is given twice.")
TOO_LARGE = Refusal("request_too_large", 413, "The body is larger than this endpoint takes; it was not read.")
NOT_A_TYPE = Refusal("unsupported_media_type", 415, "The body's Content-Type is not one that is listed here.")
NOT_FOUND = Refusal("not_found", 404, "There is nothing at this address, or it is another workspace's.")
# What every operation that needs a key may answer.
COMMON = (
    Refusal("not_authenticated", 401, "Send the key: Authorization: Bearer vp_live_…"),
    Refusal("invalid_api_key", 401, "The key is mistyped, unknown, or its maker left the workspace."),
    Refusal("api_key_revoked", 401, "The key was revoked."),
    Refusal("api_key_expired", 401, "The key has expired."),
    Refusal("workspace_suspended", 403, "The operator suspended the workspace."),
    Refusal("rate_limited", 429, "Too many requests in a minute; Retry-After says when to go on."),
    Refusal(
        "too_many_failed_keys", 429, "Too many requests with keys that are not valid came from this address."
    ),
    Refusal("service_unavailable", 503, "A part of the service is away for the moment; try again."),
)
JSON_BODY = (INVALID_INPUT, MALFORMED_JSON, NOT_UNICODE, TWICE, TOO_LARGE, NOT_A_TYPE)


def refusal(error: type[DomainError]) -> Refusal:
    return Refusal(error.code, error.status, PLACE_IN_A_MESSAGE.sub(r"‹\1›", str(error.message)))


def problems(
    *errors: type[DomainError] | Refusal, body: type[ProblemSerializer] = ProblemSerializer
) -> dict[tuple[int, str], OpenApiResponse]:
    """The error responses of an operation: those given and the common ones, by status, each with its codes.

    `body` describes those of status 400, where an operation's problems have further members.
    """
    listed = [error if isinstance(error, Refusal) else refusal(error) for error in errors]
    by_status: dict[int, list[Refusal]] = {}
    for one in [*listed, *COMMON]:
        if one not in by_status.setdefault(one.status, []):
            by_status[one.status].append(one)
    return {
        (status, PROBLEM_CONTENT_TYPE): OpenApiResponse(
            body if status == 400 else ProblemSerializer,
            description="\n".join(f"- `{one.code}`: {one.text}" for one in found),
            # One of each status shows the form; the description has every code.
            examples=[_example(found[0])],
        )
        for status, found in sorted(by_status.items())
    }


def _example(one: Refusal) -> OpenApiExample:
    value = {
        "type": f"/docs/errors#{one.code}",
        "title": one.code.replace("_", " "),
        "status": one.status,
        "code": one.code,
        "detail": one.text,
        "request_id": "3f0c2a9be1d44c07",
    }
    return OpenApiExample(one.code, value=value, response_only=True, status_codes=[str(one.status)])


IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="1 to 200 printable ASCII characters, new for each job. Sent again with the same body, it gives the "
    "job that it made, with `Idempotency-Replayed: true`; with another body, 409.",
)
RANGE = OpenApiParameter(
    "Range",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="One range of bytes, such as `bytes=0-1023`.",
)


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.api.auth.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "vp_live_…", "description": "An API key."}
