"""Who may open the console: operators. To customers it does not exist."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from accounts.services.audit import address_var
from portal.lib.errors import NotFound
from portal.lib.http import client_address

Parameters = ParamSpec("Parameters")


def refuse_customers(request: HttpRequest) -> None:
    """Raises NotFound for somebody who is signed in and is no operator: as if there were no such page."""
    if request.user.is_authenticated and not (request.user.is_active and request.user.is_staff):
        raise NotFound


def operators_only(
    view: Callable[Concatenate[HttpRequest, Parameters], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, Parameters], HttpResponseBase]:
    """The view for operators; who is not signed in is asked to, everybody else finds nothing."""

    @wraps(view)
    def guarded(
        request: HttpRequest, /, *arguments: Parameters.args, **keywords: Parameters.kwargs
    ) -> HttpResponseBase:
        if not request.user.is_authenticated:
            # A page that refreshes itself after the session ended goes to the sign-in as a whole.
            if request.headers.get("HX-Request"):
                return HttpResponseClientRedirect(f"{reverse('account_login')}?next={request.path}")
            return redirect_to_login(request.get_full_path())
        refuse_customers(request)
        token = address_var.set(client_address(request))
        try:
            return view(request, *arguments, **keywords)
        finally:
            address_var.reset(token)

    return guarded
