"""Budgets: what may be spent in a calendar month. Caps on the one wallet of a workspace, never wallets of their own."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class BudgetScope(models.TextChoices):
    WORKSPACE = "workspace", _("Workspace")
    MEMBER = "member", _("Member")
    API_KEY = "api_key", _("API key")


class Budget(models.Model):
    """One limit for the workspace as a whole, a member of it, or one of its keys.

    The month is a calendar month in the workspace's time zone; nothing is reset, the month's usage is summed.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace_id = models.UUIDField()
    scope = models.CharField(max_length=10, choices=BudgetScope.choices)
    # The member's or the key's id; None for the workspace.
    subject_id = models.UUIDField(null=True)
    monthly_micros = models.BigIntegerField()
    # At the hard stop a job is refused; without, people are only told.
    is_hard = models.BooleanField(default=True)
    # At which share of it people are told, in percent.
    warn_percent = models.PositiveSmallIntegerField(default=80)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id", "scope", "subject_id"], nulls_distinct=False, name="budget_once"
            ),
            models.CheckConstraint(
                condition=Q(monthly_micros__gte=0) & Q(warn_percent__gte=1) & Q(warn_percent__lte=100),
                name="budget_sane",
            ),
            models.CheckConstraint(
                condition=Q(scope="workspace", subject_id__isnull=True)
                | (~Q(scope="workspace") & Q(subject_id__isnull=False)),
                name="budget_of_somebody",
            ),
        ]


class AlertKind(models.TextChoices):
    BUDGET_WARNING = "budget_warning", _("Budget nearly used up")
    BUDGET_REACHED = "budget_reached", _("Budget used up")
    LOW_BALANCE = "low_balance", _("Balance is low")
    AUTOMATIC_TOP_UP_OFF = "automatic_top_up_off", _("Automatic top-up was turned off")
    AUTOMATIC_TOP_UP_CAP = "automatic_top_up_cap", _("Automatic top-up has reached its monthly cap")


class BillingAlert(models.Model):
    """That somebody was to be told. Once for each `key`, such as a budget's id, its month and the threshold."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace_id = models.UUIDField()
    kind = models.CharField(max_length=20, choices=AlertKind.choices)
    key = models.CharField(max_length=120, unique=True)
    # What is to be said: amounts in micros and names, never a secret.
    details = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    mailed_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["workspace_id", "-created_at"], name="alert_by_workspace"),
            models.Index(fields=["created_at"], condition=Q(mailed_at__isnull=True), name="alert_to_mail"),
        ]
