"""One device of this host as its agent sees it: which of its workers run, and whether they may."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tts.models import Device, DeviceSlot
from tts.node.discovery import remote_name
from tts.node.settings import NodeSettings
from tts.node.slot_process import STOP_GRACE_S, SlotProcess
from tts.services.node_state import expire_leases, note_memory
from tts.services.slots import slot_not_ready
from tts.services.telemetry import DeviceAddress, DeviceReading
from tts.slot_engine import REMOTE_URL_VARIABLE
from tts.states import DeviceState

logger = logging.getLogger(__name__)

# A worker that has not said that its engine is warm after this long may be given up as a reason to hold others back.
WARM_WITHIN_S = 420.0
NOTE_EVERY_S = 2.0


class ManagedDevice:
    """Starts and ends the workers of a device as its stored state wants. For the agent's main thread."""

    def __init__(
        self, *, device: Device, settings: NodeSettings, read: Callable[[ManagedDevice], DeviceReading | None]
    ) -> None:
        """`read` gives the device's newest figures, at once; None while it does not tell."""
        self.device = device
        self.slots = [SlotProcess(number=number) for number in range(device.slots)]
        self.reading: DeviceReading | None = None
        self._settings = settings
        self._read = read
        self._stored_at_s = 0.0
        self._ready: frozenset[int] = frozenset()
        self._memory_low = False
        self._note_memory_at = 0.0
        self._unreported: list[tuple[int, int]] = []

    @property
    def address(self) -> DeviceAddress:
        return DeviceAddress(device_id=self.device.pk, epoch=self.device.epoch)

    @property
    def may_run(self) -> bool:
        """Whether workers are started: not while the device is quarantined or drained."""
        return self.device.state != DeviceState.QUARANTINED and self.device.drained_at is None

    @property
    def must_end(self) -> bool:
        """Whether workers that run have to go. A draining device's may finish what they speak."""
        return not self.may_run and self.device.state != DeviceState.DRAINING

    def read(self) -> None:
        """Take the device's newest figures."""
        before, self.reading = self.reading, self._read(self)
        throttled = self.reading is not None and self.reading.throttled
        if throttled and not (before is not None and before.throttled):
            logger.warning("device_throttled", extra={"device_id": self.device.pk})

    def take_new_reading(self) -> DeviceReading | None:
        """The newest figures, each once; all of them unknown, once, when the device no longer tells."""
        if self.reading is None:
            if not self._stored_at_s:
                return None
            self._stored_at_s = 0.0
            return DeviceReading(taken_monotonic_s=time.monotonic())
        if self.reading.taken_monotonic_s <= self._stored_at_s:
            return None
        self._stored_at_s = self.reading.taken_monotonic_s
        return self.reading

    def refresh(self) -> bool:
        """Read the device as it is stored. False when a newer incarnation has taken it over."""
        could_run = self.may_run
        stored = Device.objects.filter(pk=self.device.pk, epoch=self.device.epoch).first()
        if stored is None:
            return False
        self.device = stored
        ready = DeviceSlot.objects.filter(device_id=stored.pk, ready=True)
        self._ready = frozenset(ready.values_list("number", flat=True))
        if self.may_run and not could_run:
            for slot in self.slots:
                slot.start_at_once(time.monotonic())
        return True

    def tick(self, now: float) -> None:
        """Note which workers have ended, end those that must not run, start those that are due."""
        for slot in self.slots:
            code = slot.take_end(now)
            if code is not None:
                self._note_end(slot, code)
            if self.must_end:
                slot.end_after_job(grace_s=STOP_GRACE_S)
        self._report_ends()
        self._start_due(now)

    def _start_due(self, now: float) -> None:
        if not self.may_run:
            self._note_memory(low=False, now=now)
            return
        for slot in self.slots:
            if not slot.is_due(now):
                continue
            enough = self._has_memory_for(slot, now)
            if enough is None:
                continue
            self._note_memory(low=not enough, now=now)
            if not enough:
                return
            slot.start(self.device, now, environment=self._environment())

    def _environment(self) -> dict[str, str]:
        """What a worker must know that the command line does not say: the server behind a remote device."""
        urls = {remote_name(self._settings, url): url for url in self._settings.remotes}
        return {REMOTE_URL_VARIABLE: urls[self.device.name]} if self.device.name in urls else {}

    def kill(self) -> None:
        """End all workers now. What they speak is lost by its lease and spoken elsewhere."""
        for slot in self.slots:
            slot.kill()

    def memory_used_bytes(self) -> int:
        """Resident memory of the device's workers and their engines on this host, in bytes."""
        return sum(slot.memory_bytes() for slot in self.slots)

    def _has_memory_for(self, slot: SlotProcess, now: float) -> bool | None:
        """Whether one engine more fits, beside those that have started and not yet taken what they need.

        None: not known yet. A reading from before the slot's last worker ended still counts that worker's memory.
        """
        reading = self.reading
        if reading is None or reading.taken_monotonic_s < slot.ended_at:
            reading = self.reading = self._read(self)
        if reading is None or reading.taken_monotonic_s < slot.ended_at:
            return None
        if reading.memory_free_bytes is None:
            return True
        loading = sum(
            other.process is not None
            and other.number not in self._ready
            and now - other.started_at < WARM_WITHIN_S
            for other in self.slots
        )
        return reading.memory_free_bytes >= self.minimum_free_bytes * (1 + loading)

    @property
    def minimum_free_bytes(self) -> int:
        return self._settings.minimum_free_of(self.device.engine)

    def _note_memory(self, *, low: bool, now: float) -> None:
        """Say so in the device's state, now and every two seconds while it stays so."""
        if low == self._memory_low and (not low or now < self._note_memory_at):
            return
        note_memory(device_id=self.device.pk, epoch=self.device.epoch, low=low)
        if low != self._memory_low:
            logger.warning(
                "memory_low" if low else "memory_free_again",
                extra={
                    "device_id": self.device.pk,
                    "minimum_free_bytes": self.minimum_free_bytes,
                    "free_bytes": self.reading.memory_free_bytes if self.reading else None,
                },
            )
        self._memory_low, self._note_memory_at = low, now + NOTE_EVERY_S

    def _note_end(self, slot: SlotProcess, code: int) -> None:
        logger.warning(
            "worker_ended",
            extra={
                "device_id": self.device.pk,
                "slot": slot.number,
                "code": code,
                "asked": slot.asked_to_end,
                "again_in_s": max(0.0, slot.start_at - slot.ended_at),
            },
        )
        self._ready -= {slot.number}
        self._unreported.append((slot.number, code))

    def _report_ends(self) -> None:
        """Write down which workers have ended; what the database did not take is written at the next tick."""
        while self._unreported:
            number, code = self._unreported[0]
            slot_not_ready(
                device_id=self.device.pk,
                epoch=self.device.epoch,
                slot_number=number,
                restarted=self.may_run,
                reason=f"worker ended with {code}",
            )
            expire_leases(device_id=self.device.pk, epoch=self.device.epoch, slot_number=number)
            del self._unreported[0]
