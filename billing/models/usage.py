"""What an attempt consumed and what it was charged; one row per attempt, billable or not. And its sums by day."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class UsageRecord(models.Model):
    """Measured quantities, and the rate that was in force for them. A row is never changed."""

    # By value: usage outlives the rows it describes.
    attempt_id = models.UUIDField(unique=True)
    job_id = models.UUIDField(db_index=True)
    workspace_id = models.UUIDField()
    voice_id = models.UUIDField()
    user_id = models.UUIDField(null=True)
    api_key_id = models.UUIDField(null=True)
    device_name = models.CharField(max_length=120)
    device_class = models.CharField(max_length=30, default="", db_default="")
    job_class = models.CharField(max_length=12)
    billable = models.BooleanField()
    gpu_ms = models.BigIntegerField()
    audio_ms = models.BigIntegerField()
    characters = models.IntegerField()
    price_version_id = models.BigIntegerField(null=True)
    gpu_second_micros = models.BigIntegerField(default=0, db_default=0)
    # What `gpu_ms` cost at that rate, and what was taken: less where the hold was used up, more where the job's
    # minimum was.
    rated_micros = models.BigIntegerField(default=0, db_default=0)
    charged_micros = models.BigIntegerField(default=0, db_default=0)
    # The day in the workspace's own time zone on which it ended. Set by a trigger.
    day = models.DateField(null=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["workspace_id", "-created_at"], name="usage_by_workspace"),
            models.Index(fields=["workspace_id", "day"], name="usage_by_workspace_day"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(gpu_ms__gte=0) & Q(audio_ms__gte=0) & Q(characters__gte=0),
                name="usage_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(rated_micros__gte=0) & Q(charged_micros__gte=0), name="usage_charge_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(billable=True) | Q(charged_micros=0), name="usage_unbillable_costs_nothing"
            ),
        ]


class UsageDay(models.Model):
    """The sums of a day's records, kept by a trigger: what pages, exports and invoices read.

    One row for each combination of what people ask by.
    """

    workspace_id = models.UUIDField()
    day = models.DateField()
    device_class = models.CharField(max_length=30)
    job_class = models.CharField(max_length=12)
    voice_id = models.UUIDField()
    user_id = models.UUIDField(null=True)
    api_key_id = models.UUIDField(null=True)
    billable = models.BooleanField()
    records = models.BigIntegerField()
    gpu_ms = models.BigIntegerField()
    audio_ms = models.BigIntegerField()
    characters = models.BigIntegerField()
    rated_micros = models.BigIntegerField()
    charged_micros = models.BigIntegerField()
    # What was given back on that day, dated by itself: of what was charged on it or before.
    refunded_micros = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "workspace_id",
                    "day",
                    "device_class",
                    "job_class",
                    "voice_id",
                    "user_id",
                    "api_key_id",
                    "billable",
                ],
                nulls_distinct=False,
                name="usage_day_once",
            ),
        ]
