"""A person's own pages."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from accounts import views, webhook_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("developers/", views.developers, name="developers"),
    path("developers/keys/<uuid:key_id>/revoke/", views.key_revoke, name="key_revoke"),
    path("developers/webhooks/", webhook_views.webhooks, name="webhooks"),
    path("developers/webhooks/<uuid:endpoint_id>/", webhook_views.webhook, name="webhook"),
    path(
        "developers/webhooks/<uuid:endpoint_id>/switch/", webhook_views.webhook_switch, name="webhook_switch"
    ),
    path(
        "developers/webhooks/<uuid:endpoint_id>/rotate/", webhook_views.webhook_rotate, name="webhook_rotate"
    ),
    path("developers/webhooks/<uuid:endpoint_id>/test/", webhook_views.webhook_test, name="webhook_test"),
    path(
        "developers/webhooks/<uuid:endpoint_id>/delete/", webhook_views.webhook_delete, name="webhook_delete"
    ),
    path(
        "developers/webhooks/deliveries/<uuid:delivery_id>/",
        webhook_views.webhook_delivery,
        name="webhook_delivery",
    ),
    path(
        "developers/webhooks/deliveries/<uuid:delivery_id>/redeliver/",
        webhook_views.webhook_redeliver,
        name="webhook_redeliver",
    ),
    path("settings/", views.account_settings, name="account_settings"),
    path("workspace/", views.workspace_choice, name="choose_workspace"),
]
