"""Every error of the API as a problem: the REST framework's own, ours, and servers that cannot be reached."""

from __future__ import annotations

import logging
from typing import Any

import redis
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from portal.lib.errors import DomainError, NotFound, ServiceUnavailable
from portal.lib.problem import PROBLEM_CONTENT_TYPE, problem, problem_of, set_headers

logger = logging.getLogger(__name__)
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
        set_headers(response, error)
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
