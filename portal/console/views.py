"""The operators' pages: the overview, the queue, the audit log."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal.console.access import operators_only
from portal.console.audit_search import AuditForm, find_acts
from portal.console.overview import read_overview
from portal.console.pages import chart_file, live
from portal.console.queue_page import read_queue
from portal.lib.clock import database_now
from portal.lib.newest_first import page_before

OVERVIEW_PARTS = (
    "console-health",
    "console-figures",
    "latency-as-of",
    "latency-rows",
    "failures-as-of",
    "failure-rows",
)
AUDIT_LINES = 50


@never_cache
@require_safe
@operators_only
def overview(request: HttpRequest) -> HttpResponseBase:
    """Is all well, and if not, what is wrong. The page asks for itself again and takes over the parts that live."""
    shown = read_overview()
    if wanted := request.GET.get("csv"):
        return chart_file(shown.charts, wanted)
    context = live(now=shown.fresh_at, every_s=5, parts=OVERVIEW_PARTS, charts=shown.charts)
    return render(request, "console/overview.html", {"overview": shown, **context})


@never_cache
@require_safe
@operators_only
def queue(request: HttpRequest) -> HttpResponseBase:
    """Who waits and why."""
    now = database_now()
    parts = ("queue-rows", "customer-rows", "waiting-rows", "wire-rows")
    context = live(now=now, every_s=3, parts=parts)
    return render(request, "console/queue.html", {"queue": read_queue(now=now), **context})


@never_cache
@require_safe
@operators_only
def audit(request: HttpRequest) -> HttpResponseBase:
    """Every act of every operator, newest first."""
    form = AuditForm(request.GET)
    page = page_before(
        find_acts(form),
        moment_field="created_at",
        before=form.known("before") or "",
        size=AUDIT_LINES,
    )
    # What was searched for stands still: the search costs more than the newest lines.
    context = live(
        now=database_now(), every_s=5 if page.is_first and not form.query else 0, parts=("audit-rows",)
    )
    return render(request, "console/audit.html", {"form": form, "page": page, **context})
