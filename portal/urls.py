"""Every address of the portal, by area. Each area's own list stands beside its views."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from portal import health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/", include("portal.api_urls")),
    path("console/", include("portal.console.urls")),
    path("admin/", admin.site.urls),
    path("account/", include("allauth.account.urls")),
    path("i18n/", include("django.conf.urls.i18n")),
    path("", include("portal.pages_urls")),
    path("", include("accounts.urls")),
    path("", include("tts.urls")),
]

handler404 = "portal.errors_views.not_found"
handler500 = "portal.errors_views.server_error"
