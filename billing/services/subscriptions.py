"""Which plan a workspace is on: the one place where that is written, with the limits that follow."""

from __future__ import annotations

import uuid
from datetime import datetime

from accounts.services.workspaces import put_limits_in_force
from billing.errors import PlanNotInForce
from billing.models import PlanVersion, Subscription


def begin(
    *, workspace_id: uuid.UUID, current: Subscription | None, plan_version: PlanVersion, at: datetime
) -> Subscription:
    """End what the workspace is on, and begin a version of a plan, at that moment; its limits are in force at once.

    Needs the lock of the credit account.

    Raises:
        PlanNotInForce: the version is not in force at that moment, or the plan before it began later. Nothing changed.
    """
    if plan_version.effective_at > at or (current is not None and current.starts_at > at):
        raise PlanNotInForce
    if current is not None:
        Subscription.objects.filter(pk=current.pk, ends_at__isnull=True).update(ends_at=at)
    subscription = Subscription.objects.create(
        workspace_id=workspace_id, plan_version=plan_version, starts_at=at
    )
    put_limits_in_force(
        workspace_id=workspace_id,
        weight=plan_version.fair_share_weight,
        queued_jobs=plan_version.queued_jobs,
        running_segments=plan_version.running_segments,
        requests_per_minute=plan_version.requests_per_minute,
        characters_per_day=plan_version.characters_per_day,
        voices=plan_version.voices,
        storage_bytes=plan_version.storage_bytes,
        longest_job_characters=plan_version.longest_job_characters,
        retention_days=plan_version.retention_days,
    )
    return subscription
