"""A form in which a job's audio was delivered: made of the master when it was asked for, kept with the job."""

from __future__ import annotations

from django.db import models

from accounts.models import Workspace
from tts.models.job import SynthesisJob


class Rendition(models.Model):
    job = models.ForeignKey(SynthesisJob, on_delete=models.CASCADE, related_name="renditions", db_index=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    # SHA-256 of all that shapes the file, the master's key among it.
    variant = models.CharField(max_length=64)
    format = models.CharField(max_length=10)
    sample_rate_hz = models.PositiveIntegerField()
    loudness_lufs = models.FloatField(null=True)
    # What is heard of the label: a kind of tts.audio.explicit, and where.
    explicit_label = models.CharField(max_length=10)
    label_position = models.CharField(max_length=10)
    # The implicit label as it was read back from the file, and when.
    implicit_label = models.CharField(max_length=600)
    verified_at = models.DateTimeField()
    audio_key = models.CharField(max_length=200)
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "variant"], name="rendition_once")]
