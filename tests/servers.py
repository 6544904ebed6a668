"""One PostgreSQL and one Valkey for a whole test session, from the same code as the embedded stack.

`start_servers()` starts a small process of its own that owns both. It ends with the session however that
ends: it watches a pipe from the test process, which the kernel closes even after `kill -9`, then stops both
and deletes their folder. TEST_DATABASE_URL and TEST_REDIS_URL name servers to use instead; their role must be
allowed to create databases.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from portal.embedded import postgres, processes, valkey
from portal.embedded.ports import port_of, reserve_loopback_port
from portal.embedded.template import find_template

ROOT = Path(__file__).resolve().parent.parent
READY_TIMEOUT_S = 60.0


@dataclass
class TestServers:
    __test__ = False  # not a test class, whatever its name says

    database_url: str
    redis_url: str
    data_folder: Path
    # The name of a database with all tables to copy for the tests; "" where there is none.
    database_template: str
    keeper: subprocess.Popen[bytes] | None

    def stop(self) -> None:
        """Stop the servers that were started here and delete their data."""
        if self.keeper is not None and self.keeper.stdin is not None:
            self.keeper.stdin.close()
            self.keeper.wait(60)
            if self.keeper.stdout is not None:
                self.keeper.stdout.close()
            self.keeper = None


def start_servers() -> TestServers:
    """Return the URLs of a fresh PostgreSQL and Valkey, or of those that the environment names, and a data
    folder.
    """
    if os.environ.get("PYTEST_XDIST_WORKER") and os.environ.get("TEST_REDIS_URL"):
        raise RuntimeError(
            "Tests that run side by side cannot share TEST_REDIS_URL: run them with WORKERS=0."
        )
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.servers"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the test session, which closes the pipe when it is done
    )
    assert keeper.stdout is not None  # a pipe was asked for
    line = keeper.stdout.readline()
    if not line:
        raise RuntimeError("The test servers did not start; see the messages above.")
    urls = json.loads(line)
    return TestServers(
        database_url=urls["database_url"],
        redis_url=urls["redis_url"],
        data_folder=Path(urls["data_folder"]),
        database_template=urls["database_template"],
        keeper=keeper,
    )


class _Keeper:
    """The servers of one test session and their folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = {processes.TOKEN_VARIABLE: secrets.token_hex(16)}
        self.reservations: list[socket.socket] = []
        self.started: list[tuple[subprocess.Popen[bytes], signal.Signals]] = []
        self.database_template = ""

    def reserve(self) -> socket.socket:
        self.reservations.append(reserve_loopback_port())
        return self.reservations[-1]

    def start_postgres(self, log: BinaryIO) -> str:
        server = postgres.Postgres(
            folder=self.folder / "postgres",
            port=port_of(self.reserve()),
            password=postgres.new_password(),
            superuser_password=postgres.new_password(),
            environment=self.token,
        )
        template = find_template()
        if server.create(template=template) and template is not None:
            self.database_template = postgres.DATABASE
        settings = {**postgres.THROWAWAY_SETTINGS, "max_connections": "200"}
        process = server.start(log.fileno(), extra_settings=settings)
        self.started.append((process, postgres.STOP_SIGNAL))
        if not postgres.wait_until_ready(server, process, timeout_s=READY_TIMEOUT_S):
            raise RuntimeError("PostgreSQL did not become ready.")
        return server.database_url

    def start_valkey(self, log: BinaryIO) -> str:
        server = valkey.Valkey(
            folder=self.folder / "valkey",
            port=port_of(self.reserve()),
            password=postgres.new_password(),
            environment=self.token,
            durable=False,
        )
        process = server.start(log.fileno())
        self.started.append((process, valkey.STOP_SIGNAL))
        if not valkey.wait_until_ready(server, process, timeout_s=READY_TIMEOUT_S):
            raise RuntimeError("Valkey did not become ready.")
        return server.redis_url

    def stop(self) -> None:
        for process, stop_signal in self.started:
            processes.stop(process, first=stop_signal, grace_s=10.0)
        shutil.rmtree(self.folder, ignore_errors=True)


def main() -> int:
    """Run both servers until standard input ends."""
    # A terminated keeper cleans up like one whose test session ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    keeper = _Keeper(Path(tempfile.mkdtemp(prefix="voicepool-tests-")))
    log_path = keeper.folder / "servers.log"
    data_folder = keeper.folder / "data"
    data_folder.mkdir()
    try:
        with log_path.open("wb") as log:
            urls = {
                "redis_url": os.environ.get("TEST_REDIS_URL") or keeper.start_valkey(log),
                "database_url": os.environ.get("TEST_DATABASE_URL") or keeper.start_postgres(log),
                "data_folder": str(data_folder),
                "database_template": keeper.database_template,
            }
        print(json.dumps(urls), flush=True)
        while os.read(sys.stdin.fileno(), 1024):
            pass
        return 0
    except RuntimeError as error:
        print(log_path.read_text(errors="replace"), error, sep="\n", file=sys.stderr)
        return 1
    finally:
        keeper.stop()


if __name__ == "__main__":
    sys.exit(main())
