"""A workspace's own log: what it asked for, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.models import Workspace
from accounts.tenancy import require_workspace
from portal.lib.clock import now
from portal.lib.csv_export import csv_response
from portal.lib.newest_first import page_before
from portal.logs.filters import REQUESTS, LogForm
from portal.logs.selectors import attempt_line, attempts_of, people_of, requests_of
from portal.logs.tables import attempt_cells, attempt_header, request_cells, request_header

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
        return _file(workspace, form)
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


def _file(workspace: Workspace, form: LogForm) -> HttpResponseBase:
    if form.chosen_kind == REQUESTS:
        rows = requests_of(workspace, **form.span)[:LINES_EXPORTED]
        return csv_response("requests", header=request_header(), rows=_request_rows(rows))
    attempts = attempts_of(workspace, **form.span)[:LINES_EXPORTED]
    lines = (attempt_line(row) for row in attempts.iterator(chunk_size=500))
    return csv_response("attempts", header=attempt_header(), rows=(attempt_cells(line) for line in lines))


def _request_rows(rows: Iterable[Any]) -> Iterator[list[Any]]:
    gathered = list(rows)
    people = people_of(gathered)
    for row in gathered:
        yield request_cells(row, people)
