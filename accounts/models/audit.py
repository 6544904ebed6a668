"""What operators did: who, when, from where, to what, why, and what it changed. Written once, never changed."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class AuditEntry(models.Model):
    """One act. `before` and `after`: what it changed as plain JSON, states and numbers, never a customer's words."""

    created_at = models.DateTimeField(auto_now_add=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True
    )
    # By value: the line still says who it was when the account is gone.
    actor_email = models.CharField(max_length=254, blank=True)
    address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=40, blank=True)
    # A dotted name such as "device.drain" or "job.cancel".
    act = models.CharField(max_length=40)
    object_kind = models.CharField(max_length=20)
    object_id = models.CharField(max_length=60)
    # How people call the object: a device's name, the beginning of a job's id.
    object_name = models.CharField(max_length=120, blank=True)
    reason = models.CharField(max_length=300)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["-created_at"], name="audit_newest"),
            models.Index(fields=["object_kind", "object_id", "-created_at"], name="audit_by_object"),
        ]
