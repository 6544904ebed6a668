"""The host that tests/pool/fake_nvml shows: a JSON file, rewritten as a whole, so that no reader sees half of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GIB = 1024**3
FAKE_NVML_FOLDER = Path(__file__).resolve().parent / "fake_nvml"


class FakeGpus:
    """The GPUs of one made-up host. Each change is seen by its processes at their next call."""

    def __init__(self, file: Path, *, uuids: list[str]) -> None:
        self.file = file
        self._state: dict[str, Any] = {
            "driver_version": "580.65.06",
            "driver_error": 0,
            "hangs": False,
            "devices": [
                {
                    "uuid": uuid,
                    "name": "Fake RTX 4090",
                    "memory_total": 24 * GIB,
                    "memory_used": 1 * GIB,
                    "utilisation": 10,
                    "temperature": 40,
                    "power_mw": 60_000,
                    "ecc_errors": 0,
                    "clocks_event_reasons": 1,
                    "supported_events": 0b1011,
                }
                for uuid in uuids
            ],
            "events": [],
        }
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to see this host."""
        return {"PYTHONPATH": str(FAKE_NVML_FOLDER), "FAKE_NVML_STATE": str(self.file)}

    def change(self, uuid: str, **figures: Any) -> None:
        """Change a GPU's figures; None is one that it does not tell; `error` is NVML's code for all its calls."""
        next(device for device in self._state["devices"] if device["uuid"] == uuid).update(figures)
        self._write()

    def change_driver(self, **figures: Any) -> None:
        self._state.update(figures)
        self._write()

    def report_xid(self, uuid: str, xid: int) -> None:
        """Have the driver report an error of the GPU by its number."""
        self._state["events"].append({"uuid": uuid, "type": 8, "data": xid})
        self._write()

    def report_double_bit_error(self, uuid: str) -> None:
        self._state["events"].append({"uuid": uuid, "type": 2, "data": 0})
        self._write()

    def take_out(self, uuid: str) -> dict[str, Any]:
        """The GPU falls off its bus. Returns it, for `put_back`."""
        gone = next(device for device in self._state["devices"] if device["uuid"] == uuid)
        self._state["devices"].remove(gone)
        self._write()
        return gone

    def put_back(self, device: dict[str, Any]) -> None:
        self._state["devices"].append(device)
        self._write()

    def _write(self) -> None:
        beside = self.file.with_suffix(".new")
        beside.write_text(json.dumps(self._state), encoding="utf-8")
        beside.replace(self.file)
