"""A child process that touches an untrusted file: locked in on its side, bounded on its parent's.

The child reads the file on its standard input and writes to its standard output: `READY_LINE` once it has locked itself
in, then its answer. Before the first byte of the file is read it has given up: becoming root again, opening any file or
socket, starting any process or thread, writing more than a small answer, and more memory and processor time than it was
granted. It dies with its parent. Imports no Django: the child loads this.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

# What the child writes first, once it has locked itself in. One that dies before has not seen the file.
READY_LINE: Final = b"ready\n"
# Exit status when the parent was gone before the child could tie its life to it.
EXIT_ORPHANED: Final = 3

_PR_SET_PDEATHSIG: Final = 1
_NOBODY: Final = 65_534
PROJECT_ROOT: Final = Path(__file__).resolve().parents[2]
# Out of time (the kernel sends SIGKILL at the hard limit), of output, or of memory in a library that aborts.
_SPENT: Final = frozenset({signal.SIGXCPU, signal.SIGKILL, signal.SIGXFSZ, signal.SIGABRT})

# A child gets this environment and nothing of the parent's: no database address, no keys. So do the children that
# encode what we made ourselves (tts.audio).
ENVIRONMENT: Final = {
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    # One thread each: the child may not start threads.
    "OMP_THREAD_LIMIT": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # One heap, so that the limit on address space limits what is used, not what is reserved.
    "MALLOC_ARENA_MAX": "1",
}


@dataclass(frozen=True)
class ChildAnswer:
    """How a confined child ended. `content` is what it wrote after its ready line.

    `complaint` is what it said before it was ready, when it had seen nothing of the file: safe to log.
    """

    ready: bool
    exit_status: int | None
    content: bytes
    complaint: str
    waited_ms: int

    @property
    def is_whole(self) -> bool:
        """Whether it ended by itself, with an answer."""
        return self.ready and self.exit_status == 0

    @property
    def ran_out(self) -> bool:
        """Whether it was stopped because it took too much time, memory or output (exit status None: the wait's end)."""
        return self.exit_status is None or -self.exit_status in _SPENT

    @property
    def log_facts(self) -> dict[str, Any]:
        """What a log may say of a child that failed: nothing of the file."""
        return {
            "exit_status": self.exit_status,
            "child_was_ready": self.ready,
            "waited_ms": self.waited_ms,
            "complaint": self.complaint,
        }


def ask_child(module: str, upload: IO[bytes], *, wall_seconds: float, output_bytes: int) -> ChildAnswer:
    """Run `python -m module PARENT_PID` on an open file, wait for its end, and leave no process behind."""
    # A file rather than a pipe: what the child writes is bounded by its own limit, and nobody waits for a reader.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        started = time.monotonic()
        child = subprocess.Popen(
            [sys.executable, "-s", "-m", module, str(os.getpid())],
            stdin=upload,
            stdout=output,
            stderr=complaints,
            cwd=PROJECT_ROOT,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        try:
            exit_status: int | None = child.wait(timeout=wall_seconds)
        except subprocess.TimeoutExpired:
            exit_status = None
        finally:
            _end(child)
        output.seek(0)
        written = output.read(output_bytes)
        ready = written.startswith(READY_LINE)
        complaints.seek(0)
        return ChildAnswer(
            ready=ready,
            exit_status=exit_status,
            content=written[len(READY_LINE) :] if ready else b"",
            complaint="" if ready else complaints.read(2_000).decode(errors="replace"),
            waited_ms=round((time.monotonic() - started) * 1000),
        )


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and whatever shares its process group, and reap it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def lock_in(*, parent_pid: int, cpu_seconds: int, memory_bytes: int, output_bytes: int) -> None:
    """Give up every right that reading a file does not need; `memory_bytes` is on top of what is in use now.

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
    _limit(resource.RLIMIT_CPU, math.ceil(sum(os.times()[:2])) + cpu_seconds)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, output_bytes)
    _limit(resource.RLIMIT_NPROC, 0)
    if address_space is not None:
        _limit(resource.RLIMIT_AS, address_space + memory_bytes)
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
