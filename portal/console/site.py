"""The site of Django's admin: for operators alone, and signed in to through the portal's own page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.views import LogoutView, redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from portal.console.access import refuse_customers


class RecordsSite(AdminSite):
    """Records for operators. To customers it does not exist."""

    site_header = _("VoicePool records")
    site_title = _("VoicePool records")
    index_title = _("Records")
    site_url = "/console/"
    enable_nav_sidebar = False

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        guarded: Callable[..., HttpResponseBase] = super().admin_view(view, cacheable)

        @wraps(guarded)
        def for_operators(request: HttpRequest, *arguments: Any, **keywords: Any) -> HttpResponseBase:
            refuse_customers(request)
            return guarded(request, *arguments, **keywords)

        return for_operators

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """To the portal's sign-in, whose rate limits, verification and second factor hold for operators too."""
        refuse_customers(request)
        wanted = request.GET.get("next", "")
        if not url_has_allowed_host_and_scheme(wanted, allowed_hosts=None):
            wanted = str(reverse_lazy("admin:index"))
        return redirect(wanted) if self.has_permission(request) else redirect_to_login(wanted)

    # The stubs promise Django's own pages where these two may just as well lead elsewhere.
    def logout(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        return LogoutView.as_view(next_page=reverse_lazy("landing"))(request)

    def password_change(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return redirect("account_change_password")
