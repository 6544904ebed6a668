"""Webhooks to customers: where they are sent, what is to be sent, and each try of it."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models.workspace import Workspace


class SwitchedOff(models.TextChoices):
    """Why an endpoint gets nothing."""

    BY_PEOPLE = "by_people", _("Switched off by you")
    FAILING = "failing", _("Switched off after five days of failures")
    GONE = "gone", _("Switched off: it answered 410 Gone")


class WebhookEndpoint(models.Model):
    """An address of a customer's. Its secret is not here: it is derived (accounts.webhooks.secrets) from `secret_id`.

    Which events any endpoint of a workspace wants is kept in `Workspace.webhook_events` too, by whoever writes here.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="webhook_endpoints")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True
    )
    url = models.CharField(max_length=2000)
    description = models.CharField(max_length=100, blank=True)
    event_types = ArrayField(models.CharField(max_length=40))
    secret_id = models.UUIDField(default=uuid.uuid4)
    # Signs beside the new one until then.
    previous_secret_id = models.UUIDField(null=True)
    previous_secret_until = models.DateTimeField(null=True)
    is_on = models.BooleanField(default=True)
    switched_off = models.CharField(max_length=10, choices=SwitchedOff.choices, blank=True)
    switched_off_at = models.DateTimeField(null=True)
    # When its owners were told that we switched it off.
    owners_told_at = models.DateTimeField(null=True)
    # The first failure since the last success.
    failing_since = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # Hidden at once; the row goes with its deliveries a while later, when nothing can point at it any more.
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(is_on=True, switched_off="") | (Q(is_on=False) & ~Q(switched_off="")),
                name="webhook_endpoint_off_for_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(previous_secret_id__isnull=True, previous_secret_until__isnull=True)
                | Q(previous_secret_id__isnull=False, previous_secret_until__isnull=False),
                name="webhook_old_secret_ends",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-created_at"], name="webhook_endpoint_by_workspace"),
            models.Index(
                fields=["switched_off_at"],
                condition=Q(switched_off__in=["failing", "gone"], owners_told_at__isnull=True),
                name="webhook_endpoint_to_tell",
            ),
        ]


class DeliveryState(models.TextChoices):
    PENDING = "pending", _("Waiting")
    SENDING = "sending", _("Being sent")
    DELIVERED = "delivered", _("Delivered")
    FAILED = "failed", _("Failed")


class WebhookDelivery(models.Model):
    """One fact for one endpoint: the outbox. Written in the transaction that made the fact; sent at least once, always
    under the same id.

    `attempts` is the fence: whoever records an outcome names the number of the try that it was.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    event_type = models.CharField(max_length=40)
    # What happened, such as "job.succeeded:<id>": an endpoint hears of it once.
    fact = models.CharField(max_length=120)
    # Ids and numbers; never a customer's text, never a secret.
    data = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=DeliveryState.choices, default=DeliveryState.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    # How many of the attempts were made before it was asked for again by hand: the waits begin anew.
    attempts_before = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    leased_until = models.DateTimeField(null=True)
    # Of the last attempt.
    status_code = models.PositiveSmallIntegerField(null=True)
    error_code = models.CharField(max_length=40, blank=True)
    delivered_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "fact"], name="webhook_fact_once"),
            models.CheckConstraint(
                condition=Q(state="sending", leased_until__isnull=False)
                | (~Q(state="sending") & Q(leased_until__isnull=True)),
                name="webhook_lease_while_sent",
            ),
        ]
        indexes = [
            models.Index(
                fields=["endpoint", "next_attempt_at"], condition=Q(state="pending"), name="webhook_due"
            ),
            models.Index(fields=["endpoint"], condition=Q(state="sending"), name="webhook_in_flight"),
            models.Index(fields=["endpoint", "-created_at"], name="webhook_delivery_newest"),
            models.Index(fields=["created_at"], name="webhook_delivery_age"),
        ]


class WebhookAttempt(models.Model):
    """One try of a delivery, as it ended."""

    delivery = models.ForeignKey(WebhookDelivery, on_delete=models.CASCADE, related_name="tries")
    number = models.PositiveSmallIntegerField()
    started_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()
    status_code = models.PositiveSmallIntegerField(null=True)
    error_code = models.CharField(max_length=40, blank=True)
    # The beginning of the answer's body, as text.
    response_start = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["delivery", "number"], name="webhook_attempt_once"),
        ]
