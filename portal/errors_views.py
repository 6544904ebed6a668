"""The pages behind 403, 404 and 500: what happened, what to do, the request's id to quote."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from portal.lib.errors import NotFound
from portal.lib.problem import PROBLEM_CONTENT_TYPE, problem, problem_response, wants_json


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    error = NotFound()
    if wants_json(request):
        return problem_response(error)
    return render(request, "error.html", {"error": error, "message": error.text()}, status=404)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    message = _("This form was open for too long, or cookies are off. Go back, reload the page and send it again.")
    if wants_json(request):
        body = problem(code="csrf_failed", status=403, detail=message)
        return JsonResponse(body, status=403, content_type=PROBLEM_CONTENT_TYPE)
    return render(request, "error.html", {"message": message}, status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    message = _("Something broke on our side. Nothing was charged. Quote the request id when you write to us.")
    if wants_json(request):
        body = problem(code="internal_error", status=500, detail=message)
        return JsonResponse(body, status=500, content_type=PROBLEM_CONTENT_TYPE)
    return render(request, "error.html", {"message": message}, status=500)
