from __future__ import annotations

from django.urls import path

from accounts.api import views, webhooks

urlpatterns = [
    path("keys", views.ApiKeysView.as_view(), name="api_keys"),
    path("keys/<uuid:key_id>", views.ApiKeyView.as_view(), name="api_key"),
    path("webhooks", webhooks.WebhooksView.as_view(), name="api_webhooks"),
    path("webhooks/<uuid:endpoint_id>", webhooks.WebhookView.as_view(), name="api_webhook"),
    path(
        "webhooks/<uuid:endpoint_id>/rotate", webhooks.WebhookRotateView.as_view(), name="api_webhook_rotate"
    ),
    path("webhooks/<uuid:endpoint_id>/test", webhooks.WebhookTestView.as_view(), name="api_webhook_test"),
    path(
        "webhooks/<uuid:endpoint_id>/deliveries",
        webhooks.DeliveriesView.as_view(),
        name="api_webhook_deliveries",
    ),
    path(
        "webhooks/deliveries/<uuid:delivery_id>", webhooks.DeliveryView.as_view(), name="api_webhook_delivery"
    ),
    path(
        "webhooks/deliveries/<uuid:delivery_id>/redeliver",
        webhooks.RedeliverView.as_view(),
        name="api_webhook_redeliver",
    ),
]
