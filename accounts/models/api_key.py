"""API keys. The key itself is shown once and never stored: only its SHA-256."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from accounts.models.workspace import Workspace


class ApiKey(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="api_keys")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    # The first characters, so that a person recognises the key in a list.
    prefix = models.CharField(max_length=16)
    # 30 random characters hold 178 bits: a plain hash cannot be guessed back (ASVS 6.5.2), and costs microseconds.
    secret_sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["workspace", "-created_at"], name="api_key_by_workspace")]

    def __str__(self) -> str:
        return f"{self.prefix}…"
