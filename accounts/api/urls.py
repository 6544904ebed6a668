from __future__ import annotations

from django.urls import path

from accounts.api import views

urlpatterns = [
    path("keys", views.ApiKeysView.as_view(), name="api_keys"),
    path("keys/<uuid:key_id>", views.ApiKeyView.as_view(), name="api_key"),
]
