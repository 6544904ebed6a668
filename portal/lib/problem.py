"""Errors as HTTP: JSON problem details (RFC 9457) for the API, a page for people.

Every process imports this, so the REST framework, which takes long to import, is left to portal.lib.api_problem.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _

from portal.lib.errors import DomainError
from portal.lib.logging import request_id_var

logger = logging.getLogger(__name__)
PROBLEM_CONTENT_TYPE = "application/problem+json"


def problem(
    *, code: str, status: int, detail: str, field: str = "", errors: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    """The body of a problem: stable `code`, HTTP `status`, `detail` for people, the request's id to quote."""
    body: dict[str, Any] = {
        "type": f"/docs/errors#{code}",
        "title": code.replace("_", " "),
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": request_id_var.get(),
    }
    if field:
        body["field"] = field
    if errors:
        body["errors"] = errors
    return body


def problem_of(error: DomainError, *, field_names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The body of a DomainError's problem, with its further members.

    `field_names`: what the client calls an input that the error names otherwise.
    """
    field = (field_names or {}).get(error.field, error.field)
    return {
        **error.details(),
        **problem(code=error.code, status=error.status, detail=error.text(), field=field),
    }


def set_headers(response: HttpResponseBase, error: DomainError) -> None:
    """Say in the response's headers when to come back, and how to sign in."""
    if error.retry_after_s is not None:
        response["Retry-After"] = str(error.retry_after_s)
    if error.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="api"'


def problem_response(error: DomainError) -> JsonResponse:
    """A DomainError as a Django response, for the endpoints that do not pass through the REST framework."""
    response = JsonResponse(problem_of(error), status=error.status, content_type=PROBLEM_CONTENT_TYPE)
    set_headers(response, error)
    return response


def wants_json(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def error_response(request: HttpRequest, error: DomainError) -> HttpResponse:
    """A DomainError as a problem under /api/, as a page elsewhere."""
    if wants_json(request):
        return problem_response(error)
    response = render(request, "error.html", {"error": error, "message": error.text()}, status=error.status)
    # For the request log: a problem of the API says its code in its body.
    response.error_code = error.code  # type: ignore[attr-defined]
    if error.retry_after_s is not None:
        response["Retry-After"] = str(error.retry_after_s)
    return response


class PageErrorMiddleware:
    """Turns a DomainError that leaves a page's view into a page, and any fault under /api/ into a problem."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, DomainError):
            return error_response(request, error)
        if wants_json(request) and isinstance(error, SuspiciousOperation):
            # Too many fields, a forged file name: the caller's fault, and not worth a trace.
            body = problem(code="malformed_request", status=400, detail=_("This request is malformed."))
            return JsonResponse(body, status=400, content_type=PROBLEM_CONTENT_TYPE)
        if wants_json(request) and not isinstance(error, (Http404, PermissionDenied)):
            logger.error("request_failed", exc_info=error, extra={"path": request.path})
            body = problem(
                code="internal_error",
                status=500,
                detail=_(
                    "Something broke on our side. Nothing was charged. "
                    "Quote the request id when you write to us."
                ),
            )
            return JsonResponse(body, status=500, content_type=PROBLEM_CONTENT_TYPE)
        return None
