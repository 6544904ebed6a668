"""Where forms lead back to, and the cookie of the language: shared by the switches and the settings."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme


def safe_next(request: HttpRequest, default: str) -> str:
    """The address in the form's `next`, if it is one of ours."""
    wanted = request.POST.get("next", "")
    own = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if own else default


def remember_language(response: HttpResponse, language: str) -> None:
    """Set the cookie that LocaleMiddleware reads, with the same attributes wherever the language is chosen."""
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        language,
        max_age=settings.LANGUAGE_COOKIE_AGE,
        samesite="Lax",
        secure=settings.LANGUAGE_COOKIE_SECURE,
        httponly=settings.LANGUAGE_COOKIE_HTTPONLY,
    )
