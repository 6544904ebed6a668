"""Lists in the API: newest first, by cursor, so that new rows never shift a page."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class NewestFirst(CursorPagination):
    ordering = ("-created_at", "-pk")
    page_size = 20
    page_size_query_param = "page_size"
    max_page_size = 100
