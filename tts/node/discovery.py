"""Which devices a host offers: its GPUs by their UUIDs, or its CPU where there are none."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import psutil
from django.core.exceptions import ImproperlyConfigured

from tts.engine.registry import engines_for
from tts.engine.remote_settings import base_of
from tts.models import DeviceKind
from tts.node.settings import NodeSettings
from tts.services.devices import FoundDevice

if TYPE_CHECKING:
    from tts.node.nvml import Gpu

logger = logging.getLogger(__name__)


def find_devices(settings: NodeSettings) -> list[FoundDevice]:
    """This host's GPUs by NVML, if an engine for them is set, and the speech servers that it is told of; its CPU where
    there are neither.

    Raises:
        ImproperlyConfigured: the node is limited to certain GPUs, and none of them is here.
    """
    gpus = [_offer_gpu(settings, gpu) for gpu in _wanted(settings, _list_gpus(settings))]
    if not gpus and settings.devices and settings.gpu_engine:
        raise ImproperlyConfigured(
            f"VOICEPOOL_DEVICES names {', '.join(sorted(settings.devices))}, and none of them is on this host."
        )
    return [*gpus, *_offer_remotes(settings)] or [offer_cpu(settings)]


def _list_gpus(settings: NodeSettings) -> list[Gpu]:
    if not settings.gpu_engine:
        return []
    # Only here: a host without GPUs neither needs NVML's bindings nor waits for them.
    from tts.node.nvml import Nvml, NvmlUnavailable

    try:
        nvml = Nvml()
    except NvmlUnavailable as error:
        logger.warning("nvml_unavailable", extra={"error": str(error)})
        return []
    try:
        return nvml.gpus()
    except NvmlUnavailable as error:
        logger.warning("nvml_unavailable", extra={"error": str(error)})
        return []
    finally:
        nvml.close()


def _wanted(settings: NodeSettings, gpus: list[Gpu]) -> list[Gpu]:
    for missing in sorted(settings.devices - {gpu.uuid for gpu in gpus}):
        logger.error("device_not_found", extra={"device_name": missing})
    return [gpu for gpu in gpus if not settings.devices or gpu.uuid in settings.devices]


def _offer_gpu(settings: NodeSettings, gpu: Gpu) -> FoundDevice:
    return FoundDevice(
        name=gpu.uuid,
        kind=DeviceKind.GPU,
        model_name=gpu.name,
        engine=settings.gpu_engine,
        slots=settings.slots_of(gpu.uuid),
        memory_total_bytes=gpu.memory_total_bytes,
        installed_engines=_installed(remote=False),
    )


def offer_cpu(settings: NodeSettings) -> FoundDevice:
    return FoundDevice(
        name=f"cpu:0@{settings.node_name}",
        kind=DeviceKind.CPU,
        model_name=f"CPU, {os.cpu_count()} cores",
        engine=settings.cpu_engine,
        slots=settings.slots_of("cpu:0"),
        memory_total_bytes=psutil.virtual_memory().total,
        installed_engines=_installed(remote=False),
    )


def remote_name(settings: NodeSettings, url: str) -> str:
    """The name of the device that stands for a speech server: "remote:host:port@node"."""
    base = base_of(url)
    path = "" if base.path == "/v1" else base.path
    return f"remote:{base.host}:{base.port}{path}@{settings.node_name}"[:120]


def _offer_remotes(settings: NodeSettings) -> list[FoundDevice]:
    return [
        FoundDevice(
            name=remote_name(settings, url),
            kind=DeviceKind.REMOTE,
            model_name="Speech server",
            engine=settings.remote_engine,
            slots=settings.slots_of(remote_name(settings, url)),
            memory_total_bytes=None,
            installed_engines=_installed(remote=True),
        )
        for url in settings.remotes
    ]


def _installed(*, remote: bool) -> list[dict[str, str]]:
    """The engines that can be brought up here, as packages' metadata have them."""
    return [
        {"name": one.name, "package": one.package, "version": one.package_version, "problem": one.problem}
        for one in engines_for(remote=remote)
    ]
