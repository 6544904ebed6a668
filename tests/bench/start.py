"""How long `make run` takes on an installed tree until `/readyz` answers 200.

`ready_s` is the first start on an empty data folder (initdb and all migrations), `ready_again_s` a start on a
folder that has its data. Both are medians over a few starts, make and the check of the installation included.
Without the spoken demonstration, which comes after readiness, and with the built-in engine unless
VOICEPOOL_CPU_ENGINE says other.
"""

from __future__ import annotations

import http.client
import os
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from portal.embedded.ports import port_of, reserve_loopback_port

ROOT = Path(__file__).resolve().parent.parent.parent
ROUNDS = 3
TIMEOUT_S = 120.0
POLL_S = 0.02


def run() -> dict[str, float]:
    """Return `ready_s` and `ready_again_s`, in seconds."""
    first, again = [], []
    for number in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="voicepool-bench-") as folder:
            data = Path(folder) / "data"
            first.append(_start_once(data))
            again.append(_start_once(data))
        print(f"round {number + 1}: first start {first[-1]:.2f} s, again {again[-1]:.2f} s", flush=True)
    return {
        "ready_s": round(statistics.median(first), 2),
        "ready_again_s": round(statistics.median(again), 2),
    }


def _start_once(data: Path) -> float:
    """Start the stack, return the seconds until it was ready, and stop it again."""
    with reserve_loopback_port() as reservation:
        port = port_of(reservation)
    began = time.monotonic()
    process = subprocess.Popen(
        ["make", "--no-print-directory", "run", f"DATA={data}", f"PORT={port}", "ARGS=--no-demonstration"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while not _is_ready(port):
            if process.poll() is not None or time.monotonic() - began > TIMEOUT_S:
                raise RuntimeError("The stack did not become ready.")
            time.sleep(POLL_S)
        return time.monotonic() - began
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does
        process.wait(60)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2.0)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
