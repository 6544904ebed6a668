"""Plans: what a workspace pays each month, and what it may do for it. A version that was subscribed to is kept."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q


class Plan(models.Model):
    code = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=60)
    # New workspaces begin with it. At most one.
    is_default = models.BooleanField(default=False)
    # Customers may change to it by themselves.
    is_offered = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=Q(is_default=True), name="one_default_plan"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PlanVersion(models.Model):
    """What a plan means from a moment on. A limit of None is the platform's own (the settings)."""

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    currency = models.CharField(max_length=3, default="CNY")
    monthly_fee_micros = models.BigIntegerField(default=0)
    # Given as credit at the beginning of each period, at the interactive price; what is left ends with the period.
    included_gpu_seconds = models.PositiveIntegerField(default=0)
    fair_share_weight = models.PositiveSmallIntegerField(default=1)
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    characters_per_day = models.PositiveIntegerField(null=True, blank=True)
    queued_jobs = models.PositiveIntegerField(null=True, blank=True)
    running_segments = models.PositiveIntegerField(null=True, blank=True)
    voices = models.PositiveIntegerField(null=True, blank=True)
    storage_bytes = models.BigIntegerField(null=True, blank=True)
    retention_days = models.PositiveIntegerField(null=True, blank=True)
    longest_job_characters = models.PositiveIntegerField(null=True, blank=True)
    effective_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["plan", "number"], name="plan_version_once"),
            models.CheckConstraint(
                condition=Q(monthly_fee_micros__gte=0) & Q(fair_share_weight__gte=1), name="plan_version_sane"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.plan_id} #{self.number}"


class Subscription(models.Model):
    """Which version of a plan a workspace has had, from when until when. The newest has no end."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # By value: what was billed outlives a deleted workspace.
    workspace_id = models.UUIDField()
    plan_version = models.ForeignKey(PlanVersion, on_delete=models.PROTECT, related_name="+")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id"], condition=Q(ends_at__isnull=True), name="one_plan_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(ends_at__isnull=True) | Q(ends_at__gte=F("starts_at")),
                name="subscription_ends_after_start",
            ),
        ]
        indexes = [models.Index(fields=["workspace_id", "starts_at"], name="subscription_by_workspace")]
