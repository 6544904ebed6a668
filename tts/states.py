"""The legal states and changes of state of jobs, segments, attempts, devices and voices."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class JobClass(models.TextChoices):
    """How urgent; priced and weighted apart."""

    INTERACTIVE = "interactive", _("Interactive")
    STANDARD = "standard", _("Standard")
    BATCH = "batch", _("Batch")


class JobState(models.TextChoices):
    QUEUED = "queued", _("Waiting")
    RUNNING = "running", _("Speaking")
    SUCCEEDED = "succeeded", _("Done")
    FAILED = "failed", _("Failed")
    CANCELED = "canceled", _("Canceled")


class SegmentState(models.TextChoices):
    QUEUED = "queued", _("Waiting")
    BOUND = "bound", _("Assigned")
    RUNNING = "running", _("Speaking")
    SUCCEEDED = "succeeded", _("Done")
    FAILED = "failed", _("Failed")
    CANCELED = "canceled", _("Canceled")


class AttemptState(models.TextChoices):
    BOUND = "bound", _("Assigned")
    RUNNING = "running", _("Speaking")
    SUCCEEDED = "succeeded", _("Done")
    FAILED = "failed", _("Failed")
    LOST = "lost", _("Lost")
    CANCELED = "canceled", _("Canceled")


class DeviceState(models.TextChoices):
    STARTING = "starting", _("Starting")
    READY = "ready", _("Ready")
    BUSY = "busy", _("Busy")
    DRAINING = "draining", _("Draining")
    STOPPED = "stopped", _("Stopped")
    QUARANTINED = "quarantined", _("Quarantined")


class VoiceState(models.TextChoices):
    # Heard before it is saved: its maker alone sees it (tts.selectors.voice_drafts).
    DRAFT = "draft", _("Not saved yet")
    READY = "ready", _("Ready")
    DELETED = "deleted", _("Deleted")


# Whose recording is there.
VOICE_KEPT = (VoiceState.DRAFT, VoiceState.READY)
JOB_LIVE = (JobState.QUEUED, JobState.RUNNING)
JOB_ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED)
SEGMENT_LIVE = (SegmentState.QUEUED, SegmentState.BOUND, SegmentState.RUNNING)
ATTEMPT_LIVE = (AttemptState.BOUND, AttemptState.RUNNING)

# An attempt that the platform failed is tried again, on another device where there is one, this often in all.
MAX_ATTEMPTS = 3
# The lease is renewed every 2 s by the database's clock; five missed renewals in a row mean the worker is gone.
LEASE_SECONDS = 10
LEASE_RENEWAL_SECONDS = 2
# A bound attempt that no worker claimed within this time was lost on the wire (Redis emptied, worker gone).
BIND_SECONDS = 3
# No heartbeat from a node's agent for this long: its devices take no more work.
DEVICE_HEARTBEAT_SECONDS = 10
