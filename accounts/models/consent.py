"""Who agreed to what, when, in which words. Never changed; kept when the voice is gone."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from accounts.models.workspace import Workspace


class ConsentRecord(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    # No foreign key: the record outlives the voice.
    voice_id = models.UUIDField(db_index=True)
    statement_version = models.CharField(max_length=20)
    statement_locale = models.CharField(max_length=10)
    statement_text = models.TextField()
    clip_sha256 = models.CharField(max_length=64)
    # Of the recording of the spoken consent, as it is kept beside the clip; empty where none was given.
    spoken_sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    address = models.GenericIPAddressField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
