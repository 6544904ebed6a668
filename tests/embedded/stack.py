"""A whole embedded stack as a child of a test."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from portal.embedded import processes
from portal.embedded.layout import DataFolder
from portal.embedded.ports import port_of, reserve_loopback_port
from portal.embedded.processes import ProcessIdentity

ROOT = Path(__file__).resolve().parent.parent.parent
READY_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 60.0


def free_port() -> int:
    with reserve_loopback_port() as reservation:
        return port_of(reservation)


def environment_for_stack(**more: str) -> dict[str, str]:
    """The environment of a person's shell: nothing of the test session's own servers and settings, nor what `make test`
    was called with."""
    ours = {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE", "VOICEPOOL_DATA"}
    ours |= {"MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "ARGS"}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    # Where the engine is not the point: exact timings, nothing to load.
    return {**kept, "VOICEPOOL_CPU_ENGINE": "simulated", **more}


class Stack:
    """One run of `python -m portal.embedded` and what it says."""

    def __init__(
        self,
        data: Path,
        *,
        port: int | None = None,
        python: str = sys.executable,
        environment: Mapping[str, str] | None = None,
        user: int | None = None,
        arguments: tuple[str, ...] = ("--no-demonstration",),
    ) -> None:
        self.folder = DataFolder(data)
        self.port = port or free_port()
        descriptor, path = tempfile.mkstemp(dir=data.parent, prefix=f"{data.name}-", suffix=".out")
        self.output_path = Path(path)
        with os.fdopen(descriptor, "wb") as output:
            self.process = subprocess.Popen(
                [python, "-m", "portal.embedded", "--data", str(data), "--port", str(self.port), *arguments],
                cwd=ROOT,
                env=environment or environment_for_stack(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )

    @property
    def output(self) -> str:
        return self.output_path.read_text()

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while "VoicePool is ready" not in self.output:
            if self.process.poll() is not None or time.monotonic() > deadline:
                logs = "".join(
                    f"\n--- {path.name}\n{path.read_text()[-2000:]}"
                    for path in self.folder.logs.glob("*.log")
                )
                raise AssertionError(f"The stack did not become ready:\n{self.output}{logs}")
            time.sleep(0.05)

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    @property
    def token(self) -> str:
        record = next((self.folder.run / "processes").glob("*.json"))
        return str(json.loads(record.read_text())["token"])

    def processes(self) -> dict[int, ProcessIdentity]:
        """Every process of the stack but the supervisor, by process id: recorded or carrying its token."""
        found = {identity.pid: identity for identity in processes._carriers({self.token})}
        for path in (self.folder.run / "processes").glob("*.json"):
            identity, _ = processes._read_record(path)
            if identity is not None and processes.identify(identity.pid) == identity:
                found[identity.pid] = identity
        return found

    def pid_of(self, name: str) -> int:
        return int(json.loads((self.folder.run / "processes" / f"{name}.json").read_text())["pid"])

    def database_url(self) -> str:
        password = self.folder.secrets.read("database_password")
        return f"postgresql://voicepool:{password}@127.0.0.1:{self.folder.read_state()['postgres_port']}/voicepool"

    def interrupt(self) -> int:
        """Press Ctrl-C and return the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(STOP_TIMEOUT_S)

    def kill_everything(self) -> None:
        """`kill -9` the supervisor and every process of its stack."""
        self.process.send_signal(signal.SIGSTOP)  # so that it does not restart what is killed first
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End whatever a failed test left."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if (self.folder.run / "processes").exists():
            processes.ProcessRecords(self.folder.run / "processes").end_leftovers()


def listens(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.connect()
    except OSError:
        return False
    finally:
        connection.close()
    return True
