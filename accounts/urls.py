"""A person's own pages."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from accounts import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("developers/", views.developers, name="developers"),
    path("developers/keys/<uuid:key_id>/revoke/", views.key_revoke, name="key_revoke"),
    path("settings/", views.account_settings, name="account_settings"),
    path("workspace/", views.workspace_choice, name="choose_workspace"),
]
