"""Payments: what was asked of a provider, what it said, and what was booked for it."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from billing.models.grant import CreditGrant
from billing.models.invoice import Invoice


class PaymentPurpose(models.TextChoices):
    TOP_UP = "top_up", _("Top-up")
    AUTOMATIC_TOP_UP = "automatic_top_up", _("Automatic top-up")
    INVOICE = "invoice", _("Invoice")


class PaymentState(models.TextChoices):
    CREATED = "created", _("Begun")
    # The provider was asked, and it is not known what it did: it is asked again, never with another key.
    UNKNOWN = "unknown", _("Being looked into")
    SUCCEEDED = "succeeded", _("Paid")
    FAILED = "failed", _("Failed")
    EXPIRED = "expired", _("Not paid in time")


class Payment(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # By value: payments outlive a deleted workspace.
    workspace_id = models.UUIDField()
    provider = models.CharField(max_length=20)
    purpose = models.CharField(max_length=20, choices=PaymentPurpose.choices)
    state = models.CharField(max_length=10, choices=PaymentState.choices, default=PaymentState.CREATED)
    currency = models.CharField(max_length=3)
    amount_micros = models.BigIntegerField()
    refunded_micros = models.BigIntegerField(default=0)
    disputed_micros = models.BigIntegerField(default=0)
    # The customer's, for the request; sent on to the provider as its own idempotency key.
    idempotency_key = models.CharField(max_length=120)
    # Its name at the provider; empty until the provider has given one.
    provider_reference = models.CharField(max_length=120, blank=True)
    # Where the customer pays, where the provider has a page for that.
    pay_url = models.URLField(max_length=2000, blank=True)
    failure_code = models.CharField(max_length=60, blank=True)
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="payments", null=True)
    # The credit that it brought; set together with `succeeded`.
    grant = models.OneToOneField(CreditGrant, on_delete=models.PROTECT, related_name="payment", null=True)
    # The saved method that it is charged to; None: the customer pays on the provider's page.
    method = models.ForeignKey("PaymentMethod", on_delete=models.PROTECT, related_name="payments", null=True)
    # Whether the method that it is paid with is to be saved.
    saves_method = models.BooleanField(default=False, db_default=False)
    # Who recorded it, where an operator did.
    recorded_by_id = models.UUIDField(null=True)
    note = models.CharField(max_length=300, blank=True)
    asked_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace_id", "idempotency_key"], name="payment_asked_once"),
            models.UniqueConstraint(
                fields=["provider", "provider_reference"],
                condition=~Q(provider_reference=""),
                name="payment_of_provider_once",
            ),
            # At most one automatic top-up is on its way.
            models.UniqueConstraint(
                fields=["workspace_id"],
                condition=Q(purpose="automatic_top_up", state__in=["created", "unknown"]),
                name="one_automatic_top_up",
            ),
            models.CheckConstraint(
                condition=Q(amount_micros__gt=0)
                & Q(refunded_micros__gte=0)
                & Q(disputed_micros__gte=0)
                & Q(refunded_micros__lte=F("amount_micros")),
                name="payment_sane",
            ),
            models.CheckConstraint(
                condition=Q(state="succeeded", grant__isnull=False)
                | (~Q(state="succeeded") & Q(grant__isnull=True)),
                name="paid_is_booked",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace_id", "-created_at"], name="payment_by_workspace"),
            models.Index(
                fields=["asked_at"], condition=Q(state__in=["created", "unknown"]), name="payment_to_ask"
            ),
        ]


class Refund(models.Model):
    """A payment, or a part of it, that goes back to whoever paid. Its credit is taken out when it begins, and put back
    when the provider could not pay it out."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="refunds")
    state = models.CharField(max_length=10, choices=PaymentState.choices, default=PaymentState.CREATED)
    amount_micros = models.BigIntegerField()
    reason = models.CharField(max_length=300)
    idempotency_key = models.CharField(max_length=120, unique=True)
    provider_reference = models.CharField(max_length=120, blank=True)
    requested_by_id = models.UUIDField(null=True)
    failure_code = models.CharField(max_length=60, blank=True, default="", db_default="")
    asked_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(amount_micros__gt=0), name="refund_of_something")]
        indexes = [
            models.Index(
                fields=["asked_at"], condition=Q(state__in=["created", "unknown"]), name="refund_to_ask"
            ),
        ]


class DisputeState(models.TextChoices):
    OPEN = "open", _("Open")
    WON = "won", _("Won")
    LOST = "lost", _("Lost")


class Dispute(models.Model):
    """A payer's bank took the money back, or says that it will. Booked when the money moves, once each way."""

    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="disputes")
    provider_reference = models.CharField(max_length=120)
    state = models.CharField(max_length=5, choices=DisputeState.choices, default=DisputeState.OPEN)
    amount_micros = models.BigIntegerField()
    withdrawn_at = models.DateTimeField(null=True)
    reinstated_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["payment", "provider_reference"], name="dispute_once"),
        ]


class ProviderEvent(models.Model):
    """The inbox: what a provider told us, stored before it is understood, worked on as often as it takes."""

    provider = models.CharField(max_length=20)
    event_id = models.CharField(max_length=200)
    kind = models.CharField(max_length=100)
    # What the event is about, as the provider names it: the thing is asked for anew, never taken from here.
    subject = models.CharField(max_length=200, blank=True)
    received_at = models.DateTimeField(auto_now_add=True)
    processed_at = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    error_code = models.CharField(max_length=60, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "event_id"], name="provider_event_once")]
        indexes = [
            models.Index(
                fields=["received_at"], condition=Q(processed_at__isnull=True), name="provider_event_open"
            ),
            models.Index(
                fields=["processed_at"], condition=Q(processed_at__isnull=False), name="provider_event_done"
            ),
        ]


class PaymentMethod(models.Model):
    """A saved way to pay: the provider's name for it and what people know it by, never a card's number."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace_id = models.UUIDField()
    provider = models.CharField(max_length=20)
    provider_customer = models.CharField(max_length=120)
    provider_reference = models.CharField(max_length=120)
    label = models.CharField(max_length=60)
    is_default = models.BooleanField(default=False)
    removed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id"],
                condition=Q(is_default=True, removed_at__isnull=True),
                name="one_default_payment_method",
            ),
            models.UniqueConstraint(
                fields=["provider", "provider_reference"], name="payment_method_of_provider_once"
            ),
        ]


class AutomaticTopUp(models.Model):
    """When the balance falls below `below_micros`, `amount_micros` are charged to the saved method: one at a time, not
    again within the cooldown (also after a failure), and never more than the cap in a calendar month."""

    workspace_id = models.UUIDField(primary_key=True)
    is_on = models.BooleanField(default=False)
    below_micros = models.BigIntegerField()
    amount_micros = models.BigIntegerField()
    monthly_cap_micros = models.BigIntegerField()
    cooldown_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(below_micros__gte=0)
                & Q(amount_micros__gt=0)
                & Q(monthly_cap_micros__gte=F("amount_micros")),
                name="automatic_top_up_sane",
            ),
        ]
