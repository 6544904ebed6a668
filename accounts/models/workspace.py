"""The workspace: the boundary of isolation and of billing."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Value
from django.utils.translation import gettext_lazy as _

_TEXTS = ArrayField(models.CharField(max_length=40))


class WorkspaceKind(models.TextChoices):
    PERSONAL = "personal", _("Personal")
    TEAM = "team", _("Team")
    PLATFORM = "platform", _("Platform")


class Role(models.TextChoices):
    OWNER = "owner", _("Owner")
    ADMIN = "admin", _("Administrator")
    MEMBER = "member", _("Member")
    BILLING = "billing", _("Billing")


class ExplicitLabel(models.TextChoices):
    """What is heard of the label "made by AI": the kinds of tts.audio.explicit."""

    BY_OPERATOR = "", _("As the operator's rule says")
    NONE = "none", _("Nothing")
    TONE = "tone", _("A tone")
    SPOKEN = "spoken", _("Words")


class LabelPosition(models.TextChoices):
    START = "start", _("At the start")
    END = "end", _("At the end")


class Workspace(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=WorkspaceKind.choices, default=WorkspaceKind.PERSONAL)
    # Fair-share weight: a workspace of weight 2 gets twice the device time of one of weight 1 when both wait.
    weight = models.PositiveSmallIntegerField(default=1)
    # The limits in force, instead of the platform's. The workspace's plan writes them (billing.services.plans).
    # Live jobs at once, and segments that may be spoken at the same time.
    queued_jobs_limit = models.PositiveIntegerField(null=True, blank=True)
    running_segments_limit = models.PositiveIntegerField(null=True, blank=True)
    requests_per_minute_limit = models.PositiveIntegerField(null=True, blank=True)
    characters_per_day_limit = models.PositiveIntegerField(null=True, blank=True)
    voices_limit = models.PositiveIntegerField(null=True, blank=True)
    storage_bytes_limit = models.BigIntegerField(null=True, blank=True)
    longest_job_characters_limit = models.PositiveIntegerField(null=True, blank=True)
    retention_days = models.PositiveIntegerField(null=True, blank=True)
    # What any of its webhook endpoints that are on wants to hear of (accounts.services.webhook_endpoints writes it), so
    # that whoever ends a job need not look for endpoints.
    webhook_events = ArrayField(
        models.CharField(max_length=40), default=list, db_default=Value([], output_field=_TEXTS), blank=True
    )
    # How its audio is delivered: what is heard of the label "made by AI" (empty: as the operator's rule says), where,
    # and how loud (NULL: as the engine left it). See tts.audio.explicit.
    explicit_label = models.CharField(
        max_length=10, choices=ExplicitLabel.choices, blank=True, default="", db_default=""
    )
    label_position = models.CharField(
        max_length=10, choices=LabelPosition.choices, default=LabelPosition.START, db_default="start"
    )
    loudness_lufs = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(-31.0), MaxValueValidator(-12.0)]
    )
    created_at = models.DateTimeField(auto_now_add=True)
    suspended_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="membership_once"),
        ]
