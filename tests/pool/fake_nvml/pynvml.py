"""A fake of nvidia-ml-py's module pynvml, for tests: a host whose GPUs are described in a JSON file.

Put this folder on a process's PYTHONPATH and name the file in FAKE_NVML_STATE. The test rewrites the file (tests/pool/
fake_gpus.py) and the process sees it at its next call, as it would see a card change. The names, signatures, values and
fields of what is here are those of the real module: tests/pool/test_nvml_contract.py holds the two against each other.
"""

from __future__ import annotations

import ctypes
import json
import os
import time
from typing import Any

NVML_ERROR_UNINITIALIZED = 1
NVML_ERROR_INVALID_ARGUMENT = 2
NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_NO_PERMISSION = 4
NVML_ERROR_NOT_FOUND = 6
NVML_ERROR_DRIVER_NOT_LOADED = 9
NVML_ERROR_TIMEOUT = 10
NVML_ERROR_LIBRARY_NOT_FOUND = 12
NVML_ERROR_GPU_IS_LOST = 15
NVML_ERROR_RESET_REQUIRED = 16
NVML_ERROR_UNKNOWN = 999

NVML_TEMPERATURE_GPU = 0
NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
NVML_VOLATILE_ECC = 0

nvmlEventTypeSingleBitEccError = 0x0000000000000001
nvmlEventTypeDoubleBitEccError = 0x0000000000000002
nvmlEventTypeXidCriticalError = 0x0000000000000008

nvmlClocksEventReasonGpuIdle = 0x0000000000000001
nvmlClocksEventReasonHwSlowdown = 0x0000000000000008
nvmlClocksEventReasonSwThermalSlowdown = 0x0000000000000020
nvmlClocksEventReasonHwThermalSlowdown = 0x0000000000000040
nvmlClocksEventReasonHwPowerBrakeSlowdown = 0x0000000000000080

POLL_S = 0.02


class NVMLError(Exception):
    """As in the real module, `NVMLError(code)` is an instance of the code's own subclass."""

    _valClassMapping: dict[int, type[NVMLError]] = {}
    value: int

    def __new__(cls, value: int) -> NVMLError:
        kind = NVMLError._valClassMapping.get(value, cls) if cls is NVMLError else cls
        made = Exception.__new__(kind)
        made.value = value
        return made

    def __str__(self) -> str:
        return f"fake NVML error {self.value}"


def _make_error_classes() -> None:
    for name, value in list(globals().items()):
        if name.startswith("NVML_ERROR_"):
            words = name.removeprefix("NVML_ERROR_").lower().split("_")
            class_name = "NVMLError_" + "".join(word.capitalize() for word in words)

            def new(cls: type[NVMLError], *_: Any, code: int = value) -> NVMLError:
                return NVMLError.__new__(cls, code)

            made = type(class_name, (NVMLError,), {"__new__": new})
            NVMLError._valClassMapping[value] = made
            globals()[class_name] = made


class c_nvmlMemory_t(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class c_nvmlUtilization_t(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class c_nvmlEventData_t(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.py_object),
        ("eventType", ctypes.c_ulonglong),
        ("eventData", ctypes.c_ulonglong),
        ("gpuInstanceId", ctypes.c_uint),
        ("computeInstanceId", ctypes.c_uint),
    ]


class _Handle:
    def __init__(self, uuid: str) -> None:
        self.uuid = uuid


class _EventSet:
    def __init__(self, delivered: int) -> None:
        self.delivered = delivered
        self.types: dict[str, int] = {}


_connections = 0


def _state() -> dict[str, Any]:
    """The host as the file describes it now. Waits as long as the file says that the driver hangs."""
    while True:
        with open(os.environ["FAKE_NVML_STATE"], encoding="utf-8") as file:
            state: dict[str, Any] = json.load(file)
        if not state.get("hangs"):
            return state
        time.sleep(POLL_S)  # the real call blocks in the driver


def _driver() -> dict[str, Any]:
    if not _connections:
        raise NVMLError(NVML_ERROR_UNINITIALIZED)
    state = _state()
    if state.get("driver_error"):
        raise NVMLError(state["driver_error"])
    return state


def _device(handle: _Handle) -> dict[str, Any]:
    for device in _driver()["devices"]:
        if device["uuid"] == handle.uuid:
            if device.get("error"):
                raise NVMLError(device["error"])
            return device
    raise NVMLError(NVML_ERROR_GPU_IS_LOST)


def _figure(handle: _Handle, name: str) -> Any:
    value = _device(handle).get(name)
    if value is None:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return value


def nvmlInit() -> None:
    global _connections
    state = _state()
    if state.get("driver_error"):
        raise NVMLError(state["driver_error"])
    _connections += 1


def nvmlShutdown() -> None:
    global _connections
    if not _connections:
        raise NVMLError(NVML_ERROR_UNINITIALIZED)
    _connections -= 1


def nvmlSystemGetDriverVersion() -> str:
    return str(_driver()["driver_version"])


def nvmlDeviceGetCount() -> int:
    return len(_driver()["devices"])


def nvmlDeviceGetHandleByIndex(index: int) -> _Handle:
    devices = _driver()["devices"]
    if not 0 <= index < len(devices):
        raise NVMLError(NVML_ERROR_INVALID_ARGUMENT)
    if devices[index].get("error") == NVML_ERROR_GPU_IS_LOST:
        raise NVMLError(NVML_ERROR_GPU_IS_LOST)
    return _Handle(devices[index]["uuid"])


def nvmlDeviceGetHandleByUUID(uuid: str) -> _Handle:
    if not any(device["uuid"] == uuid for device in _driver()["devices"]):
        raise NVMLError(NVML_ERROR_NOT_FOUND)
    return _Handle(uuid)


def nvmlDeviceGetUUID(handle: _Handle) -> str:
    return str(_device(handle)["uuid"])


def nvmlDeviceGetName(handle: _Handle) -> str:
    return str(_device(handle)["name"])


def nvmlDeviceGetMemoryInfo(handle: _Handle, version: int | None = None) -> c_nvmlMemory_t:
    device = _device(handle)
    total, used = device["memory_total"], device["memory_used"]
    return c_nvmlMemory_t(total=total, free=total - used, used=used)


def nvmlDeviceGetUtilizationRates(handle: _Handle) -> c_nvmlUtilization_t:
    return c_nvmlUtilization_t(gpu=_figure(handle, "utilisation"), memory=0)


def nvmlDeviceGetTemperature(handle: _Handle, sensor: int) -> int:
    return int(_figure(handle, "temperature"))


def nvmlDeviceGetPowerUsage(handle: _Handle) -> int:
    return int(_figure(handle, "power_mw"))


def nvmlDeviceGetTotalEccErrors(handle: _Handle, errorType: int, counterType: int) -> int:
    return int(_figure(handle, "ecc_errors"))


def nvmlDeviceGetCurrentClocksEventReasons(handle: _Handle) -> int:
    return int(_figure(handle, "clocks_event_reasons"))


def nvmlDeviceGetSupportedEventTypes(handle: _Handle) -> int:
    return int(_device(handle)["supported_events"])


def nvmlEventSetCreate() -> _EventSet:
    return _EventSet(len(_driver()["events"]))


def nvmlDeviceRegisterEvents(handle: _Handle, eventTypes: int, eventSet: _EventSet) -> None:
    if eventTypes & ~nvmlDeviceGetSupportedEventTypes(handle):
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    eventSet.types[handle.uuid] = eventTypes


def nvmlEventSetWait_v2(eventSet: _EventSet, timeoutms: int) -> c_nvmlEventData_t:
    ends_at = time.monotonic() + timeoutms / 1000
    while True:
        for event in _driver()["events"][eventSet.delivered :]:
            eventSet.delivered += 1
            if eventSet.types.get(event["uuid"], 0) & event["type"]:
                return c_nvmlEventData_t(
                    device=_Handle(event["uuid"]), eventType=event["type"], eventData=event["data"]
                )
        if time.monotonic() >= ends_at:
            raise NVMLError(NVML_ERROR_TIMEOUT)
        time.sleep(POLL_S)  # the real call blocks in the driver


def nvmlEventSetFree(eventSet: _EventSet) -> None:
    eventSet.types.clear()


_make_error_classes()
