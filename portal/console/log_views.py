"""The log of all customers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal.console.access import operators_only
from portal.console.log_search import (
    ConsoleLogForm,
    attempts_for_operators,
    requests_for_operators,
    workspace_names,
)
from portal.console.pages import live
from portal.lib.clock import database_now
from portal.lib.csv_export import csv_response
from portal.lib.newest_first import page_before
from portal.logs.filters import REQUESTS
from portal.logs.selectors import attempt_line, people_of
from portal.logs.tables import attempt_cells, attempt_header, request_cells, request_header

LINES_SHOWN = 100
# A file that opens in a spreadsheet.
LINES_EXPORTED = 200_000
LINES_AT_ONCE = 500


@never_cache
@require_safe
@operators_only
def log(request: HttpRequest) -> HttpResponseBase:
    """Who asked for what, and what came of it, newest first; its first page is a live tail."""
    form = ConsoleLogForm(request.GET)
    if request.GET.get("format") == "csv":
        return _file(form)
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
    every_s = 2 if context["page"].is_first else 0
    context |= live(now=database_now(), every_s=every_s, parts=("line-rows",))
    return render(request, "console/log.html", context)


def _file(form: ConsoleLogForm) -> HttpResponseBase:
    if form.chosen_kind == REQUESTS:
        return csv_response("requests", header=["workspace", *request_header()], rows=_request_rows(form))
    attempts = attempts_for_operators(form).order_by("-bound_at", "-pk")[:LINES_EXPORTED]
    lines = (attempt_line(row) for row in attempts.iterator(chunk_size=LINES_AT_ONCE))
    return csv_response("attempts", header=attempt_header(), rows=(attempt_cells(line) for line in lines))


def _request_rows(form: ConsoleLogForm) -> Iterator[list[Any]]:
    """Read some hundred at a time, with the names that stand behind their ids."""
    requests = requests_for_operators(form).order_by("-created_at", "-pk")[:LINES_EXPORTED]
    gathered = []
    for row in requests.iterator(chunk_size=LINES_AT_ONCE):
        gathered.append(row)
        if len(gathered) == LINES_AT_ONCE:
            yield from _cells(gathered)
            gathered = []
    yield from _cells(gathered)


def _cells(rows: list[Any]) -> Iterator[list[Any]]:
    people, workspaces = people_of(rows), workspace_names(rows)
    for row in rows:
        yield [workspaces.get(row.workspace_id, ""), *request_cells(row, people)]
