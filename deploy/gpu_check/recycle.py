"""One life of an engine-like process on a GPU: started, at work, killed, and its memory back."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tts.node.nvml import GpuReading

ALLOCATE = Path(__file__).resolve().parent / "allocate.py"
START_WITHIN_S = 120.0
DEAD_WITHIN_S = 10.0
BACK_WITHIN_S = 15.0
# While the engine computes, its card is looked at for so long: utilisation is a mean over up to a second.
WATCHED_S = 2.0
POLL_S = 0.02


class CheckFailed(Exception):
    """What went wrong, in words for the one who set the machine up."""


@dataclass(frozen=True)
class Recycle:
    start_s: float
    """From the start of the process to its first finished computation."""
    allocated_bytes: int
    """What torch says it holds."""
    used_bytes: int
    """What NVML says was used at most, beyond the baseline."""
    utilisation_percent: int | None
    back_after_ms: float
    """From SIGKILL until the memory was back."""
    left_over_bytes: int
    """What was used beyond the baseline after that; may be below zero where others gave something back."""


def recycle(
    *,
    read: Callable[[], GpuReading],
    uuid: str,
    python: str,
    allocate_bytes: int,
    baseline_bytes: int,
    tolerance_bytes: int,
) -> Recycle:
    """Start an engine-like process on the GPU, watch it at work, kill it, and wait for its memory.

    Raises:
        CheckFailed: it did not start, saw another GPU, did not die, or its memory did not come back.
    """
    began = time.monotonic()
    process = subprocess.Popen(
        [python, str(ALLOCATE), str(allocate_bytes)],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": uuid},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        told = _first_line(process)
        start_s = time.monotonic() - began
        used, utilisation = _watch(read)
        if process.poll() is not None:
            raise CheckFailed(f"the engine ended by itself with {process.returncode}")
        if told["visible_devices"] != 1:
            raise CheckFailed(
                f"the engine saw {told['visible_devices']} GPUs instead of the one with its UUID"
            )
        if used - baseline_bytes < told["allocated_bytes"]:
            raise CheckFailed(
                f"NVML saw {used - baseline_bytes} bytes more in use on this GPU, "
                f"torch holds {told['allocated_bytes']}: "
                "the engine is on another GPU, or something else gave memory back meanwhile"
            )
    finally:
        killed_at = time.monotonic()
        _kill(process)
    left_over = _wait_until_back(read, baseline_bytes=baseline_bytes, tolerance_bytes=tolerance_bytes)
    return Recycle(
        start_s=round(start_s, 2),
        allocated_bytes=told["allocated_bytes"],
        used_bytes=used - baseline_bytes,
        utilisation_percent=utilisation,
        back_after_ms=round((time.monotonic() - killed_at) * 1000, 1),
        left_over_bytes=left_over,
    )


def _first_line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The line in which the engine says that it has computed something."""
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(START_WITHIN_S):
            raise CheckFailed(f"the engine had not computed anything after {START_WITHIN_S:.0f} s")
    line = process.stdout.readline()
    if not line:
        process.wait(DEAD_WITHIN_S)
        raise CheckFailed(
            f"the engine did not start (status {process.returncode}); its own words stand above"
        )
    told: dict[str, Any] = json.loads(line)
    return told


def _watch(read: Callable[[], GpuReading]) -> tuple[int, int | None]:
    """The most memory used and the highest utilisation while the engine computes."""
    used, utilisation = 0, None
    ends_at = time.monotonic() + WATCHED_S
    while time.monotonic() < ends_at:
        reading = read()
        used = max(used, reading.memory_used_bytes)
        if reading.utilisation_percent is not None:
            utilisation = max(utilisation or 0, reading.utilisation_percent)
        time.sleep(0.1)
    return used, utilisation


def _kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the process's whole group, and wait for it."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(DEAD_WITHIN_S)
    except subprocess.TimeoutExpired as error:
        raise CheckFailed(
            f"the engine was not dead {DEAD_WITHIN_S:.0f} s after SIGKILL: the driver holds it"
        ) from error
    if process.stdout is not None:
        process.stdout.close()


def _wait_until_back(read: Callable[[], GpuReading], *, baseline_bytes: int, tolerance_bytes: int) -> int:
    """What is used beyond the baseline, once that is within the tolerance."""
    ends_at = time.monotonic() + BACK_WITHIN_S
    while True:
        left_over = read().memory_used_bytes - baseline_bytes
        if left_over <= tolerance_bytes:
            return left_over
        if time.monotonic() > ends_at:
            raise CheckFailed(
                f"{left_over} bytes were not given back within {BACK_WITHIN_S:.0f} s of SIGKILL"
            )
        time.sleep(POLL_S)
