"""Version 1 of the REST API. Each app's endpoints stand beside its views."""

from __future__ import annotations

from django.urls import include, path

from portal import api_docs

urlpatterns = [
    path("", include("accounts.api.urls")),
    path("", include("billing.api.urls")),
    path("", include("tts.api.urls")),
    path("schema", api_docs.schema, name="api_schema"),
    path("docs", api_docs.docs, name="api_docs"),
]
