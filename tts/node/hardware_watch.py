"""Watches a host's GPUs in threads of their own: a driver that hangs must not take the agent with it."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import time

from tts.node.nvml import FaultListener, Gpu, GpuFault, GpuLost, GpuReading, Nvml, NvmlError

logger = logging.getLogger(__name__)

SAMPLE_EVERY_S = 2.0
EVENT_WAIT_MS = 1000
RETRY_S = 2.0
# So many rounds in a row in which the driver does not tell of a GPU, and it is lost.
LOST_AFTER_ROUNDS = 3
# A round takes milliseconds, on a busy driver seconds. One that takes this long will not end. The setting exists for
# operators whose drivers are slow, and for tests.
STUCK_AFTER_S = float(os.environ.get("VOICEPOOL_NVML_STUCK_S", "30"))


class HardwareWatch:
    """The latest figures and the faults of some GPUs, by UUID. All public methods return at once."""

    def __init__(self, uuids: list[str]) -> None:
        self.uuids = tuple(uuids)
        self._stopping = threading.Event()
        self._faults: queue.SimpleQueue[GpuFault] = queue.SimpleQueue()
        # Replaced as a whole, never changed: readers need no lock.
        self._readings: dict[str, GpuReading] = {}
        self._failed_rounds: dict[str, int] = dict.fromkeys(uuids, 0)
        self._errors_before: dict[str, int] = {}
        self._round_ended_at = time.monotonic()
        # A card that has come back reports its faults only to those who ask it anew.
        self._listen_anew = threading.Event()

    def start(self) -> None:
        """Begin to watch."""
        for target in (self._sample_forever, self._listen_forever):
            threading.Thread(target=target, name=target.__name__.strip("_"), daemon=True).start()

    def stop(self) -> None:
        """Tell the threads to end. A thread that hangs in the driver ends with the process."""
        self._stopping.set()

    def reading(self, uuid: str) -> GpuReading | None:
        """The GPU's newest figures; None before the first and while it does not answer."""
        return self._readings.get(uuid)

    def take_faults(self) -> list[GpuFault]:
        """The faults since the last call. Each is told once."""
        faults: list[GpuFault] = []
        with contextlib.suppress(queue.Empty):
            while True:
                faults.append(self._faults.get_nowait())
        return faults

    def lost(self) -> frozenset[str]:
        """The GPUs that the driver does not reach, now; all of them when it does not answer at all."""
        if time.monotonic() - self._round_ended_at > STUCK_AFTER_S:
            return frozenset(self.uuids)
        return frozenset(uuid for uuid, rounds in self._failed_rounds.items() if rounds >= LOST_AFTER_ROUNDS)

    # --- the thread that samples

    def _sample_forever(self) -> None:
        nvml: Nvml | None = None
        gpus: dict[str, Gpu] = {}
        while not self._stopping.is_set():
            began = time.monotonic()
            healthy = False
            try:
                nvml = nvml or Nvml()
                healthy = self._sample(nvml, gpus)
            except NvmlError as error:
                self._note_all_failed(error)
            except Exception:
                # A bug or a strange answer: the agent goes on, and the GPUs count as lost when it stays so.
                logger.exception("telemetry_failed")
                self._note_all_failed(None)
            if not healthy and nvml is not None:
                # A card that was reset, or a driver that was loaded anew, is seen by a new connection alone.
                nvml.close()
                nvml, gpus = None, {}
            self._round_ended_at = time.monotonic()
            self._stopping.wait(max(0.1, SAMPLE_EVERY_S - (time.monotonic() - began)))

    def _sample(self, nvml: Nvml, gpus: dict[str, Gpu]) -> bool:
        """Read every GPU once. Returns whether all of them answered."""
        readings: dict[str, GpuReading] = {}
        for uuid in self.uuids:
            try:
                if uuid not in gpus:
                    gpus[uuid] = nvml.gpu(uuid)
                readings[uuid] = nvml.read(gpus[uuid])
            except GpuLost as error:
                self._note_failed(uuid, error, rounds=LOST_AFTER_ROUNDS)
            except NvmlError as error:
                self._note_failed(uuid, error, rounds=1)
            else:
                if self._failed_rounds[uuid]:
                    logger.info("gpu_answers_again", extra={"device_name": uuid})
                    self._listen_anew.set()
                self._failed_rounds[uuid] = 0
                self._compare_memory_errors(uuid, readings[uuid])
        self._readings = readings
        return len(readings) == len(self.uuids)

    def _compare_memory_errors(self, uuid: str, reading: GpuReading) -> None:
        before = self._errors_before.get(uuid)
        if before is not None and reading.ecc_errors is not None and reading.ecc_errors > before:
            self._faults.put(GpuFault(uuid=uuid, xid=None))
        if reading.ecc_errors is not None:
            self._errors_before[uuid] = reading.ecc_errors

    def _note_failed(self, uuid: str, error: NvmlError | None, *, rounds: int) -> None:
        if not self._failed_rounds[uuid]:
            logger.warning("gpu_does_not_answer", extra={"device_name": uuid, "error": str(error)})
        self._failed_rounds[uuid] += rounds

    def _note_all_failed(self, error: NvmlError | None) -> None:
        self._readings = {}
        for uuid in self.uuids:
            self._note_failed(uuid, error, rounds=1)

    # --- the thread that waits for faults

    def _listen_forever(self) -> None:
        while not self._stopping.is_set():
            try:
                self._listen()
            except NvmlError as error:
                logger.warning("fault_events_unavailable", extra={"error": str(error)})
            except Exception:
                logger.exception("fault_events_failed")
            self._stopping.wait(RETRY_S)

    def _listen(self) -> None:
        """Pass faults on until told to stop or to begin anew.

        Raises:
            NvmlError: the driver does not answer, or none of the GPUs any more.
        """
        nvml = Nvml()
        try:
            listener = FaultListener([gpu for gpu in nvml.gpus() if gpu.uuid in self.uuids])
            try:
                self._pass_on(listener)
            finally:
                listener.close()
        finally:
            nvml.close()

    def _pass_on(self, listener: FaultListener) -> None:
        if unwatched := sorted(set(self.uuids) - set(listener.watched)):
            logger.warning("gpus_without_fault_events", extra={"device_names": unwatched})
        self._listen_anew.clear()
        while not self._stopping.is_set() and not self._listen_anew.is_set():
            if not listener.watched:
                self._listen_anew.wait(RETRY_S)
                continue
            fault = listener.wait(timeout_ms=EVENT_WAIT_MS)
            if fault is not None:
                self._faults.put(fault)
