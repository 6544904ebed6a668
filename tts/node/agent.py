"""The node's agent: finds this host's devices, keeps one worker alive for each slot, and says that the host lives.

It imports no CUDA: a driver that hangs must not take the agent with it.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from portal.lib.child_process import die_with_parent
from tts.models import Device, DeviceKind
from tts.services import devices
from tts.services.devices import FoundDevice

logger = logging.getLogger(__name__)

HEARTBEAT_S = 2.0
TICK_S = 0.2
# A worker that ends is started again after this long, doubled each time up to the maximum, back to the minimum
# once it has lived a minute.
BACKOFF_MIN_S = 0.5
BACKOFF_MAX_S = 60.0
HEALTHY_AFTER_S = 60.0
# How long a worker may finish what it is speaking when the agent is told to stop. What is not done then is lost
# by its lease and spoken elsewhere.
STOP_GRACE_S = 8.0


def node_name() -> str:
    """This host's name in the pool; VOICEPOOL_NODE sets it where host names are not unique."""
    return os.environ.get("VOICEPOOL_NODE") or os.uname().nodename


def find_devices(*, node: str) -> list[FoundDevice]:
    """This host's GPUs by NVML, or its CPU where there are none."""
    return find_gpus() or [find_cpu(node=node)]


def find_gpus() -> list[FoundDevice]:
    """The GPUs that NVML names; none where there is no driver. A GPU needs an engine that runs on it to be set."""
    engine = os.environ.get("VOICEPOOL_GPU_ENGINE", "")
    if not engine:
        return []
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        logger.warning("nvml_unavailable", extra={"error": str(error)})
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [
            FoundDevice(
                name=pynvml.nvmlDeviceGetUUID(handle),
                kind=DeviceKind.GPU,
                model_name=pynvml.nvmlDeviceGetName(handle),
                engine=engine,
                slots=int(os.environ.get("VOICEPOOL_SLOTS", "1")),
                memory_total_bytes=pynvml.nvmlDeviceGetMemoryInfo(handle).total,
            )
            for handle in handles
        ]
    finally:
        pynvml.nvmlShutdown()


def find_cpu(*, node: str) -> FoundDevice:
    return FoundDevice(
        name=f"cpu:0@{node}",
        kind=DeviceKind.CPU,
        model_name=f"CPU, {os.cpu_count()} cores",
        engine=settings.VOICEPOOL["CPU_ENGINE"],
        slots=int(os.environ.get("VOICEPOOL_SLOTS", "1")),
        memory_total_bytes=psutil.virtual_memory().total,
    )


@dataclass
class SlotProcess:
    """A worker process and when to start it again."""

    device: Device
    number: int
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    backoff_s: float = BACKOFF_MIN_S
    start_at: float = field(default_factory=time.monotonic)

    def tick(self, now: float) -> None:
        """Start the worker when it is due; note its end."""
        if self.process is None:
            if now >= self.start_at:
                self._start(now)
            return
        code = self.process.poll()
        if code is None:
            return
        if now - self.started_at > HEALTHY_AFTER_S:
            self.backoff_s = BACKOFF_MIN_S
        logger.warning(
            "worker_ended",
            extra={
                "device_id": self.device.pk,
                "slot": self.number,
                "code": code,
                "again_in_s": self.backoff_s,
            },
        )
        self.process = None
        self.start_at = now + self.backoff_s
        self.backoff_s = min(BACKOFF_MAX_S, self.backoff_s * 2)
        devices.slot_not_ready(
            device_id=self.device.pk, epoch=self.device.epoch, slot_number=self.number, restarted=True
        )

    def _start(self, now: float) -> None:
        command = [
            sys.executable,
            str(Path(settings.BASE_DIR) / "manage.py"),
            "gpu_worker",
            f"--device-id={self.device.pk}",
            f"--slot={self.number}",
            f"--epoch={self.device.epoch}",
            f"--engine={self.device.engine}",
            f"--visible-device={self.device.name if self.device.kind == DeviceKind.GPU else ''}",
        ]
        # A group of its own: the terminal's Ctrl-C reaches the agent, which stops workers in order.
        self.process = subprocess.Popen(command, start_new_session=True, preexec_fn=die_with_parent())
        self.started_at = now

    def memory_bytes(self) -> int:
        """Resident memory of the worker and its engine process, in bytes."""
        if self.process is None:
            return 0
        try:
            worker = psutil.Process(self.process.pid)
            family = [worker, *worker.children(recursive=True)]
            return sum(member.memory_info().rss for member in family)
        except psutil.Error:
            return 0


class NodeAgent:
    """Runs until it is told to stop."""

    def __init__(self, *, node: str) -> None:
        self.node = node
        self.stop_requested = threading.Event()
        self.slots: list[SlotProcess] = []

    def run(self) -> None:
        for found in find_devices(node=self.node):
            device = devices.register_device(node_name=self.node, found=found)
            logger.info(
                "device_registered",
                extra={"device_id": device.pk, "device_name": device.name, "epoch": device.epoch},
            )
            self.slots += [SlotProcess(device=device, number=number) for number in range(device.slots)]
        beat_at = 0.0
        try:
            while not self.stop_requested.is_set():
                now = time.monotonic()
                try:
                    for slot in self.slots:
                        slot.tick(now)
                    if now >= beat_at:
                        beat_at = now + HEARTBEAT_S
                        self._beat()
                except DatabaseError as error:
                    logger.warning("agent_without_database", extra={"error": type(error).__name__})
                self.stop_requested.wait(TICK_S)
        finally:
            self._stop()

    def _beat(self) -> None:
        close_old_connections()
        for device in {slot.device.pk: slot.device for slot in self.slots}.values():
            # On a CPU, what its workers use; a GPU's own figure comes from NVML with the telemetry.
            used = sum(slot.memory_bytes() for slot in self.slots if slot.device.pk == device.pk)
            if not devices.heartbeat_device(device_id=device.pk, epoch=device.epoch, memory_used_bytes=used):
                logger.error("agent_superseded", extra={"device_id": device.pk})
                self.stop_requested.set()

    def _stop(self) -> None:
        """End the workers in peace within the grace, then by force, and take the devices out."""
        running = [slot.process for slot in self.slots if slot.process is not None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_GRACE_S
        for process in running:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        try:
            for device in {slot.device.pk: slot.device for slot in self.slots}.values():
                devices.stop_device(device_id=device.pk, epoch=device.epoch, reason="agent_stopped")
        except DatabaseError as error:
            # The sweep finds the silent devices.
            logger.warning("agent_stopped_without_database", extra={"error": type(error).__name__})
