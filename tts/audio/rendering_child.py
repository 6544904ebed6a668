"""The child process that makes a file of speech: `python -m tts.audio.rendering_child PARENT_PID CPU_SECONDS`.

It reads a RenderSpec as JSON from its standard input and answers with one line of JSON. It imports no Django and dies
with its parent.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from typing import Any, Final

import av.logging

from tts.audio.child_limits import limit_itself
from tts.audio.encode import render
from tts.audio.rendering import CHILD_WORKING_MEMORY_BYTES, RenderSpec

# Pages, the API and engines come first.
_NICE: Final = 10


def main() -> int:
    """Make one file; 0 whenever an answer was written."""
    parent_pid, cpu_seconds = int(sys.argv[1]), int(sys.argv[2])
    limit_itself(
        parent_pid=parent_pid, memory_bytes=CHILD_WORKING_MEMORY_BYTES, cpu_seconds=cpu_seconds, nice=_NICE
    )
    spec = RenderSpec(**json.load(sys.stdin))
    av.logging.set_level(None)
    try:
        render(spec)
        answer = _facts(spec.target)
    except Exception as error:
        # The kind alone: what a codec says may quote what it was given.
        answer = {"error": type(error).__name__}
    sys.stdout.write(json.dumps(answer))
    return 0


def _facts(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "sha256": digest,
        "size_bytes": os.path.getsize(path),
        "cpu_ms": round(sum(os.times()[:2]) * 1000),
        "peak_memory_bytes": _peak_memory_bytes(),
    }


def _peak_memory_bytes() -> int:
    """Resident at most; 0 where the system does not tell. Not ru_maxrss, which begins with the parent's."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            lines = [line for line in status if line.startswith("VmHWM:")]
    except OSError:
        return 0
    return int(lines[0].split()[1]) * 1024 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
