"""Reads about devices."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now

from tts.engine.capabilities import FREE_INSTRUCTIONS, INSTRUCT
from tts.engine.catalogue import ENGINES
from tts.models import Device, DeviceSlot
from tts.models.device import device_class_of
from tts.states import DEVICE_HEARTBEAT_SECONDS, DeviceState


def ready_devices() -> QuerySet[Device]:
    """Devices that take work: an agent that lives, an engine that is warm, not drained and not quarantined."""
    return Device.objects.filter(
        state__in=[DeviceState.READY, DeviceState.BUSY],
        heartbeat_at__gte=Now() - timedelta(seconds=DEVICE_HEARTBEAT_SECONDS),
        slot_rows__ready=True,
    ).distinct()


def ready_device_count() -> int:
    return ready_devices().count()


def ready_slot_count() -> int:
    """How many serial workers take work now."""
    return DeviceSlot.objects.filter(ready=True, device__in=ready_devices()).count()


def instructions_are_taken(*, needs: Collection[str] = ()) -> bool:
    """Whether some device that takes work has an engine that can be told how to read, and all that is needed beside
    that: what no single device has would wait for ever, with its money set aside."""
    devices = ready_devices().values_list("engine", "offers")
    return any(
        {INSTRUCT, *needs} <= set(offers)
        or (not offers and engine in ENGINES and ENGINES[engine].takes_instructions)
        for engine, offers in devices
    )


def free_instructions_are_taken(*, needs: Collection[str] = ()) -> bool:
    """Whether some device that takes work has said that its engine obeys any instruction, and all that is needed beside
    that. The engines that come with the portal obey those of the catalogue alone."""
    wanted = {INSTRUCT, FREE_INSTRUCTIONS, *needs}
    return any(wanted <= set(offers) for offers in ready_devices().values_list("offers", flat=True))


def device_classes_in_use() -> set[str]:
    """The classes of the devices that may speak what comes now: all whose agent lives."""
    alive = Device.objects.filter(heartbeat_at__gte=Now() - timedelta(seconds=DEVICE_HEARTBEAT_SECONDS))
    return {
        device_class_of(kind=kind, model_name=model_name)
        for kind, model_name in alive.values_list("kind", "model_name").distinct()
    }
