"""Errors as HTTP: JSON problem details (RFC 9457) for the API, a page for people."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.response import Response

from portal.lib.errors import DomainError, NotFound
from portal.lib.logging import request_id_var

logger = logging.getLogger(__name__)
PROBLEM_CONTENT_TYPE = "application/problem+json"


def problem(*, code: str, status: int, detail: str, field: str = "", errors: list[dict[str, str]] | None = None) -> dict[str, Any]:
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


def problem_response(error: DomainError) -> JsonResponse:
    """A DomainError as a Django response, for the endpoints that do not pass through the REST framework."""
    body = problem(code=error.code, status=error.status, detail=error.text(), field=error.field)
    response = JsonResponse(body, status=error.status, content_type=PROBLEM_CONTENT_TYPE)
    if error.retry_after_s is not None:
        response["Retry-After"] = str(error.retry_after_s)
    return response


def _flatten(detail: Any, field: str = "") -> list[dict[str, str]]:
    """The REST framework's nested validation errors as one list of field, code and detail."""
    if isinstance(detail, dict):
        return [row for key, value in detail.items() for row in _flatten(value, f"{field}.{key}" if field else str(key))]
    if isinstance(detail, list):
        return [row for value in detail for row in _flatten(value, field)]
    return [{"field": field, "code": getattr(detail, "code", "invalid"), "detail": str(detail)}]


def _framework_problem(error: exceptions.APIException) -> dict[str, Any]:
    if isinstance(error, exceptions.ValidationError):
        rows = _flatten(error.detail)
        first = rows[0] if rows else {"field": "", "code": "invalid", "detail": ""}
        return problem(
            code="invalid_input", status=400, detail=f"{first['field']}: {first['detail']}", field=first["field"], errors=rows
        )
    codes = {
        exceptions.NotAuthenticated: "not_authenticated",
        exceptions.AuthenticationFailed: "invalid_api_key",
        exceptions.PermissionDenied: "forbidden",
        exceptions.MethodNotAllowed: "method_not_allowed",
        exceptions.NotAcceptable: "not_acceptable",
        exceptions.UnsupportedMediaType: "unsupported_media_type",
        exceptions.Throttled: "rate_limited",
        exceptions.ParseError: "malformed_request",
    }
    code = codes.get(type(error), "error")
    return problem(code=code, status=error.status_code, detail=str(error.detail))


def api_exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Every error of the API in one shape. Unknown ones are logged by Django and answered as 500 by the middleware."""
    if isinstance(error, Http404):
        error = NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if isinstance(error, DomainError):
        body = problem(code=error.code, status=error.status, detail=error.text(), field=error.field)
        response = Response(body, status=error.status, content_type=PROBLEM_CONTENT_TYPE)
        if error.retry_after_s is not None:
            response["Retry-After"] = str(error.retry_after_s)
        return response
    if isinstance(error, exceptions.APIException):
        response = Response(_framework_problem(error), status=error.status_code, content_type=PROBLEM_CONTENT_TYPE)
        if header := getattr(error, "auth_header", None):
            response["WWW-Authenticate"] = header
        if (wait := getattr(error, "wait", None)) is not None:
            response["Retry-After"] = str(max(1, int(wait + 0.999)))
        return response
    return None


def wants_json(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


class PageErrorMiddleware:
    """Turns a DomainError that leaves a page's view into a page, and any fault under /api/ into a problem."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, DomainError):
            if wants_json(request):
                return problem_response(error)
            return render(request, "error.html", {"error": error, "message": error.text()}, status=error.status)
        if wants_json(request) and not isinstance(error, (Http404, PermissionDenied)):
            logger.exception("request_failed", extra={"path": request.path})
            body = problem(
                code="internal_error",
                status=500,
                detail=_("Something broke on our side. Nothing was charged. Quote the request id when you write to us."),
            )
            return JsonResponse(body, status=500, content_type=PROBLEM_CONTENT_TYPE)
        return None
