"""The addresses that providers are told."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from billing.webhooks import views

urlpatterns: list[URLPattern | URLResolver] = [
    # Without a slash at its end, as the providers' own examples have it.
    path("<slug:provider_name>", views.receive, name="payment_webhook"),
]
