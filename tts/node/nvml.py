"""The one door to NVML: a host's GPUs by their UUIDs, what they measure, and their faults.

Knows neither Django nor CUDA, so that `deploy/gpu_check` can use it on a bare machine. The calls may block for as long
as the driver likes: make them in a thread of their own. The module is pynvml, of the package nvidia-ml-py.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

with warnings.catch_warnings():
    # The package that is also called pynvml warns of itself when the module is imported.
    warnings.simplefilter("ignore", FutureWarning)
    import pynvml

T = TypeVar("T")

# What a program did wrong, not its card (NVIDIA's k8s-device-plugin, internal/rm/health.go, leaves the same alone):
# 13 graphics engine exception, 31 memory page fault, 43 the application hung, 45 its channels were removed,
# 68 video processor exception, 109 context switch timeout.
APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})
# The card itself is gone or cannot go on. Any other error may pass.
LOST_CODES = frozenset(
    {pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED, pynvml.NVML_ERROR_NOT_FOUND}
)
THROTTLING = (
    pynvml.nvmlClocksEventReasonHwSlowdown
    | pynvml.nvmlClocksEventReasonSwThermalSlowdown
    | pynvml.nvmlClocksEventReasonHwThermalSlowdown
    | pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown
)
WATCHED_EVENTS = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeDoubleBitEccError


class NvmlError(Exception):
    """NVML refused or failed. `code` is NVML's own."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class NvmlUnavailable(NvmlError):
    """There is no driver here, or it does not answer."""


class GpuLost(NvmlError):
    """This GPU cannot be reached any more, or only after a reset."""


@dataclass(frozen=True)
class Gpu:
    """A GPU as NVML names it."""

    uuid: str
    name: str
    memory_total_bytes: int
    handle: Any = field(repr=False, compare=False)


@dataclass(frozen=True)
class GpuReading:
    """What a GPU measured at one moment. None: this card does not tell."""

    taken_monotonic_s: float
    memory_total_bytes: int
    memory_used_bytes: int
    memory_free_bytes: int
    utilisation_percent: int | None
    temperature_c: int | None
    power_mw: int | None
    ecc_errors: int | None
    """Uncorrected memory errors since the driver was loaded."""
    throttled: bool | None
    """Slowed down by heat or a power brake."""


@dataclass(frozen=True)
class GpuFault:
    """A fault that NVML reported. `uuid` is "" where it could not say which GPU: then every one may be it."""

    uuid: str
    xid: int | None
    """The driver's number of the error; None for an uncorrectable memory error that came without one."""

    @property
    def reason(self) -> str:
        return f"xid_{self.xid}" if self.xid is not None else "ecc_uncorrected"


class Nvml:
    """An open connection to the driver. Not for two threads at once; each opens its own."""

    def __init__(self) -> None:
        """
        Raises:
            NvmlUnavailable: there is no driver, or it does not answer.
        """
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise NvmlUnavailable(str(error), error.value) from error

    def close(self) -> None:
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError:
            return  # a driver that is gone needs no goodbye

    def driver_version(self) -> str:
        return str(_call(pynvml.nvmlSystemGetDriverVersion))

    def gpus(self) -> list[Gpu]:
        """The host's GPUs, in NVML's order. One that is there but does not answer is left out.

        Raises:
            NvmlUnavailable: the driver does not answer.
        """
        try:
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise NvmlUnavailable(str(error), error.value) from error
        found: list[Gpu] = []
        for index in range(count):
            try:
                found.append(self._describe(_call(pynvml.nvmlDeviceGetHandleByIndex, index)))
            except NvmlError:
                continue
        return found

    def gpu(self, uuid: str) -> Gpu:
        """The GPU of that UUID, asked for anew.

        Raises:
            GpuLost: it is not there any more.
            NvmlError: the driver does not answer.
        """
        return self._describe(_call(pynvml.nvmlDeviceGetHandleByUUID, uuid))

    def _describe(self, handle: Any) -> Gpu:
        return Gpu(
            uuid=str(_call(pynvml.nvmlDeviceGetUUID, handle)),
            name=str(_call(pynvml.nvmlDeviceGetName, handle)),
            memory_total_bytes=int(_call(pynvml.nvmlDeviceGetMemoryInfo, handle).total),
            handle=handle,
        )

    def read(self, gpu: Gpu) -> GpuReading:
        """What the GPU measures now.

        Raises:
            GpuLost: it cannot be reached any more.
            NvmlError: its memory cannot be read.
        """
        memory = _call(pynvml.nvmlDeviceGetMemoryInfo, gpu.handle)
        utilisation = _told(pynvml.nvmlDeviceGetUtilizationRates, gpu.handle)
        throttle = _told(pynvml.nvmlDeviceGetCurrentClocksEventReasons, gpu.handle)
        return GpuReading(
            taken_monotonic_s=time.monotonic(),
            memory_total_bytes=int(memory.total),
            memory_used_bytes=int(memory.used),
            memory_free_bytes=int(memory.free),
            utilisation_percent=int(utilisation.gpu) if utilisation is not None else None,
            temperature_c=_told(pynvml.nvmlDeviceGetTemperature, gpu.handle, pynvml.NVML_TEMPERATURE_GPU),
            power_mw=_told(pynvml.nvmlDeviceGetPowerUsage, gpu.handle),
            ecc_errors=_told(
                pynvml.nvmlDeviceGetTotalEccErrors,
                gpu.handle,
                pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                pynvml.NVML_VOLATILE_ECC,
            ),
            throttled=bool(throttle & THROTTLING) if throttle is not None else None,
        )


class FaultListener:
    """Waits for the driver's fault events of some GPUs. For one thread."""

    def __init__(self, gpus: list[Gpu]) -> None:
        """
        Raises:
            NvmlError: the driver does not answer.
        """
        self._set = _call(pynvml.nvmlEventSetCreate)
        self.watched = [gpu.uuid for gpu in gpus if self._register(gpu)]
        """The GPUs that can report faults: old and virtual ones cannot."""

    def _register(self, gpu: Gpu) -> bool:
        try:
            supported = int(_call(pynvml.nvmlDeviceGetSupportedEventTypes, gpu.handle))
            if not supported & WATCHED_EVENTS:
                return False
            _call(pynvml.nvmlDeviceRegisterEvents, gpu.handle, supported & WATCHED_EVENTS, self._set)
        except NvmlError:
            return False
        return True

    def wait(self, *, timeout_ms: int) -> GpuFault | None:
        """The next fault of a card, or None when the time is up or a program was to blame. Blocks.

        Raises:
            NvmlError: the driver does not answer.
        """
        try:
            event = pynvml.nvmlEventSetWait_v2(self._set, timeout_ms)
        except pynvml.NVMLError_Timeout:
            return None
        except pynvml.NVMLError as error:
            raise _translated(error) from error
        try:
            uuid = str(pynvml.nvmlDeviceGetUUID(event.device))
        except pynvml.NVMLError:
            uuid = ""
        if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
            xid = int(event.eventData)
            return None if xid in APPLICATION_XIDS else GpuFault(uuid=uuid, xid=xid)
        return GpuFault(uuid=uuid, xid=None)

    def close(self) -> None:
        try:
            pynvml.nvmlEventSetFree(self._set)
        except pynvml.NVMLError:
            return  # a driver that is gone needs no goodbye


def _translated(error: pynvml.NVMLError) -> NvmlError:
    kind = GpuLost if error.value in LOST_CODES else NvmlError
    return kind(str(error), error.value)


def _call(function: Callable[..., T], *arguments: Any) -> T:
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        raise _translated(error) from error


def _told(function: Callable[..., T], *arguments: Any) -> T | None:
    """What the GPU answers, or None where it cannot. That it is lost shows in its memory, which is read first."""
    try:
        return function(*arguments)
    except pynvml.NVMLError:
        return None
