"""Where credit comes from, and which of it was spent on what."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from billing.models.ledger import LedgerTransaction


class GrantKind(models.TextChoices):
    INCLUDED = "included", _("Included in the plan")
    PROMOTIONAL = "promotional", _("Given")
    VOUCHER = "voucher", _("Voucher")
    PAID = "paid", _("Paid")


# What goes first: what is lost soonest by its nature, and what was paid for at last. Within the same priority, what
# expires first, then what is oldest.
GRANT_PRIORITY = {
    GrantKind.INCLUDED: 10,
    GrantKind.PROMOTIONAL: 20,
    GrantKind.VOUCHER: 30,
    GrantKind.PAID: 40,
}


class CreditGrant(models.Model):
    """Credit that came in at once. What is left of all grants, less what is owed, is what is available and held."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # By value: money outlives a deleted workspace.
    workspace_id = models.UUIDField()
    kind = models.CharField(max_length=12, choices=GrantKind.choices)
    transaction = models.ForeignKey(LedgerTransaction, on_delete=models.PROTECT, related_name="+")
    amount_micros = models.BigIntegerField()
    remaining_micros = models.BigIntegerField()
    # The small one is spent first.
    priority = models.PositiveSmallIntegerField()
    expires_at = models.DateTimeField(null=True)
    # Beside `remaining_micros`, so that an index can tell without being written with every charge.
    is_spent = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(remaining_micros__gte=0) & Q(remaining_micros__lte=F("amount_micros")),
                name="grant_remaining_within_amount",
            ),
            models.CheckConstraint(condition=Q(amount_micros__gt=0), name="grant_of_something"),
        ]
        indexes = [
            models.Index(
                fields=["workspace_id", "priority", "expires_at", "created_at"],
                condition=Q(is_spent=False),
                name="grant_to_spend",
            ),
            models.Index(fields=["expires_at"], condition=Q(is_spent=False), name="grant_to_expire"),
            models.Index(fields=["workspace_id", "-created_at"], name="grant_by_workspace"),
        ]


class GrantUse(models.Model):
    """What a movement of money took from a grant; negative where it gave back. Never changed: a trigger says so."""

    grant = models.ForeignKey(CreditGrant, on_delete=models.PROTECT, related_name="uses")
    # Found by the index of the constraint below.
    transaction = models.ForeignKey(
        LedgerTransaction, on_delete=models.PROTECT, related_name="grant_uses", db_index=False
    )
    amount_micros = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["transaction", "grant"], name="grant_used_once_per_transaction"),
            models.CheckConstraint(condition=~Q(amount_micros=0), name="grant_use_of_something"),
        ]
