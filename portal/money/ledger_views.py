"""Every movement of the workspace's money, newest first. Every member may read it, as every member sees the jobs."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.models import Workspace
from accounts.tenancy import require_workspace
from billing.models import LedgerTransaction, TransactionKind
from billing.selectors.balances import currency_of
from billing.selectors.ledger import transactions_of
from portal.lib.csv_export import ROWS_AT_ONCE, csv_stream
from portal.lib.newest_first import page_before, pages
from portal.money.forms import LedgerForm
from portal.money.ledger_words import COLUMNS, cells, ledger_lines

LINES_SHOWN = 50
# A file that opens in a spreadsheet.
LINES_EXPORTED = 100_000


@login_required
@never_cache
@require_safe
def ledger(request: HttpRequest) -> HttpResponseBase:
    """The lines; `?format=csv` gives the same lines as a file."""
    workspace = require_workspace(request)
    form = LedgerForm(request.GET)
    kind = form.known("show")
    rows = transactions_of(workspace.pk, kinds=[TransactionKind(kind)] if kind else None)
    currency = currency_of(workspace.pk)
    if request.GET.get("format") == "csv":
        found = pages(rows, moment_field="created_at", size=ROWS_AT_ONCE, at_most=LINES_EXPORTED)
        return csv_stream(
            request,
            "ledger",
            header=COLUMNS,
            pages=(_cells(workspace, page, currency) for page in found),
            holder_id=workspace.pk,
        )
    page = page_before(rows, moment_field="created_at", before=form.known("before") or "", size=LINES_SHOWN)
    context = {
        "page": page,
        "lines": ledger_lines(workspace, page.rows),
        "currency": currency,
        "form": form,
        "chosen": kind or "",
    }
    return render(request, "billing/ledger.html", context)


def _cells(workspace: Workspace, page: list[LedgerTransaction], currency: str) -> list[list[Any]]:
    return [cells(line, currency) for line in ledger_lines(workspace, page)]
