"""The node's agent: offers this host's devices, keeps one worker alive for each slot, and says that the host lives.

It imports no CUDA, and what it asks of NVML it asks in other threads: a driver that hangs must not take the agent with
it. Its main thread alone starts processes and writes to the database.
"""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import redis
from django.db import DatabaseError, close_old_connections

from tts.models import DeviceEventKind, DeviceKind
from tts.node.discovery import find_devices
from tts.node.managed_device import ManagedDevice
from tts.node.orders import Orders
from tts.node.readings import cpu_reading, gpu_reading, remote_reading
from tts.node.settings import NodeSettings
from tts.node.slot_process import STOP_GRACE_S
from tts.services import devices, health
from tts.services.device_events import record_event
from tts.services.node_state import stop_missing_devices
from tts.services.node_wakeups import wait_for_wake
from tts.services.telemetry import DeviceReading, store_readings
from tts.states import DeviceState

if TYPE_CHECKING:
    from tts.node.hardware_watch import HardwareWatch
    from tts.node.nvml import GpuFault

logger = logging.getLogger(__name__)

HEARTBEAT_S = 2.0
TICK_S = 0.2
WAKE_TIMEOUT_S = 10
WITHOUT_REDIS_S = 2.0
NVML_LOST = "nvml_lost"


class NodeAgent:
    """Runs until it is told to stop."""

    def __init__(self, *, settings: NodeSettings) -> None:
        self.settings = settings
        self.stop_requested = threading.Event()
        self._devices: dict[int, ManagedDevice] = {}
        self._orders = Orders(devices=self._devices, settings=settings)
        self._watch: HardwareWatch | None = None
        self._faults: list[GpuFault] = []
        self._commands_wait = threading.Event()

    def run(self) -> None:
        """Serve until told to stop.

        Raises:
            ImproperlyConfigured: the node's settings and the host do not fit.
        """
        self._register()
        threading.Thread(target=self._wait_for_commands, name="commands", daemon=True).start()
        beat_at = 0.0
        try:
            while not self.stop_requested.is_set():
                now = time.monotonic()
                try:
                    if now >= beat_at:
                        beat_at = now + HEARTBEAT_S
                        self._beat()
                    elif self._commands_wait.is_set():
                        self._look_for_commands()
                    for managed in self._devices.values():
                        managed.tick(now)
                except DatabaseError as error:
                    logger.warning("agent_without_database", extra={"error": type(error).__name__})
                self.stop_requested.wait(TICK_S)
        finally:
            self._stop()

    def _register(self) -> None:
        found = find_devices(self.settings)
        for one in found:
            device = devices.register_device(node_name=self.settings.node_name, found=one)
            logger.info(
                "device_registered",
                extra={"device_id": device.pk, "device_name": device.name, "epoch": device.epoch},
            )
            self._devices[device.pk] = ManagedDevice(device=device, settings=self.settings, read=self._read)
        stop_missing_devices(node_name=self.settings.node_name, found=[one.name for one in found])
        gpus = [one.name for one in found if one.kind == DeviceKind.GPU]
        if gpus:
            # Only here, as in tts.node.discovery.
            from tts.node.hardware_watch import HardwareWatch

            self._watch = HardwareWatch(gpus)
            self._watch.start()

    # --- every two seconds

    def _beat(self) -> None:
        close_old_connections()
        for managed in self._devices.values():
            managed.read()
            used = managed.reading.memory_used_bytes if managed.reading is not None else None
            alive = devices.heartbeat_device(
                device_id=managed.device.pk, epoch=managed.device.epoch, memory_used_bytes=used
            )
            if not alive or not managed.refresh():
                logger.error("agent_superseded", extra={"device_id": managed.device.pk})
                self.stop_requested.set()
                return
        self._judge_hardware()
        new = ((managed.address, managed.take_new_reading()) for managed in self._devices.values())
        store_readings([(address, reading) for address, reading in new if reading is not None])
        self._look_for_commands()

    def _read(self, managed: ManagedDevice) -> DeviceReading | None:
        if managed.device.kind == DeviceKind.REMOTE:
            # Nothing is known of the server's own memory; here is only what its workers hold.
            return remote_reading(used_bytes=managed.memory_used_bytes())
        if managed.device.kind == DeviceKind.CPU:
            return cpu_reading(used_bytes=managed.memory_used_bytes())
        told = self._watch.reading(managed.device.name) if self._watch is not None else None
        return gpu_reading(told) if told is not None else None

    # --- sick hardware

    def _judge_hardware(self) -> None:
        """Quarantine the devices whose driver reported a fault, or does not reach them any more."""
        if self._watch is None:
            return
        # A card that falls ill reports the same again and again.
        self._faults = list(dict.fromkeys([*self._faults, *self._watch.take_faults()]))
        while self._faults:
            fault = self._faults[0]
            for managed in self._devices.values():
                # A fault that NVML could give to no GPU may be any one's.
                if managed.device.kind == DeviceKind.GPU and fault.uuid in ("", managed.device.name):
                    self._take_out(managed, fault.reason)
            # Only now: what the database did not take is judged again.
            del self._faults[0]
        lost = self._watch.lost()
        for managed in self._devices.values():
            if managed.device.name in lost and managed.device.state != DeviceState.QUARANTINED:
                self._take_out(managed, NVML_LOST)

    def _take_out(self, managed: ManagedDevice, reason: str) -> None:
        logger.error("hardware_fault", extra={"device_id": managed.device.pk, "reason": reason})
        record_event(
            device_id=managed.device.pk,
            epoch=managed.device.epoch,
            kind=DeviceEventKind.HARDWARE_FAULT,
            detail=reason,
        )
        health.quarantine_device(device_id=managed.device.pk, epoch=managed.device.epoch, reason=reason)
        # What a sick card computes is worth nothing.
        managed.kill()
        managed.refresh()

    # --- operators' commands

    def _wait_for_commands(self) -> None:
        """In a thread of its own: Redis says that there is a command. Without it the beat finds it."""
        while not self.stop_requested.is_set():
            try:
                if wait_for_wake(node_name=self.settings.node_name, timeout_s=WAKE_TIMEOUT_S):
                    self._commands_wait.set()
            except redis.RedisError:
                self.stop_requested.wait(WITHOUT_REDIS_S)

    def _look_for_commands(self) -> None:
        self._commands_wait.clear()
        lost = self._watch.lost() if self._watch is not None else frozenset()
        self._orders.tick(time.monotonic(), lost=lost)

    # --- the end

    def _stop(self) -> None:
        """End the workers in peace within the grace, then by force, and take the devices out."""
        if self._watch is not None:
            self._watch.stop()
        slots = [slot for managed in self._devices.values() for slot in managed.slots if slot.process]
        for slot in slots:
            slot.end_after_job()
        deadline = time.monotonic() + STOP_GRACE_S
        for slot in slots:
            if slot.process is None:
                continue
            try:
                slot.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                slot.kill()
                slot.process.wait()
        try:
            for managed in self._devices.values():
                devices.stop_device(
                    device_id=managed.device.pk, epoch=managed.device.epoch, reason="agent_stopped"
                )
        except DatabaseError as error:
            # The sweep finds the silent devices.
            logger.warning("agent_stopped_without_database", extra={"error": type(error).__name__})
