"""Making a file of speech in a child process: codecs have no place in a process that serves pages.

The speech is our own, so the child is bounded against accidents, not against attacks: memory, processor time, the size
of what it writes, and the time that anybody waits for it. Samples pass through it block by block.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import wave
from dataclasses import asdict, dataclass
from typing import Any, Final

from portal.lib.confinement import ENVIRONMENT, PROJECT_ROOT
from tts.audio import explicit

logger = logging.getLogger(__name__)

_CHILD_MODULE: Final = "tts.audio.rendering_child"

# Measured: 77 MB resident, however long the speech is. Address space on top of what the libraries take.
CHILD_WORKING_MEMORY_BYTES: Final = 256 * 1024 * 1024
# Measured: 0.035 s of processor for a second of speech where loudness is levelled (three passes); ten times that.
CPU_SECONDS_PER_SECOND: Final = 0.35
CPU_SECONDS_AT_LEAST: Final = 20
# A host that is busy with other things gives it a part of a processor.
WALL_FACTOR: Final = 5


@dataclass(frozen=True)
class RenderSpec:
    """What is wanted. `explicit_label` is a kind of `tts.audio.explicit`; `spoken_label` the WAV file of the words."""

    source: str
    target: str
    format: str
    sample_rate_hz: int
    label: str
    loudness_lufs: float | None = None
    explicit_label: str = explicit.NONE
    label_position: str = explicit.AT_START
    spoken_label: str = ""


class RenderFailed(Exception):
    """The child did not make the file, or its label could not be read back. The text names a kind, no content."""


@dataclass(frozen=True)
class Rendered:
    """What was made: hex SHA-256 and size of the file, and what it cost."""

    sha256: str
    size_bytes: int
    cpu_ms: int
    peak_memory_bytes: int


def cpu_seconds_for(source: str) -> int:
    """How much processor time a file of that length may take."""
    with wave.open(source) as file:
        seconds = file.getnframes() / file.getframerate()
    return CPU_SECONDS_AT_LEAST + int(seconds * CPU_SECONDS_PER_SECOND)


def render_file(spec: RenderSpec) -> Rendered:
    """Make `spec.target` of `spec.source`, both on a local disk, and wait for it.

    Its label has been read back when this returns. What is left of a failure under the target's name is the caller's
    to remove.

    Raises:
        RenderFailed, and OSError where the source cannot be read.
    """
    cpu_seconds = cpu_seconds_for(spec.source)
    child = subprocess.Popen(
        [sys.executable, "-s", "-m", _CHILD_MODULE, str(os.getpid()), str(cpu_seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=PROJECT_ROOT,
        env=ENVIRONMENT,
        start_new_session=True,
    )
    try:
        answer, _ = child.communicate(json.dumps(asdict(spec)).encode(), timeout=cpu_seconds * WALL_FACTOR)
    except subprocess.TimeoutExpired:
        raise RenderFailed("timeout") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return _read_answer(answer, exit_status=child.returncode)


def _read_answer(answer: bytes, *, exit_status: int) -> Rendered:
    try:
        said: dict[str, Any] = json.loads(answer)
    except ValueError:
        raise RenderFailed(f"exit_{exit_status}") from None
    if "error" in said:
        raise RenderFailed(str(said["error"]))
    return Rendered(**said)
