"""Endpoints and deliveries for tests."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django.db import connection

from accounts.models import WebhookDelivery, WebhookEndpoint, Workspace
from accounts.services.webhook_endpoints import create_endpoint
from accounts.services.webhook_events import note_fact
from accounts.webhooks.catalogue import EVENT_NAMES, JOB_SUCCEEDED


def make_endpoint(
    workspace: Workspace, url: str = "https://hooks.example/voicepool", events: Sequence[str] = EVENT_NAMES
) -> tuple[WebhookEndpoint, str]:
    """An endpoint and its secret."""
    return create_endpoint(workspace=workspace, user=None, url=url, event_types=events)


def happened(workspace: Workspace, *, event_type: str = JOB_SUCCEEDED, **data: Any) -> str:
    """Something that a program wants to hear of; returns its subject."""
    subject = str(uuid.uuid4())
    note_fact(workspace_id=workspace.pk, event_type=event_type, subject=subject, data={"id": subject, **data})
    return subject


def only_delivery() -> WebhookDelivery:
    return WebhookDelivery.objects.select_related("endpoint").get()


def make_due() -> None:
    """All that waits is due now, by the database's clock."""
    _execute("UPDATE accounts_webhookdelivery SET next_attempt_at = now() WHERE state = 'pending'")


def let_leases_end() -> None:
    """As if a minute had passed since whoever claimed died."""
    _execute(
        "UPDATE accounts_webhookdelivery SET leased_until = now() - interval '1 second' WHERE state = 'sending'"
    )


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
