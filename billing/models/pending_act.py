"""Operators' acts on money: what one may do alone, and what another must confirm."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _


class PendingActState(models.TextChoices):
    OPEN = "open", _("Waits for a second operator")
    CONFIRMED = "confirmed", _("Confirmed")
    DECLINED = "declined", _("Declined")
    ALONE = "alone", _("Done by one operator")


class PendingAct(models.Model):
    """An act with everything that it needs. Either it was done at once, by one operator alone, or it is done when
    somebody else confirms it. Decided once."""

    # The id of the form that asked for it: a form that is sent twice acts once.
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # A dotted name as in the audit log, such as "customer.credit".
    act = models.CharField(max_length=40)
    # By value: money outlives a deleted workspace. None: about no single one, such as vouchers.
    workspace_id = models.UUIDField(null=True)
    amount_micros = models.BigIntegerField()
    # How much of it counts towards what one operator may do alone; 0 where another confirms.
    counted_micros = models.BigIntegerField(default=0, db_default=0)
    arguments = models.JSONField(default=dict)
    reason = models.CharField(max_length=300)
    state = models.CharField(
        max_length=10, choices=PendingActState.choices, default=PendingActState.OPEN, db_default="open"
    )
    requested_by_id = models.UUIDField()
    decided_by_id = models.UUIDField(null=True)
    decided_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state="open", decided_by_id__isnull=True, decided_at__isnull=True)
                | (~Q(state="open") & Q(decided_by_id__isnull=False, decided_at__isnull=False)),
                name="pending_act_decided_by_somebody",
            ),
            # Whoever asked may take it back, and never confirm it.
            models.CheckConstraint(
                condition=~Q(state="confirmed") | ~Q(decided_by_id=F("requested_by_id")),
                name="pending_act_confirmed_by_another",
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at"], name="pending_act_newest"),
            models.Index(fields=["workspace_id", "-created_at"], name="pending_act_by_workspace"),
        ]
