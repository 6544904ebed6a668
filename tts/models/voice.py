"""Voices: cloned ones belong to a workspace, preset ones to the platform."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import ConsentRecord, Workspace
from tts.states import VoiceState


class VoiceKind(models.TextChoices):
    CLONE = "clone", _("Cloned")
    PRESET = "preset", _("Preset")


class Voice(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # NULL for the platform's preset voices.
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="voices", null=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True
    )
    kind = models.CharField(max_length=10, choices=VoiceKind.choices)
    preset_key = models.CharField(max_length=40, blank=True)
    state = models.CharField(max_length=10, choices=VoiceState.choices, default=VoiceState.READY)
    name = models.CharField(max_length=60)
    language = models.CharField(max_length=10, blank=True)
    transcript = models.CharField(max_length=500, blank=True)
    # The canonical clip: 24 kHz mono 16-bit WAV in storage. Empty for presets.
    clip_key = models.CharField(max_length=200, blank=True)
    clip_sha256 = models.CharField(max_length=64, blank=True)
    clip_ms = models.PositiveIntegerField(default=0)
    # tts.audio.quality.QualityReport.as_dict()
    quality = models.JSONField(null=True)
    peaks = models.JSONField(default=list)
    consent = models.ForeignKey(ConsentRecord, on_delete=models.PROTECT, related_name="+", null=True)
    # Which of its versions speaks now: language, transcript, clip, report and consent above are a copy of that one's.
    version = models.PositiveSmallIntegerField(default=1, db_default=1)
    # The highest number that one of them has had: a number is given once, also where its version was deleted.
    last_version = models.PositiveSmallIntegerField(default=1, db_default=1)
    # False: only who made it may hear it and speak with it (tts.selectors.voices).
    shared = models.BooleanField(default=True, db_default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["workspace", "-created_at"], name="voice_by_workspace")]
        constraints = [
            models.UniqueConstraint(
                fields=["preset_key"], condition=Q(kind="preset"), name="preset_key_once"
            ),
            models.CheckConstraint(
                condition=Q(kind="preset", workspace__isnull=True) | Q(kind="clone", workspace__isnull=False),
                name="only_presets_belong_to_nobody",
            ),
            models.UniqueConstraint(
                fields=["workspace", "created_by"], condition=Q(state="draft"), name="one_draft_each"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class VoiceVersion(models.Model):
    """A recording that a cloned voice has, with what belongs to it. Never changed; deleted alone or with the voice."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    voice = models.ForeignKey(Voice, on_delete=models.CASCADE, related_name="versions", db_index=False)
    number = models.PositiveSmallIntegerField()
    language = models.CharField(max_length=10, blank=True)
    transcript = models.CharField(max_length=500, blank=True)
    clip_key = models.CharField(max_length=200)
    clip_sha256 = models.CharField(max_length=64)
    clip_ms = models.PositiveIntegerField()
    # The recording of the spoken consent; empty where none was given.
    spoken_key = models.CharField(max_length=200, blank=True)
    quality = models.JSONField(null=True)
    peaks = models.JSONField(default=list)
    consent = models.ForeignKey(ConsentRecord, on_delete=models.PROTECT, related_name="+", null=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["voice", "number"], name="voice_version_once"),
        ]

    def __str__(self) -> str:
        return f"{self.voice_id} {self.number}"
