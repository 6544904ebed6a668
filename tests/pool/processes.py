"""Real processes of the pool against the test's database: agents, their workers and engines, clocks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeVar
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from portal.lib.child_process import die_with_parent
from tests.pool.fake_gpus import FakeGpus
from tests.pool.forked import FORKS, ROOT, ForkedCommand
from tests.web_server import WebServer

T = TypeVar("T")
Command = subprocess.Popen[bytes] | ForkedCommand


def wait_for(condition: Callable[[], T], *, timeout_s: float = 30.0, what: str = "") -> T:
    """The condition's first true value. Fails the test when there is none in time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {timeout_s} s in vain{': ' + what if what else ''}")


def database_url() -> str:
    """The URL of the database that this test uses, for child processes."""
    row = connection.settings_dict
    return (
        f"postgres://{quote(row['USER'], safe='')}:{quote(row['PASSWORD'], safe='')}"
        f"@{quote(row['HOST'], safe='')}:{row['PORT']}/{row['NAME']}"
    )


def _where_this_test_is() -> dict[str, str]:
    """The database, the Redis and the files of the test, for a child process."""
    return {
        "DJANGO_SETTINGS_MODULE": "portal.settings.test",
        "DATABASE_URL": database_url(),
        "REDIS_URL": settings.REDIS_URL,
        "VOICEPOOL_DATA": str(settings.DATA_DIR),
    }


def environment_here() -> dict[str, str]:
    """The environment of a process that is to work where this test is."""
    return {**os.environ, "SECRET_KEY": "only-for-tests", **_where_this_test_is()}


@contextlib.contextmanager
def web_server(**environment: str) -> Iterator[WebServer]:
    """A real web server that has answered, where this test is. Stopped at the end."""
    web = WebServer({**_where_this_test_is(), **environment})
    try:
        web.wait_until_ready()
        yield web
    finally:
        web.stop()


def _run(command: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "manage.py", command],
        cwd=ROOT,
        env=environment,
        start_new_session=True,
        # A test session that is killed leaves nobody behind: the agent ends its workers.
        preexec_fn=die_with_parent(signal.SIGTERM),
    )


class Pool:
    """The processes that a test started. `stop` ends them all, by process id."""

    def __init__(self, *, forked: bool = False) -> None:
        """`forked`: agents and clocks begin where packages are imported already (tests.pool.forked)."""
        self._forked = forked
        self._processes: list[Command] = []

    def _start(self, command: str, **environment: str) -> Command:
        environment = {**environment_here(), **environment}
        process = (
            FORKS.start(command, environment=environment) if self._forked else _run(command, environment)
        )
        self._processes.append(process)
        return process

    def start_node(
        self,
        *,
        name: str = "node-a",
        engine_settings: dict[str, object] | None = None,
        slots: int = 1,
        environment: dict[str, str] | None = None,
    ) -> Command:
        """An agent with the simulated engine."""
        return self._start(
            "gpu_node",
            VOICEPOOL_NODE=name,
            VOICEPOOL_SLOTS=str(slots),
            VOICEPOOL_CPU_ENGINE="simulated",
            VOICEPOOL_CPU_ENGINE_SETTINGS=json.dumps(engine_settings or {}),
            **(environment or {}),
        )

    def start_gpu_node(
        self,
        gpus: FakeGpus,
        *,
        name: str = "node-a",
        engine_settings: dict[str, object] | None = None,
        **environment: str,
    ) -> Command:
        """An agent on a host with these GPUs, with the simulated engine on each."""
        return self._start(
            "gpu_node",
            VOICEPOOL_NODE=name,
            VOICEPOOL_GPU_ENGINE="simulated",
            VOICEPOOL_CPU_ENGINE="simulated",
            VOICEPOOL_CPU_ENGINE_SETTINGS=json.dumps(engine_settings or {}),
            **gpus.environment,
            **environment,
        )

    def start_clock(self, **environment: str) -> Command:
        return self._start("clock", **environment)

    def stop(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
