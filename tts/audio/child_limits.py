"""What a child process that loads codecs takes from itself before it sees any sound. Standard library only."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from typing import Final

EXIT_ORPHANED: Final = 3
_PR_SET_PDEATHSIG: Final = 1


def limit_itself(*, parent_pid: int, memory_bytes: int, cpu_seconds: int, nice: int) -> None:
    """Bound this process: so much address space on top of what it has by now, and so much processor time.

    It dies with its parent; where that is gone already, it ends here.
    """
    os.nice(nice)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        with open("/proc/self/statm", encoding="ascii") as statm:
            address_space = int(statm.read().split()[0]) * resource.getpagesize()
        _limit(resource.RLIMIT_AS, address_space + memory_bytes)
    if os.getppid() != parent_pid:
        sys.exit(EXIT_ORPHANED)
    _limit(resource.RLIMIT_CPU, cpu_seconds)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))
