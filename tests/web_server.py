"""A real web server, started as the embedded stack starts it, on a database and a Redis that are there already."""

from __future__ import annotations

import http.client
import os
import signal
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from portal.embedded import children, processes
from portal.embedded.ports import port_of, reserve_loopback_port

READY_TIMEOUT_S = 60.0
GRACE_S = 10.0


class WebServer:
    """One gunicorn with one worker process. Stop it, whatever happens."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `stop`
        with reserve_loopback_port() as listener:
            listener.listen(128)
            self.port = port_of(listener)
            self.process = children.start_web(
                self._log.fileno(), environment={**os.environ, **environment}, listener=listener
            )

    def wait_until_ready(self) -> None:
        """Return once it answers. Raises AssertionError, with its log, when it does not."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if self.get("/healthz").status == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)
        raise AssertionError(f"the web server did not start:\n{self.log}")

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Any:
        """The whole answer; its body is in `body`."""
        connection = self.connect()
        try:
            connection.request("GET", path, headers=dict(headers or {}))
            response: Any = connection.getresponse()
            response.body = response.read()
            return response
        finally:
            connection.close()

    @property
    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    @property
    def worker_pid(self) -> int:
        """The process that serves: gunicorn's only child."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            (pid,) = file.read().split()
        return int(pid)

    def stop(self) -> None:
        processes.stop(self.process, first=signal.SIGTERM, grace_s=GRACE_S)
        self._log.close()
