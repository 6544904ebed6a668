"""One child of the supervisor: its log file, its restarts and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from portal.embedded import processes
from portal.embedded.processes import ProcessRecords

LOG_BYTES_MAX = 10 * 1024 * 1024
LOG_FILES_KEPT = 3
FIRST_RESTART_DELAY_S = 0.5
LAST_RESTART_DELAY_S = 30.0
# A child that ran this long was healthy: its next end starts the delays from the beginning.
HEALTHY_AFTER_S = 30.0


@contextlib.contextmanager
def open_log(folder: Path, name: str) -> Iterator[int]:
    """Give a descriptor that appends to `NAME.log` until the block ends; a log that has grown too large is
    put aside first.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}.log"
    if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
        for number in range(LOG_FILES_KEPT - 1, 0, -1):
            older = folder / f"{name}.log.{number}"
            if older.exists():
                older.replace(folder / f"{name}.log.{number + 1}")
        path.replace(folder / f"{name}.log.1")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass
class Service:
    """A child that should run as long as its stack does."""

    name: str
    launch: Callable[[int], subprocess.Popen[bytes]]  # takes the descriptor of the log
    logs: Path
    records: ProcessRecords
    token: str
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 10.0
    process: subprocess.Popen[bytes] | None = None
    wanted: bool = False
    failures: int = field(default=0, init=False)
    started_at: float = field(default=0.0, init=False)  # monotonic
    restart_at: float = field(default=0.0, init=False)  # monotonic

    @property
    def log_path(self) -> Path:
        return self.logs / f"{self.name}.log"

    def start(self) -> None:
        with open_log(self.logs, self.name) as log:
            self.adopt(self.launch(log))

    def adopt(self, process: subprocess.Popen[bytes]) -> None:
        """Look after a child that was started elsewhere as if `start` had started it."""
        self.process = process
        self.wanted = True
        self.started_at = time.monotonic()
        self.records.write(self.name, process.pid, token=self.token)

    def look_after(self) -> str | None:
        """Restart the child when it has ended and its delay is over; return a sentence when there is news."""
        now = time.monotonic()
        if not self.wanted:
            return None
        if self.process is None:
            if now >= self.restart_at:
                self.start()
            return None
        if not processes.has_ended(self.process):
            return None
        status = processes.stop(self.process, first=self.stop_signal, grace_s=0)
        if now - self.started_at >= HEALTHY_AFTER_S:
            self.failures = 0
        delay_s = min(LAST_RESTART_DELAY_S, FIRST_RESTART_DELAY_S * 2**self.failures)
        self.failures += 1
        self.process = None
        self.restart_at = now + delay_s
        return (
            f"{self.name} ended by itself ({describe_status(status)}) and starts again in {delay_s:g} s; "
            f"its log: {self.log_path}"
        )

    def seconds_until_restart(self) -> float | None:
        if not self.wanted or self.process is not None:
            return None
        return max(0.0, self.restart_at - time.monotonic())

    def ask_to_stop(self) -> None:
        """Send the stop signal without waiting; `stop` waits."""
        self.wanted = False
        if self.process is not None and not processes.has_ended(self.process):
            os.kill(self.process.pid, self.stop_signal)

    def stop(self, *, in_a_hurry: Callable[[], bool]) -> None:
        """Wait for the end that was asked for, for `grace_s` at most, then end the child's whole session."""
        self.wanted = False
        if self.process is not None:
            processes.wait_and_end(self.process, grace_s=self.grace_s, in_a_hurry=in_a_hurry)
            self.process = None
        self.records.forget(self.name)


def describe_status(status: int) -> str:
    """Return "exit status 1" or "signal SIGKILL" for what `Popen.wait` returns."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def last_lines(path: Path, count: int = 15) -> str:
    """Return the last lines of a log, for a message that says why something failed."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 16384))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-count:])
    except OSError:
        return ""
