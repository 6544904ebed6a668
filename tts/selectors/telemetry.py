"""A device's figures over time, for charts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tts.models import Device, DeviceSample, Resolution


@dataclass(frozen=True)
class TelemetryPoint:
    """One moment, or the mean over the minute or hour that begins at `taken_at`. None: the device did not tell."""

    taken_at: datetime
    memory_used_bytes: int | None
    memory_used_max_bytes: int | None
    utilisation_percent: float | None
    temperature_c: float | None
    power_mw: int | None
    ecc_errors: int | None


def series(*, device: Device, since: datetime, resolution: Resolution) -> list[TelemetryPoint]:
    """The device's points of one resolution since then, the oldest first. A gap is a time without an agent.

    SAMPLE reaches back two hours (a point every 2 s), MINUTE eight days, HOUR four hundred; the bucket that is not over
    yet has no point.
    """
    rows = (
        DeviceSample.objects.filter(device=device, resolution=resolution, taken_at__gte=since)
        .order_by("taken_at")
        .values_list(
            "taken_at",
            "memory_used_bytes",
            "memory_used_max_bytes",
            "utilisation_percent",
            "temperature_c",
            "power_mw",
            "ecc_errors",
        )
    )
    return [TelemetryPoint(*row) for row in rows]
