"""What happened to a device and what operators asked of it; inputs that killed devices."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from tts.models.device import Device


class DeviceEventKind(models.TextChoices):
    REGISTERED = "registered", _("Registered")
    READY = "ready", _("Ready")
    STOPPED = "stopped", _("Stopped")
    DRAINED = "drained", _("Drained")
    RESUMED = "resumed", _("Resumed")
    RESTARTED = "restarted", _("Restarted")
    RECYCLED = "recycled", _("Recycled")
    OUT_OF_MEMORY = "out_of_memory", _("Out of memory")
    STRIKE = "strike", _("Strike")
    HARDWARE_FAULT = "hardware_fault", _("Hardware fault")
    UNKILLABLE = "unkillable", _("Engine could not be ended")
    QUARANTINED = "quarantined", _("Quarantined")
    RELEASED = "released", _("Released")
    CANARY_PASSED = "canary_passed", _("Test sentence passed")
    CANARY_FAILED = "canary_failed", _("Test sentence failed")
    SWAP_STARTED = "swap_started", _("Model swap started")
    SWAPPED = "swapped", _("Model swapped")
    SWAP_FAILED = "swap_failed", _("Model swap failed")


class DeviceEvent(models.Model):
    """One line of a device's timeline. `detail` is a kind and a place, never a customer's text."""

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="events")
    epoch = models.PositiveIntegerField()
    slot_number = models.PositiveSmallIntegerField(null=True)
    kind = models.CharField(max_length=20, choices=DeviceEventKind.choices)
    detail = models.CharField(max_length=300, blank=True)
    attempt_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["device", "-created_at"], name="device_event_newest"),
            models.Index(fields=["kind", "-created_at"], name="device_event_kind"),
        ]


class DeviceCommandKind(models.TextChoices):
    DRAIN = "drain", _("Drain")
    RESUME = "resume", _("Resume")
    RESTART_AFTER_JOB = "restart_after_job", _("Restart after the job")
    RESTART_NOW = "restart_now", _("Restart now")
    QUARANTINE = "quarantine", _("Quarantine")
    RELEASE = "release", _("Release")
    SWAP_MODEL = "swap_model", _("Swap model")


class DeviceCommandState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    RUNNING = "running", _("Being carried out")
    DONE = "done", _("Done")
    STALE = "stale", _("Not carried out: the device had restarted meanwhile")
    FAILED = "failed", _("Failed")


class DeviceCommand(models.Model):
    """An operator's wish. The agent carries it out if the device is still in the incarnation that was meant."""

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="commands")
    kind = models.CharField(max_length=20, choices=DeviceCommandKind.choices)
    expected_epoch = models.PositiveIntegerField()
    # For a swap: the engine to bring up.
    engine = models.CharField(max_length=30, blank=True)
    reason = models.CharField(max_length=300)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True
    )
    state = models.CharField(
        max_length=10, choices=DeviceCommandState.choices, default=DeviceCommandState.WAITING
    )
    result = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    acknowledged_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["device", "id"], condition=Q(state__in=["waiting", "running"]), name="command_open"
            ),
            models.Index(fields=["device", "-created_at"], name="command_newest"),
        ]


class PoisonText(models.Model):
    """A segment's text that killed two different devices: not spoken again before `blocked_until`. Only its digest,
    which is keyed (tts.services.blame), and gone soon after."""

    text_digest = models.CharField(max_length=64, unique=True)
    blocked_until = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
