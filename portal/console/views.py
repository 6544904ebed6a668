"""The operators' pages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal.console.access import operators_only
from portal.console.overview import read_overview


@never_cache
@require_safe
@operators_only
def overview(request: HttpRequest) -> HttpResponse:
    """Is all well, and if not, what is wrong. The page asks for itself again and takes over the parts that live."""
    return render(request, "console/overview.html", {"overview": read_overview()})
