"""Vouchers: codes that an operator hands out, each redeemed once."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from billing.models.grant import CreditGrant


class VoucherState(models.TextChoices):
    NEW = "new", _("Not redeemed")
    REDEEMED = "redeemed", _("Redeemed")
    VOIDED = "voided", _("Voided")


class VoucherBatch(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    amount_micros = models.BigIntegerField()
    currency = models.CharField(max_length=3, default="CNY")
    # Until when a code may be redeemed, and how long the credit lasts then; None: without end.
    expires_at = models.DateTimeField(null=True)
    credit_days = models.PositiveIntegerField(null=True)
    created_by_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(amount_micros__gt=0), name="voucher_of_something")]


class Voucher(models.Model):
    """A code is known by its hash, as a key is: whoever reads the database cannot redeem it."""

    batch = models.ForeignKey(VoucherBatch, on_delete=models.PROTECT, related_name="vouchers")
    code_sha256 = models.CharField(max_length=64, unique=True)
    # Its first characters, by which people find it.
    code_start = models.CharField(max_length=8)
    state = models.CharField(max_length=8, choices=VoucherState.choices, default=VoucherState.NEW)
    workspace_id = models.UUIDField(null=True)
    redeemed_by_id = models.UUIDField(null=True)
    redeemed_at = models.DateTimeField(null=True)
    grant = models.OneToOneField(CreditGrant, on_delete=models.PROTECT, related_name="voucher", null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state="redeemed", grant__isnull=False)
                | (~Q(state="redeemed") & Q(grant__isnull=True)),
                name="redeemed_is_booked",
            ),
        ]
