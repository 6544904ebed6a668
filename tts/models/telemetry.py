"""What NVML (or the host) says of a device: every 2 s for an hour, then by minute for a week, then by hour."""

from __future__ import annotations

from django.db import models

from tts.models.device import Device


class Resolution(models.TextChoices):
    SAMPLE = "sample"
    MINUTE = "minute"
    HOUR = "hour"


class DeviceSample(models.Model):
    """One moment of a device, or the mean over a minute or an hour that begins at `taken_at`."""

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="samples")
    resolution = models.CharField(max_length=6, choices=Resolution.choices, default=Resolution.SAMPLE)
    taken_at = models.DateTimeField()
    memory_used_bytes = models.BigIntegerField(null=True)
    memory_used_max_bytes = models.BigIntegerField(null=True)
    utilisation_percent = models.FloatField(null=True)
    temperature_c = models.FloatField(null=True)
    power_mw = models.PositiveIntegerField(null=True)
    # Counters of the driver since it was loaded; in a roll-up their largest value.
    ecc_errors = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["device", "resolution", "taken_at"], name="device_sample_once"),
        ]
        indexes = [
            # Old samples are found by their age, whatever their device.
            models.Index(fields=["resolution", "taken_at"], name="device_sample_age"),
        ]


class DeviceHour(models.Model):
    """Where a device's time went in an hour of UTC, by its workers' own clocks, all slots together.

    Idle is what is left of `up_ms`; what of `worked_ms` was billed the usage records say.
    """

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="hours")
    hour = models.DateTimeField()
    up_ms = models.BigIntegerField()
    worked_ms = models.BigIntegerField()
    canary_ms = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["device", "hour"], name="device_hour_once")]
