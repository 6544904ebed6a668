"""What a host's operator sets for its node, from the environment: typed, loud when malformed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from portal.lib.env import env_int, env_list, env_text
from tts.engine.catalogue import ENGINES
from tts.engine.errors import EngineError
from tts.engine.registry import REMOTE_ENGINE
from tts.engine.remote_settings import base_of

# What CosyVoice needs beside what it has loaded; for engines that do not say it themselves.
MINIMUM_FREE_MEMORY_BYTES = 5_000_000_000
MOST_SLOTS = 16


@dataclass(frozen=True)
class NodeSettings:
    """`devices` limits the node to these GPUs' UUIDs; empty is all of them. `remotes` are addresses of speech
    servers. Sizes are bytes."""

    node_name: str
    cpu_engine: str
    gpu_engine: str = ""
    slots: int = 1
    slots_by_device: Mapping[str, int] = field(default_factory=dict)
    devices: frozenset[str] = frozenset()
    minimum_free_memory_bytes: int | None = None
    remotes: tuple[str, ...] = ()
    remote_engine: str = REMOTE_ENGINE

    @classmethod
    def from_environment(cls, *, remotes: Sequence[str] = (), remote_engine: str = "") -> NodeSettings:
        """`remotes` and `remote_engine` come before what the environment says of them.

        Raises:
            ImproperlyConfigured: a variable is malformed.
        """
        minimum = env_int("VOICEPOOL_MINIMUM_FREE_MEMORY_BYTES", -1)
        return cls(
            node_name=env_text("VOICEPOOL_NODE", "") or os.uname().nodename,
            cpu_engine=settings.VOICEPOOL["CPU_ENGINE"],
            gpu_engine=env_text("VOICEPOOL_GPU_ENGINE", ""),
            slots=_slots("VOICEPOOL_SLOTS", env_text("VOICEPOOL_SLOTS", "1")),
            slots_by_device=dict(_slots_by_device()),
            devices=frozenset(env_list("VOICEPOOL_DEVICES")),
            minimum_free_memory_bytes=minimum if minimum >= 0 else None,
            remotes=_remotes([*remotes] or env_list("VOICEPOOL_REMOTES")),
            remote_engine=remote_engine or env_text("VOICEPOOL_REMOTE_ENGINE", REMOTE_ENGINE),
        )

    def slots_of(self, device_name: str) -> int:
        """How many serial workers the device gets."""
        return self.slots_by_device.get(device_name, self.slots)

    def minimum_free_of(self, engine: str) -> int:
        """The memory that must be free on a device before a process of this engine is started on it, in bytes."""
        if self.minimum_free_memory_bytes is not None:
            return self.minimum_free_memory_bytes
        described = ENGINES.get(engine)
        return described.minimum_free_memory_bytes if described else MINIMUM_FREE_MEMORY_BYTES


def _remotes(urls: Sequence[str]) -> tuple[str, ...]:
    for url in urls:
        try:
            base_of(url)
        except EngineError as error:
            raise ImproperlyConfigured(f"A remote speech server: {error.message}") from error
    return tuple(dict.fromkeys(urls))


def _slots_by_device() -> list[tuple[str, int]]:
    pairs: list[tuple[str, int]] = []
    for part in env_list("VOICEPOOL_SLOTS_BY_DEVICE"):
        name, _, count = part.partition("=")
        pairs.append((name.strip(), _slots("VOICEPOOL_SLOTS_BY_DEVICE", count)))
    return pairs


def _slots(variable: str, text: str) -> int:
    try:
        count = int(text)
    except ValueError as error:
        raise ImproperlyConfigured(f"{variable} must hold whole numbers: {text!r} is none.") from error
    if not 1 <= count <= MOST_SLOTS:
        raise ImproperlyConfigured(f"{variable} must be 1 to {MOST_SLOTS}, not {count}.")
    return count
