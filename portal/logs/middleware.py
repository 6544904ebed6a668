"""Notes every answered request: all are counted, those of the API and those that make something get a line."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.functional import LazyObject, empty

from portal.lib.clock import now
from portal.lib.http import client_address
from portal.logs.models import RequestLog
from portal.logs.writer import request_log

API = "/api/v1/"
# Pages whose POST makes or changes what the API makes and changes.
PAGES_WITH_LINES = frozenset(
    {"studio", "job_repeat", "job_cancel", "job_delete", "voice_new", "voice_rename", "voice_delete"}
)
CONVERTER = re.compile(r"<(?:\w+:)?(\w+)>")
# Of addresses that no pattern knows: a scanner must not make a line of its own for each guess.
UNKNOWN_ROUTE = "unknown"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@lru_cache(maxsize=1024)
def readable_route(pattern: str) -> str:
    """`/api/v1/jobs/{job_id}` for Django's `api/v1/jobs/<uuid:job_id>`."""
    return "/" + CONVERTER.sub(r"{\1}", pattern)[:119]


class RequestLogMiddleware:
    """Outermost but for the request's id, so that it sees what the client sees."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started_at, started = now(), time.monotonic()
        response = self.get_response(request)
        if response.streaming:
            # It has only begun. Closed by the server when the last byte went out, or the client is gone.
            response._resource_closers.append(  # type: ignore[attr-defined] # Django's own way to act after the answer
                lambda: _note(request, response, started_at, started)
            )
        else:
            _note(request, response, started_at, started)
        return response


def _note(request: HttpRequest, response: HttpResponseBase, started_at: datetime, started: float) -> None:
    match = request.resolver_match
    route = readable_route(match.route) if match is not None and match.route is not None else UNKNOWN_ROUTE
    # HTTP allows any word as a method.
    method = request.method if request.method in METHODS else "OTHER"
    duration_ms = round((time.monotonic() - started) * 1000)
    line = None
    if request.path.startswith(API) or (
        method == "POST" and match is not None and match.url_name in PAGES_WITH_LINES
    ):
        line = RequestLog(
            created_at=started_at,
            workspace_id=_id_of(_found(request, "workspace")),
            user_id=_id_of(_found(request, "user")),
            api_key_id=_id_of(getattr(request, "auth", None)),
            method=method,
            route=route,
            status=response.status_code,
            duration_ms=duration_ms,
            address=client_address(request),
            request_id=getattr(request, "request_id", ""),
            code=_problem_code(response),
        )
    request_log().put(
        line=line, route=route, method=method, status=response.status_code, duration_ms=duration_ms
    )


def _found(request: HttpRequest, name: str) -> Any:
    """The request's user or workspace if somebody has asked for it: noting a request costs no query."""
    value = getattr(request, name, None)
    if isinstance(value, LazyObject) and value._wrapped is empty:
        return None
    return value


def _id_of(row: Any) -> uuid.UUID | None:
    key = getattr(row, "pk", None)
    return key if isinstance(key, uuid.UUID) else None


def _problem_code(response: HttpResponseBase) -> str:
    """The stable code of a refusal: of a problem's body, or as the page's error left it."""
    if response.status_code < 400 or response.streaming:
        return ""
    code = getattr(response, "error_code", "")
    if not code and response.get("Content-Type", "").startswith("application/problem+json"):
        with suppress(ValueError, AttributeError):
            code = json.loads(response.content).get("code", "")  # type: ignore[attr-defined]
    return str(code)[:60]
