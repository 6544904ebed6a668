"""What every endpoint of the API has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import IO, Any, ClassVar, TypeVar

from django.conf import settings
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.mediatypes import media_type_matches
from rest_framework.views import APIView

from portal.lib.http import RequestTooLarge
from portal.lib.pagination import NewestFirst
from portal.lib.throttling import rate_limit_headers

Row = TypeVar("Row", bound=Model)


class OneRenderer(BaseContentNegotiation):
    """Answers are JSON whatever is asked for: a client that wants audio or events must still get its errors."""

    def select_parser(self, request: Request, parsers: list[BaseParser]) -> BaseParser | None:  # type: ignore[override]
        wanted = request.content_type or ""
        return next((parser for parser in parsers if media_type_matches(parser.media_type, wanted)), None)

    def select_renderer(  # type: ignore[override]
        self, request: Request, renderers: list[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


class ChunkedBody:
    """A body without a Content-Length, read until it ends, and no further than `limit` bytes."""

    def __init__(self, source: IO[bytes], *, limit: int) -> None:
        self._source = source
        self._limit = limit
        self._read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        left = self._limit + 1 - self._read_bytes
        chunk = self._source.read(left if size < 0 else min(size, left))
        self._read_bytes += len(chunk)
        if self._read_bytes > self._limit:
            raise RequestTooLarge(megabytes=self._limit // (1024 * 1024))
        return chunk

    def readline(self, size: int = -1) -> bytes:
        raise NotImplementedError("bodies are read in chunks")


def accept_chunked_body(request: HttpRequest, *, limit: int) -> None:
    """Let a body with `Transfer-Encoding: chunked` be read: WSGI alone takes it for empty.

    Only where the server says that it ends the body itself (`wsgi.input_terminated`, as gunicorn does).
    """
    chunked = "chunked" in request.headers.get("Transfer-Encoding", "").lower()
    if chunked and not request.META.get("CONTENT_LENGTH") and request.META.get("wsgi.input_terminated"):
        request._stream = ChunkedBody(request.META["wsgi.input"], limit=limit)  # type: ignore[assignment]
        # The REST framework does not look at a body of unknown length; the stream ends where the body does.
        request.META["CONTENT_LENGTH"] = str(limit)


class ApiView(APIView):
    """A view of the API. Subclasses say which methods there are; `body_limit_bytes` bounds what they read."""

    content_negotiation_class = OneRenderer
    # No OPTIONS: it would describe forms that nobody fills in.
    metadata_class = None
    # What this view's input calls that which errors name otherwise, for its problems' `field`.
    field_names: ClassVar[Mapping[str, str]] = {}

    @property
    def body_limit_bytes(self) -> int:
        limit: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        return limit

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        accept_chunked_body(request, limit=self.body_limit_bytes)
        return super().initialize_request(request, *args, **kwargs)

    def finalize_response(
        self, request: Request, response: HttpResponseBase, *args: Any, **kwargs: Any
    ) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)  # type: ignore[arg-type]
        final.headers.setdefault("Cache-Control", "private, no-store")
        for name, value in rate_limit_headers(request).items():
            final[name] = value
        return final


class ListView(ApiView):
    """A view whose GET is a list, newest first."""

    pagination_class = NewestFirst

    def page_of(
        self, request: Request, rows: QuerySet[Row], as_json: Callable[[Row], dict[str, Any]]
    ) -> Response:
        """One page of `rows` as the query asks for it, each as `as_json` makes it."""
        paginator = self.pagination_class()
        page = paginator.paginate_queryset(rows, request, view=self) or []
        return paginator.get_paginated_response([as_json(row) for row in page])
