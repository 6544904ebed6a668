"""What the pool's engines can do, as its devices have said it: never by importing an engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models.functions import Now

from tts.engine.capabilities import Capabilities
from tts.engine.catalogue import ENGINES
from tts.engine.errors import EngineError
from tts.models import Device
from tts.states import DEVICE_HEARTBEAT_SECONDS, DeviceState

# For an engine that does not say how long it takes: as fast as it speaks.
UNKNOWN_GPU_MS_PER_AUDIO_S = 1000


@dataclass(frozen=True)
class PoolOffer:
    """`languages` are those of all engines together, `gpu_ms_per_audio_s` that of the slowest. `devices` has what each
    device offers; an empty set stands for one that has not said."""

    languages: tuple[str, ...]
    gpu_ms_per_audio_s: int
    devices: tuple[frozenset[str], ...]

    def suits(self, needs: Collection[str]) -> bool:
        """Whether some device may speak what needs that. A pool without devices is expected to have some later."""
        return not self.devices or any(not offers or offers.issuperset(needs) for offers in self.devices)


def stored_capabilities(stored: Mapping[str, Any]) -> Capabilities | None:
    """A device's capabilities as its row has them; None where it has not said any that this version understands."""
    if not stored:
        return None
    try:
        return Capabilities.from_json(stored)
    except EngineError:
        return None


def pool_offer() -> PoolOffer:
    """What can be asked of the devices that live now, or, while there is none, of this host's own engine. One query."""
    rows = list(
        Device.objects.filter(heartbeat_at__gte=Now() - timedelta(seconds=DEVICE_HEARTBEAT_SECONDS))
        .exclude(state__in=[DeviceState.STOPPED, DeviceState.QUARANTINED])
        .values_list("capabilities", "offers")
    )
    known = [found for stored, _ in rows if (found := stored_capabilities(stored))]
    if not known:
        own = ENGINES.get(settings.VOICEPOOL["CPU_ENGINE"]) or ENGINES["kokoro"]
        known = [own.capabilities]
    return PoolOffer(
        languages=tuple(dict.fromkeys(language for one in known for language in one.languages)),
        gpu_ms_per_audio_s=max(one.gpu_ms_per_audio_s or UNKNOWN_GPU_MS_PER_AUDIO_S for one in known),
        devices=tuple(frozenset(offers) for _, offers in rows),
    )


def usable_engines(device: Device) -> dict[str, str]:
    """The engines that can be brought up on a device, by name, with what people call them.

    What its node has said; of a node that says nothing, what comes with the portal.
    """
    listed = device.installed_engines or [{"name": name} for name in ENGINES]
    names = [str(one["name"]) for one in listed if not one.get("problem")]
    return {name: ENGINES[name].name if name in ENGINES else name for name in names}
