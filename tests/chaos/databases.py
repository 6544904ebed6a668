"""A durable PostgreSQL and a forgetful Valkey that can be killed and come back on the same ports."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from portal.embedded import postgres, processes, valkey
from portal.embedded.ports import port_of, reserve_loopback_port
from portal.embedded.template import find_template

READY_TIMEOUT_S = 60.0
# PostgreSQL refuses to start while a process of the one before still has the shared memory.
RESTART_TIMEOUT_S = 60.0


class Databases:
    """Both servers of one run. Start, kill and stop them in the main thread: they end with it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="voicepool-chaos-"))
        self._log = (self.folder / "databases.log").open("ab")
        # Kept while the servers are down too, so that nobody else is given their ports.
        self._ports = [reserve_loopback_port(), reserve_loopback_port()]
        self._postgres = postgres.Postgres(
            folder=self.folder / "postgres",
            port=port_of(self._ports[0]),
            password=postgres.new_password(),
            superuser_password=postgres.new_password(),
            environment=environment,
        )
        self._valkey = valkey.Valkey(
            folder=self.folder / "valkey",
            port=port_of(self._ports[1]),
            password=postgres.new_password(),
            environment=environment,
            durable=False,
        )
        self._postgres_process: subprocess.Popen[bytes] | None = None
        self._valkey_process: subprocess.Popen[bytes] | None = None

    @property
    def database_url(self) -> str:
        return self._postgres.database_url

    @property
    def redis_url(self) -> str:
        return self._valkey.redis_url

    @property
    def database_port(self) -> int:
        return self._postgres.port

    @property
    def redis_port(self) -> int:
        return self._valkey.port

    def start(self) -> None:
        """Make and start both; PostgreSQL as in operation: with fsync and synchronous commits."""
        # With all tables in it, where the installation has made one.
        self._postgres.create(template=find_template())
        self._start_postgres()
        self._start_valkey()

    def kill_postgres(self) -> None:
        """Kill the postmaster; its backends end by themselves. It answers again when this returns."""
        assert self._postgres_process is not None
        os.kill(self._postgres_process.pid, signal.SIGKILL)
        self._postgres_process.wait()
        self._start_postgres()

    def kill_backend(self, pid: int) -> bool:
        """Kill one session's process: PostgreSQL ends all the others and recovers. False when it is gone."""
        assert self._postgres_process is not None
        try:
            backend = psutil.Process(pid)
            if backend.ppid() != self._postgres_process.pid:
                return False
            backend.kill()
        except psutil.NoSuchProcess:
            return False
        return True

    def kill_valkey(self) -> None:
        """Kill it with all that it holds. It answers again, empty, when this returns."""
        assert self._valkey_process is not None
        os.kill(self._valkey_process.pid, signal.SIGKILL)
        self._valkey_process.wait()
        self._start_valkey()

    def stop(self, *, keep_folder: bool = False) -> None:
        """Stop both and delete their folder."""
        for process, first in (
            (self._valkey_process, valkey.STOP_SIGNAL),
            (self._postgres_process, postgres.STOP_SIGNAL),
        ):
            if process is not None:
                processes.stop(process, first=first, grace_s=20.0)
        for port in self._ports:
            port.close()
        self._log.close()
        if not keep_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _start_postgres(self) -> None:
        deadline = time.monotonic() + RESTART_TIMEOUT_S
        while time.monotonic() < deadline:
            process = self._postgres.start(self._log.fileno(), extra_settings={"max_connections": "200"})
            if postgres.wait_until_ready(self._postgres, process, timeout_s=READY_TIMEOUT_S):
                self._postgres_process = process
                return
            process.kill()
            process.wait()
            time.sleep(0.1)  # between two tries of a server that is starting
        raise RuntimeError("PostgreSQL did not come back.")

    def _start_valkey(self) -> None:
        self._valkey_process = self._valkey.start(self._log.fileno())
        if not valkey.wait_until_ready(self._valkey, self._valkey_process, timeout_s=READY_TIMEOUT_S):
            raise RuntimeError("Valkey did not come back.")
