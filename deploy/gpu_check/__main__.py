"""Try what VoicePool needs of a real NVIDIA machine: `python deploy/gpu_check`, from anywhere, without a database.

It finds the GPUs by NVML as the node's agent does, reads their telemetry for half a minute, listens for their fault
events, and then, on each GPU in turn and several times, starts a process as an engine is started (its own process
group, CUDA_VISIBLE_DEVICES set to the UUID), lets it take memory and compute with torch, kills it with SIGKILL, and
waits until the GPU's memory is back where it was. Nothing is left running. The GPU should do nothing else meanwhile:
what other programs take or give back shows in the figures.

Needs the packages nvidia-ml-py and torch (with CUDA) of requirements.txt, no Django and no weights; `--python` names
the interpreter of an engine that has its own torch.

Prints what it does on standard error and, last, one line of JSON on standard output:

    {"check": "gpu", "passed": true, "problems": [], "driver": "580.65.06", "gpus": [{"uuid": "GPU-…", "name": "…",
      "memory_total_bytes": …, "baseline_bytes": …, "fault_events": true,
      "telemetry": {"samples": 15, "read_ms_max": 1.9, "untold": ["ecc_errors"], "temperature_c_max": 41, …},
      "recycles": [{"start_s": 5.1, "allocated_bytes": …, "used_bytes": …, "utilisation_percent": 100,
                    "back_after_ms": 310, "left_over_bytes": 0}, …]}]}

Ends with 0 when all is well, 1 when something is not (`problems` says what), 2 when there is no GPU to check.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

try:
    from tts.node.nvml import FaultListener, Gpu, GpuReading, Nvml, NvmlError, NvmlUnavailable
except ModuleNotFoundError as error:
    sys.exit(f"gpu_check: {error}. Install nvidia-ml-py, pinned in requirements.txt.")
from recycle import CheckFailed, Recycle, recycle  # noqa: E402 - beside this file; tts is found only now

FIGURES = ("utilisation_percent", "temperature_c", "power_mw", "ecc_errors", "throttled")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu_check", description="Try a real NVIDIA machine for VoicePool.")
    parser.add_argument("--device", default="", help="the UUID of one GPU; without it, all of them")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long telemetry is read (30)")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two readings (2)")
    parser.add_argument(
        "--recycles", type=int, default=3, help="how often an engine is started and killed (3)"
    )
    parser.add_argument("--megabytes", type=int, default=4096, help="what the engine takes (4096)")
    parser.add_argument("--tolerance-megabytes", type=int, default=64, help="what may be left over (64)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter with torch")
    return parser.parse_args()


def say(text: str) -> None:
    print(f"gpu_check: {text}", file=sys.stderr, flush=True)


def read_telemetry(nvml: Nvml, gpus: list[Gpu], *, seconds: float, every: float) -> dict[str, dict[str, Any]]:
    """What each GPU told in that time, by its UUID."""
    readings: dict[str, list[GpuReading]] = {gpu.uuid: [] for gpu in gpus}
    longest_ms = dict.fromkeys(readings, 0.0)
    ends_at = time.monotonic() + seconds
    while True:
        for gpu in gpus:
            began = time.monotonic()
            readings[gpu.uuid].append(nvml.read(gpu))
            longest_ms[gpu.uuid] = max(longest_ms[gpu.uuid], (time.monotonic() - began) * 1000)
        if time.monotonic() + every > ends_at:
            return {
                uuid: {**summary(told), "read_ms_max": round(longest_ms[uuid], 2)}
                for uuid, told in readings.items()
            }
        time.sleep(every)


def summary(readings: list[GpuReading]) -> dict[str, Any]:
    """The span of each figure, and which figures this card does not tell."""
    figures: dict[str, Any] = {"samples": len(readings), "untold": []}
    for name in ("memory_used_bytes", *FIGURES):
        told = [getattr(reading, name) for reading in readings if getattr(reading, name) is not None]
        if not told:
            figures["untold"].append(name)
            continue
        figures[f"{name}_min"], figures[f"{name}_max"] = min(told), max(told)
    return figures


def listens(gpu: Gpu) -> bool:
    """Whether the GPU's faults (Xid, double-bit errors) can be listened to."""
    listener = FaultListener([gpu])
    try:
        if gpu.uuid not in listener.watched:
            return False
        listener.wait(timeout_ms=100)
        return True
    finally:
        listener.close()


def check_gpu(nvml: Nvml, gpu: Gpu, arguments: argparse.Namespace, problems: list[str]) -> dict[str, Any]:
    """Recycle an engine on the GPU as often as asked. Problems are added to the list."""
    baseline = nvml.read(gpu).memory_used_bytes
    fault_events = listens(gpu)
    if not fault_events:
        say(
            f"{gpu.uuid} reports no fault events: a sick card is then found by its memory errors and by its end"
        )
    done: list[Recycle] = []
    for number in range(arguments.recycles):
        say(f"{gpu.uuid}: engine {number + 1} of {arguments.recycles}")
        try:
            one = recycle(
                read=lambda: nvml.read(gpu),
                uuid=gpu.uuid,
                python=arguments.python,
                allocate_bytes=arguments.megabytes * 1024**2,
                baseline_bytes=baseline,
                tolerance_bytes=arguments.tolerance_megabytes * 1024**2,
            )
        except CheckFailed as failure:
            problems.append(f"{gpu.uuid}: {failure}")
            break
        done.append(one)
        say(
            f"{gpu.uuid}: started in {one.start_s:.1f} s, used {one.used_bytes / 1024**2:.0f} MiB, "
            f"back after {one.back_after_ms:.0f} ms with {one.left_over_bytes / 1024**2:.1f} MiB left over"
        )
    return {
        "uuid": gpu.uuid,
        "name": gpu.name,
        "memory_total_bytes": gpu.memory_total_bytes,
        "baseline_bytes": baseline,
        "fault_events": fault_events,
        "recycles": [asdict(one) for one in done],
    }


def check(nvml: Nvml, gpus: list[Gpu], arguments: argparse.Namespace) -> int:
    problems: list[str] = []
    for gpu in gpus:
        say(f"found {gpu.uuid}, {gpu.name}, {gpu.memory_total_bytes / 1024**3:.1f} GiB")
    say(f"reading telemetry for {arguments.seconds:g} s")
    telemetry = read_telemetry(nvml, gpus, seconds=arguments.seconds, every=arguments.every)
    checked = [
        {**check_gpu(nvml, gpu, arguments, problems), "telemetry": telemetry[gpu.uuid]} for gpu in gpus
    ]
    for problem in problems:
        say(f"PROBLEM: {problem}")
    line = {
        "check": "gpu",
        "passed": not problems,
        "problems": problems,
        "driver": nvml.driver_version(),
        "gpus": checked,
    }
    print(json.dumps(line), flush=True)
    return 1 if problems else 0


def main() -> int:
    arguments = parse_arguments()
    try:
        nvml = Nvml()
    except NvmlUnavailable as error:
        say(
            f"there is no NVIDIA driver here that answers: {error}. This check needs a machine with an NVIDIA GPU."
        )
        return 2
    try:
        gpus = [gpu for gpu in nvml.gpus() if arguments.device in ("", gpu.uuid)]
        if not gpus:
            say(f"the driver answers, and shows no GPU {arguments.device}".rstrip() + ".")
            return 2
        return check(nvml, gpus, arguments)
    except NvmlError as error:
        say(f"PROBLEM: NVML failed in the middle: {error}")
        return 1
    finally:
        nvml.close()


if __name__ == "__main__":
    sys.exit(main())
