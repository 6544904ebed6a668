"""What stands in for an engine: takes memory on the one GPU that it sees, computes, and goes on until it is killed.

Started by gpu_check with the number of bytes to take. Prints one line of JSON when it has computed something.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys

MATRIX = 4096
PR_SET_PDEATHSIG = 1  # prctl(2)


def main() -> None:
    if sys.platform.startswith("linux"):
        # It must not outlive the check and keep the GPU's memory.
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:
            sys.exit(1)
    try:
        import torch
    except ModuleNotFoundError:
        sys.exit("gpu_check: this Python has no torch. Name one that has with --python.")
    if not torch.cuda.is_available():
        sys.exit(
            f"gpu_check: torch {torch.__version__} sees no CUDA device: it was built without CUDA, or the driver is "
            "too old for it."
        )
    held = torch.empty(int(sys.argv[1]), dtype=torch.uint8, device="cuda")
    held.fill_(1)
    factor = torch.randn(MATRIX, MATRIX, device="cuda", dtype=torch.float16)
    product = torch.matmul(factor, factor)
    torch.cuda.synchronize()
    line = {
        "device": torch.cuda.get_device_name(),
        "visible_devices": torch.cuda.device_count(),
        "allocated_bytes": torch.cuda.memory_allocated(),
        "torch": torch.__version__,
    }
    print(json.dumps(line), flush=True)
    while True:
        torch.matmul(factor, factor, out=product)
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
