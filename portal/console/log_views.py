"""The log of all customers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, cast

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.models import User
from portal.console.access import operators_only
from portal.console.log_search import (
    ConsoleLogForm,
    attempts_for_operators,
    requests_for_operators,
    workspace_names,
)
from portal.console.pages import live
from portal.lib.clock import database_now
from portal.lib.csv_export import ROWS_AT_ONCE, csv_stream
from portal.lib.newest_first import page_before, pages
from portal.logs.filters import REQUESTS
from portal.logs.models import RequestLog
from portal.logs.selectors import attempt_line, people_of
from portal.logs.tables import attempt_cells, attempt_header, request_cells, request_header
from tts.models import Attempt

LINES_SHOWN = 100
# A file that opens in a spreadsheet.
LINES_EXPORTED = 200_000
Row = TypeVar("Row", bound=Model)


@never_cache
@require_safe
@operators_only
def log(request: HttpRequest) -> HttpResponseBase:
    """Who asked for what, and what came of it, newest first; its first page is a live tail."""
    form = ConsoleLogForm(request.GET)
    if request.GET.get("format") == "csv":
        return _file(request, form)
    before = form.known("before") or ""
    context: dict[str, Any] = {"form": form, "kind": form.chosen_kind, "operators": True}
    if form.chosen_kind == REQUESTS:
        requests = page_before(
            requests_for_operators(form), moment_field="created_at", before=before, size=LINES_SHOWN
        )
        context |= {
            "page": requests,
            "lines": requests.rows,
            "people": people_of(requests.rows),
            "workspaces": workspace_names(requests.rows),
        }
    else:
        attempts = page_before(
            attempts_for_operators(form), moment_field="bound_at", before=before, size=LINES_SHOWN
        )
        context |= {"page": attempts, "lines": [attempt_line(row) for row in attempts.rows]}
    # What was searched for stands still: the search costs more than the newest lines.
    every_s = 2 if context["page"].is_first and not form.query else 0
    context |= live(now=database_now(), every_s=every_s, parts=("line-rows",))
    return render(request, "console/log.html", context)


def _file(request: HttpRequest, form: ConsoleLogForm) -> HttpResponseBase:
    holder_id = cast(User, request.user).pk
    if form.chosen_kind == REQUESTS:
        return csv_stream(
            request,
            "requests",
            header=["workspace", *request_header()],
            pages=map(_request_rows, _pages(requests_for_operators(form), "created_at")),
            holder_id=holder_id,
        )
    return csv_stream(
        request,
        "attempts",
        header=attempt_header(),
        pages=map(_attempt_rows, _pages(attempts_for_operators(form), "bound_at")),
        holder_id=holder_id,
    )


def _pages(rows: QuerySet[Row], moment_field: str) -> Iterator[list[Row]]:
    return pages(rows, moment_field=moment_field, size=ROWS_AT_ONCE, at_most=LINES_EXPORTED)


def _request_rows(page: list[RequestLog]) -> list[list[Any]]:
    """With the names that stand behind their ids."""
    people, workspaces = people_of(page), workspace_names(page)
    return [
        [workspaces.get(row.workspace_id, "") if row.workspace_id else "", *request_cells(row, people)]
        for row in page
    ]


def _attempt_rows(page: list[Attempt]) -> list[list[Any]]:
    return [attempt_cells(attempt_line(row)) for row in page]
