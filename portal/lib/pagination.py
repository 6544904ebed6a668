"""Lists in the API: newest first, by cursor, so that new rows never shift a page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from rest_framework.exceptions import ErrorDetail, NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

# What the paginator reads of the query; the rest belongs to the view.
PAGE_PARAMETERS = frozenset({"cursor", "page_size"})


class NewestFirst(CursorPagination):
    ordering = ("-created_at", "-pk")
    page_size = 20
    page_size_query_param = "page_size"
    max_page_size = 100

    def decode_cursor(self, request: Request) -> Cursor | None:
        """The cursor of the query, None where there is none.

        Raises:
            ValidationError: it is not one that a list gave out; its position would fail in the database.
        """
        invalid: dict[str, Any] = {
            "cursor": [
                ErrorDetail(_("Use the cursor of a “next” or “previous” link."), code="invalid_cursor")
            ]
        }
        try:
            cursor: Cursor | None = super().decode_cursor(request)
            if cursor is not None and cursor.position is not None:
                moment = parse_datetime(str(cursor.position))
                # Ours are in UTC. Others may overflow: 9999 in a zone behind it lies beyond every calendar.
                if moment is None or moment.utcoffset() != timedelta(0):
                    raise ValidationError(invalid)
        except (NotFound, ValueError) as error:
            raise ValidationError(invalid) from error
        return cursor

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A page in OpenAPI 3.1, which has no `nullable`."""
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }
