"""Double entry. A transaction's entries sum to zero and are never changed or deleted: triggers say so."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _


class CreditAccount(models.Model):
    """A workspace's cached balance, changed only by conditional update beside the ledger's entries."""

    # By value, not by key: money outlives a deleted workspace.
    workspace_id = models.UUIDField(primary_key=True)
    currency = models.CharField(max_length=3, default="CNY")
    available_micros = models.BigIntegerField(default=0)
    held_micros = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(available_micros__gte=0), name="available_never_negative"
            ),
            models.CheckConstraint(condition=models.Q(held_micros__gte=0), name="held_never_negative"),
        ]


class TransactionKind(models.TextChoices):
    GRANT = "grant", _("Credit granted")
    HOLD = "hold", _("Set aside for a job")
    CAPTURE = "capture", _("Charged for speech")
    RELEASE = "release", _("Set free again")
    REFUND = "refund", _("Given back")


class LedgerAccount(models.TextChoices):
    AVAILABLE = "available", _("Available")
    HELD = "held", _("Held")
    REVENUE = "revenue", _("Revenue")
    PROMOTION = "promotion", _("Promotion")


class LedgerTransaction(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace_id = models.UUIDField()
    kind = models.CharField(max_length=10, choices=TransactionKind.choices)
    idempotency_key = models.CharField(max_length=120, unique=True)
    job_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["workspace_id", "-created_at"], name="ledger_by_workspace"),
            models.Index(fields=["job_id"], name="ledger_by_job"),
        ]


class LedgerEntry(models.Model):
    transaction = models.ForeignKey(LedgerTransaction, on_delete=models.PROTECT, related_name="entries")
    account = models.CharField(max_length=10, choices=LedgerAccount.choices)
    amount_micros = models.BigIntegerField()
