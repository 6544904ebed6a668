"""Double entry. A transaction's entries sum to zero and are never changed or deleted: triggers say so."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


def default_time_zone() -> str:
    """The time zone of a workspace that has chosen none: the operator's."""
    return settings.TIME_ZONE


class CreditAccount(models.Model):
    """A workspace's cached balance, changed only by conditional update beside the ledger's entries.

    `available_micros` may be negative: down to the credit limit of a workspace that pays later, and further where money
    was taken back from outside, such as by a chargeback. `owed_micros` is what was spent beyond all grants.
    """

    # By value, not by key: money outlives a deleted workspace.
    workspace_id = models.UUIDField(primary_key=True)
    currency = models.CharField(max_length=3, default="CNY")
    available_micros = models.BigIntegerField(default=0)
    held_micros = models.BigIntegerField(default=0)
    owed_micros = models.BigIntegerField(default=0)
    credit_limit_micros = models.BigIntegerField(default=0)
    # In which the workspace's days and billing periods begin. Usage is dated by it when it is written down.
    time_zone = models.CharField(max_length=50, default=default_time_zone, db_default="UTC")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(held_micros__gte=0), name="held_never_negative"),
            models.CheckConstraint(condition=models.Q(owed_micros__gte=0), name="owed_never_negative"),
            models.CheckConstraint(
                condition=models.Q(credit_limit_micros__gte=0), name="credit_limit_never_negative"
            ),
        ]


class TransactionKind(models.TextChoices):
    GRANT = "grant", _("Credit granted")
    TOP_UP = "top_up", _("Paid in")
    VOUCHER = "voucher", _("Voucher redeemed")
    HOLD = "hold", _("Set aside for a job")
    CAPTURE = "capture", _("Charged for speech")
    RELEASE = "release", _("Set free again")
    REFUND = "refund", _("Given back")
    EXPIRY = "expiry", _("Credit expired")
    ADJUSTMENT = "adjustment", _("Adjusted by the operator")
    FEE = "fee", _("Monthly fee")
    TAX = "tax", _("Tax")
    PAYOUT = "payout", _("Payment refunded")
    DISPUTE = "dispute", _("Payment disputed")
    DISPUTE_WON = "dispute_won", _("Dispute decided for us")


class LedgerAccount(models.TextChoices):
    """Whose money it is. A workspace's own are available and held; the others are the platform's side of it."""

    AVAILABLE = "available", _("Available")
    HELD = "held", _("Held")
    REVENUE = "revenue", _("Revenue")
    PROMOTION = "promotion", _("Promotion")
    PAYMENTS = "payments", _("Payments")
    EXPIRED = "expired", _("Expired credit")
    ADJUSTMENT = "adjustment", _("Adjustments")
    TAX = "tax", _("Tax")


class LedgerTransaction(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace_id = models.UUIDField()
    kind = models.CharField(max_length=12, choices=TransactionKind.choices)
    idempotency_key = models.CharField(max_length=200)
    job_id = models.UUIDField(null=True)
    # Why, where a person decided it.
    reason = models.CharField(max_length=300, blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # Not `unique=True`: that would keep a second index, for searches by the beginning of a key.
        constraints = [models.UniqueConstraint(fields=["idempotency_key"], name="ledger_key_once")]
        indexes = [
            models.Index(fields=["workspace_id", "-created_at"], name="ledger_by_workspace"),
            models.Index(fields=["job_id"], name="ledger_by_job"),
            models.Index(
                fields=["workspace_id", "created_at"],
                condition=models.Q(kind="refund"),
                name="ledger_refunds",
            ),
            # What earns, of all workspaces, by when: the console adds it up by the hour.
            models.Index(
                fields=["created_at"],
                condition=models.Q(kind__in=["capture", "fee", "refund"]),
                name="ledger_earned",
            ),
            models.Index(
                fields=["-created_at"], condition=models.Q(kind="refund"), name="ledger_newest_refunds"
            ),
        ]


class LedgerEntry(models.Model):
    # Checked by the trigger that checks the sum, once per statement: a foreign key would lock and write its
    # transaction's row once for each entry. No transaction is ever deleted.
    transaction = models.ForeignKey(
        LedgerTransaction, on_delete=models.PROTECT, related_name="entries", db_constraint=False
    )
    account = models.CharField(max_length=10, choices=LedgerAccount.choices)
    amount_micros = models.BigIntegerField()
