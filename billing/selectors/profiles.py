"""Who is billed for a workspace."""

from __future__ import annotations

import uuid

from billing.models import BillingProfile


def profile_of(workspace_id: uuid.UUID) -> BillingProfile:
    """What the workspace said, or an empty one that is not stored."""
    return BillingProfile.objects.filter(pk=workspace_id).first() or BillingProfile(workspace_id=workspace_id)
