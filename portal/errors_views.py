"""The pages behind 400, 403, 404, 429 and 500: what happened, what to do, the request's id to quote."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from portal.lib.errors import NotFound
from portal.lib.problem import PROBLEM_CONTENT_TYPE, error_response, problem, wants_json


@dataclass(frozen=True)
class ShownError:
    """What the template reads of an error, for those that are no DomainError."""

    code: str
    status: int


def _answer(request: HttpRequest, *, code: str, status: int, message: str) -> HttpResponse:
    if wants_json(request):
        body = problem(code=code, status=status, detail=message)
        return JsonResponse(body, status=status, content_type=PROBLEM_CONTENT_TYPE)
    error = ShownError(code=code, status=status)
    return render(request, "error.html", {"error": error, "message": message}, status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    message = _("The browser sent something that cannot be read. Go back and try again.")
    return _answer(request, code="malformed_request", status=400, message=message)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, code="forbidden", status=403, message=_("Your account may not open this page."))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_response(request, NotFound())


def too_many_requests(request: HttpRequest) -> HttpResponse:
    """For allauth's rate limits on sign-up, sign-in, passwords and addresses."""
    message = _("Too many requests came at once. Wait a minute, then try again.")
    response = _answer(request, code="rate_limited", status=429, message=message)
    # The shortest of its limits are counted by the minute.
    response["Retry-After"] = "60"
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    message = _(
        "This form was open for too long, or cookies are off. Go back, reload the page and send it again."
    )
    return _answer(request, code="csrf_failed", status=403, message=message)


def server_error(request: HttpRequest) -> HttpResponse:
    message = _(
        "Something broke on our side. Nothing was charged. Quote the request id when you write to us."
    )
    return _answer(request, code="internal_error", status=500, message=message)
