"""The processes of a run: agents with their workers and engines, clocks, the web server, the proxy.

Agents, clocks and the web server are started again when they have ended, as systemd does it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from portal.embedded import children, processes
from portal.embedded.ports import port_of, reserve_loopback_port
from tests.chaos.databases import Databases
from tests.pool.fake_gpus import FakeGpus

ROOT = Path(__file__).resolve().parent.parent.parent
# Less, and the test sentence would be too short.
AUDIO_MS_PER_CHARACTER = 100
ENGINE_SETTINGS = {
    "real_time": True,
    "ms_per_character": 6,
    "audio_ms_per_character": AUDIO_MS_PER_CHARACTER,
    "chunk_ms": 400,
}
RESTART_AFTER_S = 0.5
STOP_GRACE_S = 30.0
Start = Callable[[], "subprocess.Popen[bytes]"]


@dataclass
class _Service:
    name: str
    start: Start
    process: subprocess.Popen[bytes] | None = None
    start_at: float = 0.0


@dataclass
class Family:
    """Who may be killed, by what they are."""

    agents: list[psutil.Process] = field(default_factory=list)
    workers: list[psutil.Process] = field(default_factory=list)
    engines: list[psutil.Process] = field(default_factory=list)
    clocks: list[psutil.Process] = field(default_factory=list)
    web: list[psutil.Process] = field(default_factory=list)


class Stack:
    """All processes beside the databases. Use it from the main thread: they end with it."""

    def __init__(self, databases: Databases, environment: dict[str, str]) -> None:
        self._environment = environment
        self._log = (databases.folder / "pool.log").open("ab")
        self._seen: set[psutil.Process] = set()
        self._listener = reserve_loopback_port()
        self._listener.listen(128)
        self.web_port = port_of(self._listener)
        self._through = [reserve_loopback_port(), reserve_loopback_port()]
        self._proxied = {
            "DATABASE_URL": _at_port(databases.database_url, databases.database_port, self._through[0]),
            "REDIS_URL": _at_port(databases.redis_url, databases.redis_port, self._through[1]),
        }
        self._targets = [databases.database_port, databases.redis_port]
        gpus = FakeGpus(databases.folder / "nvml.json", uuids=["GPU-chaos-0", "GPU-chaos-1"])
        self._services = [
            _Service("proxy", self._start_proxy),
            _Service("clock a", lambda: self._command("clock")),
            _Service("clock b", lambda: self._command("clock", **self._proxied)),
            _Service(
                "agent a", lambda: self._node("a", VOICEPOOL_GPU_ENGINE="simulated", **gpus.environment)
            ),
            _Service("agent b", lambda: self._node("b", VOICEPOOL_SLOTS="2")),
            _Service("agent c", lambda: self._node("c", **self._proxied)),
            _Service("web", self._start_web),
        ]

    slots = 5
    """How many of them there are when all is well."""

    def keep_up(self) -> None:
        """Start what has ended, after a short while. Remembers everybody who is there."""
        now = time.monotonic()
        for service in self._services:
            if service.process is not None and service.process.poll() is not None:
                service.process, service.start_at = None, now + RESTART_AFTER_S
            if service.process is None and now >= service.start_at:
                service.process = service.start()
        for process in self._alive():
            self._seen.add(process)
            self._seen.update(_children(process, recursive=True))

    def family(self) -> Family:
        """Who is there now."""
        found = Family()
        for service in self._services:
            if service.process is None or service.process.poll() is not None:
                continue
            process = psutil.Process(service.process.pid)
            if service.name.startswith("clock"):
                found.clocks.append(process)
            elif service.name == "web":
                found.web += [process, *_children(process)]
            elif service.name.startswith("agent"):
                found.agents.append(process)
                workers = _children(process)
                found.workers += workers
                found.engines += [engine for worker in workers for engine in _children(worker)]
        return found

    def drop_connections(self) -> None:
        """Reset everything that goes through the proxy: one node, one clock and the web server."""
        for service in self._services:
            if service.name == "proxy" and service.process is not None and service.process.poll() is None:
                service.process.send_signal(signal.SIGUSR1)

    def stop(self) -> list[str]:
        """End all in order; returns the command lines of those that are left over, and kills them."""
        for service in reversed(self._services):
            if service.process is not None and service.name != "proxy":
                if service.process.poll() is None:
                    service.process.send_signal(signal.SIGTERM)
                processes.wait_and_end(service.process, grace_s=STOP_GRACE_S)
        for service in self._services:
            if service.name == "proxy" and service.process is not None:
                processes.stop(service.process, first=signal.SIGTERM, grace_s=5.0)
        for listener in (self._listener, *self._through):
            listener.close()
        # An engine notices the end of its worker by its pipe.
        _, alive = psutil.wait_procs(self._seen, timeout=5.0)
        left = []
        for process in alive:
            try:
                if process.status() != psutil.STATUS_ZOMBIE:
                    left.append(" ".join(process.cmdline()))
                    process.kill()
            except psutil.NoSuchProcess:
                continue
        self._log.close()
        return left

    def _alive(self) -> Iterator[psutil.Process]:
        for service in self._services:
            if service.process is not None and service.process.poll() is None:
                try:
                    yield psutil.Process(service.process.pid)
                except psutil.NoSuchProcess:
                    continue

    def _command(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        return processes.start(
            [sys.executable, "manage.py", *arguments],
            environment={**os.environ, **self._environment, **environment},
            output=self._log.fileno(),
            directory=ROOT,
        )

    def _node(self, name: str, **environment: str) -> subprocess.Popen[bytes]:
        return self._command(
            "gpu_node",
            VOICEPOOL_NODE=f"node-{name}",
            VOICEPOOL_CPU_ENGINE="simulated",
            VOICEPOOL_CPU_ENGINE_SETTINGS=json.dumps(ENGINE_SETTINGS),
            **environment,
        )

    def _start_web(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **self._environment, **self._proxied}
        return children.start_web(self._log.fileno(), environment=environment, listener=self._listener)

    def _start_proxy(self) -> subprocess.Popen[bytes]:
        pairs = zip(self._through, self._targets, strict=True)
        arguments = [str(number) for listener, port in pairs for number in (listener.fileno(), port)]
        for listener in self._through:
            listener.listen(128)
        return processes.start(
            [sys.executable, "-m", "tests.chaos.proxy", *arguments],
            environment={**os.environ, **self._environment},
            output=self._log.fileno(),
            directory=ROOT,
            keep_open=[listener.fileno() for listener in self._through],
        )


def _at_port(url: str, port: int, through: socket.socket) -> str:
    return url.replace(f"127.0.0.1:{port}", f"127.0.0.1:{port_of(through)}")


def _children(process: psutil.Process, *, recursive: bool = False) -> list[psutil.Process]:
    try:
        found: list[psutil.Process] = process.children(recursive=recursive)
    except psutil.NoSuchProcess:
        return []
    return found
