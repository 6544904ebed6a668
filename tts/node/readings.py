"""What a host's devices measure, in the one form that is stored."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil

from tts.services.telemetry import DeviceReading

if TYPE_CHECKING:
    from tts.node.nvml import GpuReading

# psutil tells what was used since the call before; the first call tells nothing.
psutil.cpu_percent()


def cpu_reading(*, used_bytes: int) -> DeviceReading:
    """The host's processors now. `used_bytes`: what the device's own workers hold; what is free is free for all."""
    memory = psutil.virtual_memory()
    return DeviceReading(
        taken_monotonic_s=time.monotonic(),
        memory_total_bytes=memory.total,
        memory_used_bytes=used_bytes,
        memory_free_bytes=memory.available,
        utilisation_percent=psutil.cpu_percent(),
    )


def remote_reading(*, used_bytes: int) -> DeviceReading:
    """Of a server elsewhere nothing is known but what its workers hold on this host."""
    return DeviceReading(taken_monotonic_s=time.monotonic(), memory_used_bytes=used_bytes)


def gpu_reading(told: GpuReading) -> DeviceReading:
    return DeviceReading(
        taken_monotonic_s=told.taken_monotonic_s,
        memory_total_bytes=told.memory_total_bytes,
        memory_used_bytes=told.memory_used_bytes,
        memory_free_bytes=told.memory_free_bytes,
        utilisation_percent=told.utilisation_percent,
        temperature_c=told.temperature_c,
        power_mw=told.power_mw,
        ecc_errors=told.ecc_errors,
        throttled=told.throttled,
    )
