"""Errors as HTTP: JSON problem details (RFC 9457) for the API, a page for people."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import redis
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.response import Response

from portal.lib.errors import DomainError, NotFound, ServiceUnavailable
from portal.lib.logging import request_id_var

logger = logging.getLogger(__name__)
PROBLEM_CONTENT_TYPE = "application/problem+json"
FRAMEWORK_CODES: dict[type[exceptions.APIException], str] = {
    exceptions.NotAuthenticated: "not_authenticated",
    exceptions.AuthenticationFailed: "invalid_api_key",
    exceptions.PermissionDenied: "forbidden",
    exceptions.NotFound: "not_found",
    exceptions.MethodNotAllowed: "method_not_allowed",
    exceptions.NotAcceptable: "not_acceptable",
    exceptions.UnsupportedMediaType: "unsupported_media_type",
    exceptions.Throttled: "rate_limited",
    exceptions.ParseError: "malformed_request",
}


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


def _set_headers(response: HttpResponseBase, error: DomainError) -> None:
    if error.retry_after_s is not None:
        response["Retry-After"] = str(error.retry_after_s)
    if error.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="api"'


def problem_response(error: DomainError) -> JsonResponse:
    """A DomainError as a Django response, for the endpoints that do not pass through the REST framework."""
    response = JsonResponse(problem_of(error), status=error.status, content_type=PROBLEM_CONTENT_TYPE)
    _set_headers(response, error)
    return response


def _flatten(detail: Any, field: str = "") -> list[dict[str, str]]:
    """The REST framework's nested validation errors as one list of field, code and detail."""
    if isinstance(detail, dict):
        return [
            row
            for key, value in detail.items()
            for row in _flatten(value, f"{field}.{key}" if field else str(key))
        ]
    if isinstance(detail, list):
        return [row for value in detail for row in _flatten(value, field)]
    return [{"field": field, "code": getattr(detail, "code", "invalid"), "detail": str(detail)}]


def _framework_problem(error: exceptions.APIException) -> dict[str, Any]:
    if isinstance(error, exceptions.ValidationError):
        rows = _flatten(error.detail)
        first = rows[0] if rows else {"field": "", "code": "invalid", "detail": ""}
        detail = f"{first['field']}: {first['detail']}" if first["field"] else first["detail"]
        return problem(code="invalid_input", status=400, detail=detail, field=first["field"], errors=rows)
    code = next((code for kind, code in FRAMEWORK_CODES.items() if isinstance(error, kind)), "error")
    return problem(code=code, status=error.status_code, detail=str(error.detail))


def api_exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Every error of the API in one shape. Unknown ones are left to the middleware, which logs them."""
    if isinstance(error, Http404):
        error = NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    elif isinstance(error, (OperationalError, InterfaceError, redis.RedisError)):
        # No connection, none free in the pool, a server that restarts: it passes, and clients try again on 503.
        logger.error("request_without_servers", exc_info=error)
        error = ServiceUnavailable()
    if isinstance(error, DomainError):
        body = problem_of(error, field_names=getattr(context.get("view"), "field_names", None))
        response = Response(body, status=error.status, content_type=PROBLEM_CONTENT_TYPE)
        _set_headers(response, error)
        return response
    if isinstance(error, exceptions.APIException):
        response = Response(
            _framework_problem(error), status=error.status_code, content_type=PROBLEM_CONTENT_TYPE
        )
        if header := getattr(error, "auth_header", None):
            response["WWW-Authenticate"] = header
        if (wait := getattr(error, "wait", None)) is not None:
            response["Retry-After"] = str(max(1, int(wait + 0.999)))
        return response
    return None


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
