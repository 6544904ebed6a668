"""The credit that a workspace has, by where it came from."""

from __future__ import annotations

import uuid

from django.db.models import F, QuerySet

from billing.models import CreditGrant


def grants_left(workspace_id: uuid.UUID) -> QuerySet[CreditGrant]:
    """What is not spent of each grant, in the order in which it is spent."""
    return CreditGrant.objects.filter(workspace_id=workspace_id, is_spent=False).order_by(
        "priority", F("expires_at").asc(nulls_last=True), "created_at", "pk"
    )
