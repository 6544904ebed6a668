"""Reads about webhooks. All begin with the workspace."""

from __future__ import annotations

from django.db.models import QuerySet

from accounts.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint, Workspace
from accounts.tenancy import owned_by


def endpoints_of(workspace: Workspace) -> QuerySet[WebhookEndpoint]:
    """The workspace's endpoints, those that are switched off included, newest first."""
    own = owned_by(WebhookEndpoint.objects.all(), workspace)
    return own.filter(deleted_at__isnull=True).order_by("-created_at", "-pk")


def deliveries_of(workspace: Workspace) -> QuerySet[WebhookDelivery]:
    """The deliveries to the workspace's endpoints, newest first."""
    own = owned_by(WebhookDelivery.objects.all(), workspace).filter(endpoint__deleted_at__isnull=True)
    return own.select_related("endpoint").order_by("-created_at", "-pk")


def tries_of(delivery: WebhookDelivery) -> list[WebhookAttempt]:
    """Each try of a delivery, the newest first."""
    return list(WebhookAttempt.objects.filter(delivery=delivery).order_by("-number"))
