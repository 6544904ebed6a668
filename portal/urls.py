"""Every address of the portal, by area. Each area's own list stands beside its views."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from portal import health
from portal.metrics.views import metrics
from portal.switches import set_language

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("api/v1/", include("portal.api_urls")),
    path("billing/webhooks/", include("billing.webhooks.urls")),
    path("console/", include("portal.console.urls")),
    path("admin/", admin.site.urls),
    path("account/", include("portal.sign_up_urls")),
    path("i18n/setlang/", set_language, name="set_language"),
    path("", include("portal.pages_urls")),
    path("", include("accounts.urls")),
    path("", include("tts.urls")),
]

handler400 = "portal.errors_views.bad_request"
handler403 = "portal.errors_views.forbidden"
handler404 = "portal.errors_views.not_found"
handler429 = "portal.errors_views.too_many_requests"  # allauth's
handler500 = "portal.errors_views.server_error"
