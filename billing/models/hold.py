"""Money set aside for a job. Settled once: what was used is captured, the rest goes back."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _


class HoldState(models.TextChoices):
    OPEN = "open", _("Open")
    CLOSED = "closed", _("Closed")


class Hold(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace_id = models.UUIDField()
    job_id = models.UUIDField(unique=True)
    # Whose budgets it counts against.
    user_id = models.UUIDField(null=True)
    api_key_id = models.UUIDField(null=True)
    state = models.CharField(max_length=10, choices=HoldState.choices, default=HoldState.OPEN)
    amount_micros = models.BigIntegerField()
    captured_micros = models.BigIntegerField(default=0)
    # The price of what was used so far, and what the job costs at least once anything was used.
    rated_micros = models.BigIntegerField(default=0, db_default=0)
    minimum_micros = models.BigIntegerField(default=0, db_default=0)
    refunded_micros = models.BigIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(amount_micros__gte=0), name="hold_not_negative"),
            models.CheckConstraint(
                condition=Q(captured_micros__gte=0) & Q(captured_micros__lte=F("amount_micros")),
                name="capture_within_hold",
            ),
            models.CheckConstraint(
                condition=Q(refunded_micros__gte=0) & Q(refunded_micros__lte=F("captured_micros")),
                name="refund_within_capture",
            ),
            models.CheckConstraint(
                condition=Q(rated_micros__gte=0) & Q(minimum_micros__gte=0), name="hold_rates_not_negative"
            ),
        ]
        indexes = [
            models.Index(fields=["created_at"], condition=Q(state="open"), name="hold_open_by_age"),
            models.Index(fields=["workspace_id"], condition=Q(state="open"), name="hold_open_by_workspace"),
        ]
