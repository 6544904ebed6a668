"""Child processes that cannot outlive their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

# prctl(2)
PR_SET_PDEATHSIG = 1


def die_with_parent(death_signal: signal.Signals = signal.SIGKILL) -> Callable[[], None] | None:
    """A `preexec_fn` by which the kernel signals the child when this process ends, however it ends (Linux).

    Strictly, when the thread ends that starts the child. Resolves libc before the fork: between fork and exec
    only system calls are safe.
    """
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def arm() -> None:
        prctl(PR_SET_PDEATHSIG, int(death_signal))
        # The parent may have ended between the fork and the call above.
        if os.getppid() != parent:
            os._exit(1)

    return arm
