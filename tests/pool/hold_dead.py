"""`python hold_dead.py PID`: keeps a process from being gone after its death, as a driver that hangs does.

To the parent of a process that another one traces, it has not ended until its tracer has seen it.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

PTRACE_SEIZE = 0x4206  # linux/ptrace.h

if __name__ == "__main__":
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(PTRACE_SEIZE, int(sys.argv[1]), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    print("held", flush=True)
    while True:
        time.sleep(60)  # held until the test kills it
