"""What a workspace's words sound like, version by version. A version is never changed."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from accounts.models import Workspace


class PronunciationVersion(models.Model):
    """All entries as they were from `created_at` until the next version.

    `entries`: [word, replacement] in the order in which they were given (tts.text.pronunciation).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    # 1, 2, 3 … in the workspace.
    number = models.PositiveIntegerField()
    entries = models.JSONField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "number"], name="pronunciation_version_once"),
        ]
