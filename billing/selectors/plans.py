"""Which plan a workspace is on, and was on."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db.models import Q
from django.db.models.functions import Now

from billing.models import Plan, PlanChange, PlanChangeState, PlanVersion, Subscription


def current_subscription(workspace_id: uuid.UUID) -> Subscription | None:
    """What the workspace is on now, with its plan; None for one that was never put on any."""
    return (
        Subscription.objects.select_related("plan_version__plan")
        .filter(workspace_id=workspace_id, ends_at__isnull=True)
        .first()
    )


def waiting_change(workspace_id: uuid.UUID) -> PlanChange | None:
    """What begins with the next month by the customer's choice, with its plan; None where nothing does."""
    return (
        PlanChange.objects.select_related("plan_version__plan")
        .filter(workspace_id=workspace_id, state=PlanChangeState.PENDING)
        .first()
    )


def begins_next_month(current: PlanVersion | None, version: PlanVersion) -> bool:
    """Whether a customer who is on `current` gets `version` with the next month only: it costs or includes less."""
    return current is not None and (
        version.monthly_fee_micros < current.monthly_fee_micros
        or version.included_gpu_seconds < current.included_gpu_seconds
    )


def subscriptions_within(workspace_id: uuid.UUID, start: datetime, end: datetime) -> list[Subscription]:
    """Everything that the workspace was on at some moment of [start, end), the earliest first."""
    return list(
        Subscription.objects.select_related("plan_version__plan")
        .filter(Q(ends_at__isnull=True) | Q(ends_at__gt=start), workspace_id=workspace_id, starts_at__lt=end)
        .order_by("starts_at")
    )


def newest_version(plan: Plan) -> PlanVersion | None:
    """The version of a plan that is in force."""
    return plan.versions.filter(effective_at__lte=Now()).order_by("-effective_at", "-number").first()


def default_plan_version() -> PlanVersion | None:
    """What new workspaces begin with."""
    plan = Plan.objects.filter(is_default=True).first()
    return newest_version(plan) if plan is not None else None


def offered_plans() -> list[PlanVersion]:
    """The versions in force of the plans that customers may choose, the cheapest first."""
    versions = [newest_version(plan) for plan in Plan.objects.filter(is_offered=True).order_by("code")]
    return sorted(
        (version for version in versions if version is not None),
        key=lambda version: (version.monthly_fee_micros, version.plan_id),
    )
