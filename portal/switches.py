"""The switches in the footer: language and colours. Both work without scripts and lead back to the page."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views import i18n
from django.views.decorators.http import require_POST

from accounts.models import User
from portal.context import FOLLOW_THE_SYSTEM, THEME_COOKIE, THEMES
from portal.lib.redirects import safe_next

YEAR_SECONDS = 365 * 24 * 3600


@require_POST
def set_language(request: HttpRequest) -> HttpResponseBase:
    """Django's own switch, and the choice is kept with the account for mails and other browsers."""
    language = request.POST.get("language", "")
    if language in dict(settings.LANGUAGES) and request.user.is_authenticated:
        User.objects.filter(pk=request.user.pk).exclude(locale=language).update(locale=language)
    return i18n.set_language(request)


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    response = HttpResponseRedirect(safe_next(request, reverse("landing")))
    chosen = request.POST.get("theme", "")
    if chosen in {theme.code for theme in THEMES} - {FOLLOW_THE_SYSTEM}:
        # Read by theme.js too, which changes the colours without asking the server.
        response.set_cookie(
            THEME_COOKIE, chosen, max_age=YEAR_SECONDS, samesite="Lax", secure=request.is_secure()
        )
    else:
        response.delete_cookie(THEME_COOKIE, samesite="Lax")
    return response
