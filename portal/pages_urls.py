"""The pages that belong to no one app."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from portal import outbox, pages, switches
from portal.logs import views as log_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", pages.landing, name="landing"),
    path("samples/<slug:preset_key>.wav", pages.preset_sample, name="preset_sample"),
    path("docs/", pages.documentation, name="documentation"),
    # Without a slash: a problem's type is "/docs/errors#code".
    path("docs/errors", pages.error_codes, name="error_codes"),
    path("legal/consent/", pages.consent_wording, name="consent_wording"),
    path("outbox/", outbox.outbox, name="outbox"),
    path("developers/log/", log_views.log, name="log"),
    path("", include("portal.money.urls")),
    path("theme/", switches.set_theme, name="set_theme"),
]
