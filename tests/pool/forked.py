"""Commands of `manage.py` that begin in a fork of a process which has imported Django, and none of our own code.

Most of a command's start is the import of packages: a second of a processor, for every agent and every clock of every
test. `Forks` starts one process for a test session that imports those packages once. Each command is a fork of it with
the environment it was given, in which manage.py is run as always: our code and the settings are read afresh.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from portal.lib.child_process import die_with_parent

ROOT = Path(__file__).resolve().parent.parent.parent
LOOK_EVERY_S = 0.02
# What a clock imports, so far as that reads neither settings nor the environment.
PACKAGES = (
    "django.contrib.admin.filters",
    "django.core.cache",
    "django.core.mail",
    "django.core.management",
    "django.core.serializers.json",
    "django.db.backends.postgresql.base",
    "django.db.migrations",
    "django.forms",
    "django.template",
    "django.urls",
    "prometheus_client",
    "psutil",
    "psycopg",
    "redis",
    "requests",
    "rq",
    "rq.cron",
)


class ForkedCommand:
    """A command that runs; like `subprocess.Popen`, of which it has what the tests use."""

    def __init__(self, forks: Forks, pid: int) -> None:
        self._forks = forks
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, minus the signal's number for who was killed by one; None while it runs."""
        if self.returncode is None:
            self.returncode = self._forks.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """
        Raises:
            subprocess.TimeoutExpired: it still runs after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            time.sleep(LOOK_EVERY_S)  # between two looks
        return code

    def send_signal(self, number: int) -> None:
        # Until its end has been asked for, its process id belongs to nobody else.
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forks:
    """Starts commands. Its process is started with the first one and ends with this one. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: subprocess.Popen[str] | None = None

    def start(self, *arguments: str, environment: Mapping[str, str]) -> ForkedCommand:
        """Run `manage.py` with these arguments and exactly this environment."""
        pid = self.ask({"arguments": arguments, "environment": dict(environment)})
        assert pid is not None
        return ForkedCommand(self, pid)

    def ask(self, request: dict[str, Any]) -> int | None:
        """The answer of the process that forks: a process id, or an exit status."""
        with self._lock:
            if self._server is None:
                self._server = self._start()
            assert self._server.stdin is not None  # pipes were asked for
            assert self._server.stdout is not None
            print(json.dumps(request), file=self._server.stdin, flush=True)
            answer: int | None = json.loads(self._server.stdout.readline())
            return answer

    def _start(self) -> subprocess.Popen[str]:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.pool.forked"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        atexit.register(self.stop)
        return server

    def stop(self) -> None:
        """End the process that forks; what it started is told to end with it."""
        with self._lock:
            if self._server is not None:
                self._server.communicate()  # which closes its input
                self._server = None


FORKS = Forks()


def _serve() -> None:
    """Answer each line of standard input with one of standard output, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # commands talk where this process complains
    for package in PACKAGES:
        importlib.import_module(package)
    ours = [name for name in sys.modules if name.split(".")[0] in ("accounts", "billing", "tts")]
    if ours or sys.modules["django.conf"].settings.configured:
        raise RuntimeError(f"Our own code or settings were imported too early: {ours}")
    gc.collect()
    gc.freeze()
    # The requests are read unbuffered: nothing of them must be left over in a fork.
    for line in iter(lambda: _line(0), b""):
        request = json.loads(line)
        answer = _status(request["poll"]) if "poll" in request else _fork(request)
        print(json.dumps(answer), file=answers, flush=True)


def _line(descriptor: int) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        read = os.read(descriptor, 1)
        if not read:
            return b""
        line += read
    return bytes(line)


def _status(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _fork(request: dict[str, Any]) -> int:
    arm = die_with_parent(signal.SIGTERM)
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        if arm is not None:
            arm()
        os.closerange(3, 256)  # the pipe of the answers
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        code = _run(request["arguments"], request["environment"])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(arguments: list[str], environment: dict[str, str]) -> int:
    """Run manage.py as the interpreter would; returns the exit status."""
    os.environ.clear()
    os.environ.update(environment)
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = [str(ROOT), *paths]
    sys.argv = [str(ROOT / "manage.py"), *arguments]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    _serve()
