"""A workspace's own log: what it asked for, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from django.contrib.auth.decorators import login_required
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.models import Workspace
from accounts.tenancy import require_workspace
from portal.lib.clock import now
from portal.lib.csv_export import ROWS_AT_ONCE, csv_stream
from portal.lib.newest_first import page_before, pages
from portal.logs.filters import REQUESTS, LogForm
from portal.logs.models import RequestLog
from portal.logs.selectors import attempt_line, attempts_of, people_of, requests_of
from portal.logs.tables import attempt_cells, attempt_header, request_cells, request_header
from tts.models import Attempt

Row = TypeVar("Row", bound=Model)
LINES_SHOWN = 50
# A file that opens in a spreadsheet.
LINES_EXPORTED = 100_000


@login_required
@never_cache
@require_safe
def log(request: HttpRequest) -> HttpResponseBase:
    """The lines of the workspace, newest first; `?format=csv` gives the same lines as a file."""
    workspace = require_workspace(request)
    form = LogForm(request.GET)
    if request.GET.get("format") == "csv":
        return _file(request, workspace, form)
    context: dict[str, Any] = {"form": form, "kind": form.chosen_kind, "fresh_at": now()}
    before = form.known("before") or ""
    if form.chosen_kind == REQUESTS:
        requests = page_before(
            requests_of(workspace, **form.span), moment_field="created_at", before=before, size=LINES_SHOWN
        )
        context |= {"page": requests, "lines": requests.rows, "people": people_of(requests.rows)}
    else:
        attempts = page_before(
            attempts_of(workspace, **form.span), moment_field="bound_at", before=before, size=LINES_SHOWN
        )
        context |= {"page": attempts, "lines": [attempt_line(row) for row in attempts.rows]}
    return render(request, "logs/log.html", context)


def _file(request: HttpRequest, workspace: Workspace, form: LogForm) -> HttpResponseBase:
    if form.chosen_kind == REQUESTS:
        rows = requests_of(workspace, **form.span)
        return csv_stream(
            request,
            "requests",
            header=request_header(),
            pages=map(_request_rows, _pages(rows, "created_at")),
            holder_id=workspace.pk,
        )
    attempts = attempts_of(workspace, **form.span)
    return csv_stream(
        request,
        "attempts",
        header=attempt_header(),
        pages=map(_attempt_rows, _pages(attempts, "bound_at")),
        holder_id=workspace.pk,
    )


def _pages(rows: QuerySet[Row], moment_field: str) -> Iterator[list[Row]]:
    return pages(rows, moment_field=moment_field, size=ROWS_AT_ONCE, at_most=LINES_EXPORTED)


def _request_rows(page: list[RequestLog]) -> list[list[Any]]:
    people = people_of(page)
    return [request_cells(row, people) for row in page]


def _attempt_rows(page: list[Attempt]) -> list[list[Any]]:
    return [attempt_cells(attempt_line(row)) for row in page]
