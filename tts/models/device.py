"""One GPU (by UUID) or a node's CPU, with as many serial workers as it has slots."""

from __future__ import annotations

import re

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from tts.states import DeviceState


class DeviceKind(models.TextChoices):
    GPU = "gpu", _("GPU")
    CPU = "cpu", _("CPU")
    REMOTE = "remote", _("Remote server")


_NOT_THE_MODEL = {"nvidia", "tesla", "geforce", "quadro", "graphics", "gpu"}
_CLASS_LIMIT = 30


def device_class_of(*, kind: str, model_name: str) -> str:
    """The class of a device by what NVML calls its model: maker and memory left out, so that "NVIDIA H200",
    "Tesla T4" and "NVIDIA A100-SXM4-80GB" are h200, t4 and a100. What has no such name is its kind: cpu, remote."""
    if kind in (DeviceKind.CPU, DeviceKind.REMOTE):
        return str(kind)
    words = [
        word for word in re.split(r"[^a-z0-9]+", model_name.lower()) if word and word not in _NOT_THE_MODEL
    ]
    # The first word with a digit ends the name: what follows says how it is built, not which it is.
    end = next((at for at, word in enumerate(words) if any(sign.isdigit() for sign in word)), len(words) - 1)
    name = words[: end + 1]
    if words[end + 1 : end + 2] in (["ti"], ["super"]):
        name.append(words[end + 1])
    return "-".join(name)[:_CLASS_LIMIT].strip("-") or "gpu"


class Device(models.Model):
    # "GPU-<uuid>" as NVML names it, "cpu:0@<node>", or "remote:<host>:<port>@<node>".
    name = models.CharField(max_length=120, unique=True)
    node_name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=DeviceKind.choices)
    model_name = models.CharField(max_length=100, blank=True)
    state = models.CharField(max_length=12, choices=DeviceState.choices, default=DeviceState.STARTING)
    state_reason = models.CharField(max_length=200, blank=True)
    engine = models.CharField(max_length=30, blank=True)
    engine_version = models.CharField(max_length=60, blank=True)
    languages = models.JSONField(default=list)
    # What its engine says of itself (tts.engine.capabilities), and the same as what a segment may need; empty where it
    # has said nothing: then it is given everything.
    capabilities = models.JSONField(default=dict)
    offers = ArrayField(models.CharField(max_length=40), default=list)
    # The engines that its node has installed: name, package, version, problem.
    installed_engines = models.JSONField(default=list)
    slots = models.PositiveSmallIntegerField(default=1)
    # Grows with each incarnation of the node's agent: a command or a worker of an older one is ignored.
    epoch = models.PositiveIntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True)
    memory_total_bytes = models.BigIntegerField(null=True)
    memory_used_bytes = models.BigIntegerField(null=True)
    utilisation_percent = models.PositiveSmallIntegerField(null=True)
    temperature_c = models.SmallIntegerField(null=True)
    power_mw = models.PositiveIntegerField(null=True)
    # What other programs leave free must be enough for the engine, or the device takes no work.
    memory_free_bytes = models.BigIntegerField(null=True)
    restarts = models.PositiveIntegerField(default=0)
    recycles = models.PositiveIntegerField(default=0)
    # Set by an operator's drain until the resume; outlives restarts of the host.
    drained_at = models.DateTimeField(null=True)
    # The engine that an operator wants here; workers warm it beside the old one and change over. Empty: as found.
    wanted_engine = models.CharField(max_length=30, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name

    @property
    def device_class(self) -> str:
        """What prices are set for: "cpu", "h200", "rtx-4090"."""
        return device_class_of(kind=self.kind, model_name=self.model_name)


class DeviceSlot(models.Model):
    """One serial worker's place on a device. Holds at most one attempt, so a dead device strands almost nothing."""

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="slot_rows")
    number = models.PositiveSmallIntegerField()
    # The worker behind it: ready to be given work. Written by the worker itself, cleared by the agent.
    ready = models.BooleanField(default=False)
    worker_name = models.CharField(max_length=120, blank=True)
    worker_pid = models.PositiveIntegerField(null=True)
    engine_pid = models.PositiveIntegerField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    # Which engine its process has loaded: differs from the device's while a model swap goes on.
    engine = models.CharField(max_length=30, blank=True)
    # Its engine process is being replaced, on purpose, since then: at most a tenth of the pool does so at once.
    recycling_since = models.DateTimeField(null=True)
    # The live attempt, by value: attempts point to slots, and a slot is freed by compare-and-set on this.
    attempt_id = models.UUIDField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["device", "number"], name="slot_number_once")]
        indexes = [
            models.Index(
                fields=["device"], condition=Q(ready=True, attempt_id__isnull=True), name="slot_idle"
            )
        ]
