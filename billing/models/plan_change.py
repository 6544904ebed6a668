"""Changes of plan that wait for the next month: what was chosen, from when on, and what became of it."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from billing.models.plan import PlanVersion


class PlanChangeState(models.TextChoices):
    PENDING = "pending", _("Waits for its day")
    DONE = "done", _("Carried out")
    TAKEN_BACK = "taken_back", _("Taken back")
    # By another choice, of the customer or of an operator.
    REPLACED = "replaced", _("Replaced")


class PlanChange(models.Model):
    """At most one waits for each workspace. Ended once; then it is kept as it is."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # By value: what was chosen outlives a deleted workspace.
    workspace_id = models.UUIDField()
    # The terms that were agreed to, also where the plan has got newer ones since.
    plan_version = models.ForeignKey(PlanVersion, on_delete=models.PROTECT, related_name="+")
    # The first day of a month. A day, not an instant: it begins when the workspace's month does, also where its zone
    # has changed since.
    first_day = models.DateField()
    state = models.CharField(max_length=10, choices=PlanChangeState.choices, default=PlanChangeState.PENDING)
    requested_by_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id"], condition=Q(state="pending"), name="one_plan_change_waits"
            ),
            models.CheckConstraint(
                condition=Q(state="pending", ended_at__isnull=True)
                | (~Q(state="pending") & Q(ended_at__isnull=False)),
                name="plan_change_ended_at",
            ),
            models.CheckConstraint(condition=Q(first_day__day=1), name="plan_change_with_a_month"),
        ]
        indexes = [
            models.Index(fields=["first_day"], condition=Q(state="pending"), name="plan_change_waiting"),
        ]
