"""What an attempt consumed. Quantities only, never money; one row per attempt, billable or not."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class UsageRecord(models.Model):
    # By value: usage outlives the rows it describes.
    attempt_id = models.UUIDField(unique=True)
    job_id = models.UUIDField(db_index=True)
    workspace_id = models.UUIDField()
    voice_id = models.UUIDField()
    user_id = models.UUIDField(null=True)
    api_key_id = models.UUIDField(null=True)
    device_name = models.CharField(max_length=120)
    job_class = models.CharField(max_length=12)
    billable = models.BooleanField()
    gpu_ms = models.BigIntegerField()
    audio_ms = models.BigIntegerField()
    characters = models.IntegerField()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["workspace_id", "-created_at"], name="usage_by_workspace")]
        constraints = [
            models.CheckConstraint(
                condition=Q(gpu_ms__gte=0) & Q(audio_ms__gte=0) & Q(characters__gte=0),
                name="usage_not_negative",
            ),
        ]
