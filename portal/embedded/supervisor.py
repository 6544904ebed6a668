"""The supervisor: starts the stack in order, keeps it running, and stops all of it in reverse order.

What can go on without the database starts before it: the web server and the bootstrap command import Django
while PostgreSQL is made and started. The clock and the node start when the tables are there.
"""

from __future__ import annotations

import functools
import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from portal.embedded import children, console, postgres, processes, valkey
from portal.embedded.children import Bootstrap
from portal.embedded.console import fail, say
from portal.embedded.databases import Databases, choose_databases
from portal.embedded.layout import DataFolder
from portal.embedded.lock import lock_folder
from portal.embedded.ports import listen
from portal.embedded.processes import ProcessRecords
from portal.embedded.programs import PostgresUnavailable
from portal.embedded.service import Service, describe_status, last_lines, open_log
from portal.embedded.stop_signals import StopSignals
from portal.embedded.template import find_template

POSTGRES_TIMEOUT_S = 120.0  # the recovery of a large database after a crash takes a while
VALKEY_TIMEOUT_S = 60.0
BOOTSTRAP_TIMEOUT_S = 300.0
WEB_TIMEOUT_S = 60.0
DEVICE_TIMEOUT_S = 30.0  # an engine loads within a few; pages are not kept waiting for one that does not
POLL_S = 0.02
WEB_POLL_S = 0.05  # each look costs the web server a query and a log line
IDLE_S = 60.0
# A child that ends this often before the stack is ready will not come up by itself.
FAILURES_BEFORE_READY_MAX = 4
NODE_GRACE_S = 15.0
CLOCK_GRACE_S = 5.0
ONE_SHOT_GRACE_S = 3.0
DATABASES = ("postgres", "valkey")  # stopped after everything that uses them


class NotStarted(Exception):
    """A part of the stack did not come up; the message says which and shows the end of its log."""


class StopAsked(Exception):
    """The wish to stop came while the stack was still starting."""


@dataclass(frozen=True)
class Options:
    """What the caller of `python -m portal.embedded` chose."""

    folder: DataFolder
    host: str
    port: int
    demonstration: bool
    until_ready: bool

    @property
    def connect_host(self) -> str:
        """The name under which this machine itself reaches the address that is listened on."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - compared only

    @property
    def address(self) -> str:
        """The address for a browser on this machine, without a slash at its end."""
        host = f"[{self.connect_host}]" if ":" in self.connect_host else self.connect_host
        return f"http://{host}:{self.port}"


class Supervisor:
    """One run of the stack on one data folder."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.folder = options.folder
        self.began_at = time.monotonic()
        self.token = secrets.token_hex(16)
        self.services: list[Service] = []  # in the order in which they were started
        self.one_shots: dict[str, subprocess.Popen[bytes]] = {}  # children that end by themselves

    def run(self) -> int:
        """Run until asked to stop and return the exit status: 0, or 1 when something did not start.

        Raises:
            FolderInUse, FolderNotUsable, PortTaken: before anything was started.
        """
        self.folder.prepare()
        self.lock = lock_folder(self.folder.run)  # ours until this process ends
        self.records = ProcessRecords(self.folder.run / "processes")
        leftovers = self.records.end_leftovers()
        if leftovers:
            say(f"Ended what an earlier stack had left running: {', '.join(sorted(leftovers))}.")
        listener = listen(self.options.host, self.options.port)
        self.stop_signals = StopSignals()
        try:
            self._start(listener)
            self._serve()
            return 0
        except StopAsked:
            return 0
        except (NotStarted, PostgresUnavailable, valkey.ValkeyUnavailable) as error:
            fail(f"VoicePool did not start: {error}")
            return 1
        finally:
            # Refuse new callers at once instead of letting them wait for a server that ends.
            listener.close()
            self._stop()

    # --- start

    def _start(self, listener: socket.socket) -> None:
        token = {processes.TOKEN_VARIABLE: self.token}
        databases = choose_databases(self.folder, environment=token)
        self.reservations = databases.reservations  # held as long as we run
        self.environment = {**os.environ, **token, **self._settings(databases)}
        if databases.valkey is not None:
            self._add("valkey", databases.valkey.start, valkey.STOP_SIGNAL, valkey.STOP_GRACE_S).start()
        tables = self._bootstrap("tables", name="node", then="gpu_node", environment=self.environment)
        start_web = functools.partial(children.start_web, environment=self.environment, listener=listener)
        self._add("web", start_web).start()
        created = self._start_postgres(databases.postgres)
        self._wait_for_databases(databases)
        self._finish_bootstrap(tables, name="node", grace_s=NODE_GRACE_S, then="gpu_node")
        ready_after_s = self._wait_until_it_can_serve()
        self._make_accounts()
        self.folder.write_state(self._state(databases))
        console.say_ready(
            address=self.options.address, folder=self.folder, seconds=ready_after_s, first_start=created
        )
        if created and databases.postgres is not None:
            # It was made without waiting for the disk; after this a loss of power loses nothing either.
            with open_log(self.folder.logs, "postgres") as log:
                self._note_one_shot("sync", databases.postgres.start_sync(output=log))

    def _make_accounts(self) -> None:
        """Make operator and demonstration customer where they are missing, in the process of the clock.

        Only now: what the clock does can wait until there is somebody to serve, and the rest was faster without.
        """
        environment = {**self.environment, **children.account_variables(self.folder)}
        accounts = self._bootstrap("accounts", name="clock", then="clock", environment=environment)
        answer = self._finish_bootstrap(accounts, name="clock", grace_s=CLOCK_GRACE_S, then="clock")
        api_key = answer.get("demonstration_api_key")
        if isinstance(api_key, str) and api_key:
            self.folder.secrets.write("demonstration_api_key", api_key)

    def _bootstrap(self, part: str, *, name: str, then: str, environment: Mapping[str, str]) -> Bootstrap:
        with open_log(self.folder.logs, name) as log:
            bootstrap = Bootstrap(part, then, log, environment=environment)
        self._note_one_shot(name, bootstrap.process)
        return bootstrap

    def _settings(self, databases: Databases) -> dict[str, str]:
        """The environment from which Django's settings are read, in every child alike."""
        return {
            "DJANGO_SETTINGS_MODULE": "portal.settings.embedded",
            "DATABASE_URL": databases.database_url,
            "REDIS_URL": databases.redis_url,
            "SECRET_KEY": self.folder.secrets.get_or_make("secret_key", random_bytes=48),
            "VOICEPOOL_DATA": str(self.folder.path),
            "VOICEPOOL_BASE_URL": os.environ.get("VOICEPOOL_BASE_URL") or self.options.address,
            "PORT": str(self.options.port),
            "PYTHONUNBUFFERED": "1",
        }

    def _state(self, databases: Databases) -> dict[str, object]:
        return {
            "address": self.options.address,
            "supervisor": os.getpid(),
            "postgres_port": databases.postgres.port if databases.postgres else None,
            "valkey_port": databases.valkey.port if databases.valkey else None,
        }

    def _add(
        self,
        name: str,
        launch: Callable[[int], subprocess.Popen[bytes]],
        stop_signal: signal.Signals = signal.SIGTERM,
        grace_s: float = 10.0,
    ) -> Service:
        service = Service(
            name=name,
            launch=launch,
            logs=self.folder.logs,
            records=self.records,
            token=self.token,
            stop_signal=stop_signal,
            grace_s=grace_s,
        )
        self.services.append(service)
        return service

    def _command(self, name: str) -> Callable[[int], subprocess.Popen[bytes]]:
        return functools.partial(children.start_command, name, environment=self.environment)

    def _note_one_shot(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.one_shots[name] = process
        self.records.write(name, process.pid, token=self.token)

    def _start_postgres(self, server: postgres.Postgres | None) -> bool:
        """Start the embedded PostgreSQL where there is one; return whether its cluster was made just now."""
        if server is None:
            return False
        if not self.folder.postgres.exists():
            say(f"Making a new database in {self.folder.path} …")
        created = server.create(template=find_template())
        self._add("postgres", server.start, postgres.STOP_SIGNAL, postgres.STOP_GRACE_S).start()
        return created

    def _wait_for_databases(self, databases: Databases) -> None:
        database, store = databases.postgres, databases.valkey
        if store is not None:
            self._wait_for("valkey", store.is_ready, timeout_s=VALKEY_TIMEOUT_S)
        if database is not None:
            service = self._service("postgres")
            self._wait_for(
                "postgres",
                lambda: service.process is not None and database.is_ready(service.process),
                timeout_s=POSTGRES_TIMEOUT_S,
            )

    def _finish_bootstrap(
        self, bootstrap: Bootstrap, *, name: str, grace_s: float, then: str
    ) -> dict[str, object]:
        """Let a bootstrap begin; return its answer, and look after its process as the service that it becomes."""
        bootstrap.open_gate()
        self._wait_for(
            name,
            lambda: bootstrap.has_answered() or name not in self.one_shots,
            timeout_s=BOOTSTRAP_TIMEOUT_S,
        )
        if not bootstrap.has_answered():
            status = describe_status(bootstrap.process.returncode or 0)
            raise self._not_started(name, f"could not prepare the database ({status})")
        del self.one_shots[name]
        self._add(name, self._command(then), grace_s=grace_s).adopt(bootstrap.process)
        return bootstrap.answer()

    def _wait_until_it_can_serve(self) -> float:
        """Wait for the web server and the first device; return the seconds since our start.

        A device that does not come does not keep the pages from being served: they show why.
        """
        self._wait_for(
            "web", lambda: self._lacking() <= {"device"}, timeout_s=WEB_TIMEOUT_S, poll_s=WEB_POLL_S
        )
        try:
            self._wait_for("node", lambda: not self._lacking(), timeout_s=DEVICE_TIMEOUT_S, poll_s=WEB_POLL_S)
        except NotStarted as error:
            fail(f"No device is ready yet, so jobs will wait. {error}")
        return time.monotonic() - self.began_at

    def _lacking(self) -> set[str]:
        """What the web server says it is not ready for, or "web" when it does not answer."""
        connection = http.client.HTTPConnection(self.options.connect_host, self.options.port, timeout=2.0)
        try:
            connection.request("GET", "/readyz")
            checks = json.loads(connection.getresponse().read())["checks"]
            return {name for name, passed in checks.items() if not passed}
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            return {"web"}
        finally:
            connection.close()

    def _service(self, name: str) -> Service:
        return next(service for service in self.services if service.name == name)

    def _wait_for(
        self, name: str, condition: Callable[[], bool], *, timeout_s: float, poll_s: float = POLL_S
    ) -> None:
        """Wait until the condition holds, and look after the children meanwhile.

        Raises:
            NotStarted: the time is up, or the child ended too often.
            StopAsked: somebody wants us to stop.
        """
        deadline = time.monotonic() + timeout_s
        while not condition():
            if self.stop_signals.asked:
                raise StopAsked
            self._look_after_children()
            for service in self.services:
                awaited = service.name in {name, "web", *DATABASES}
                if awaited and service.failures >= FAILURES_BEFORE_READY_MAX:
                    raise self._not_started(service.name, "ended again and again")
            if time.monotonic() > deadline:
                raise self._not_started(name, f"was not ready within {timeout_s:g} s")
            self.stop_signals.sleep(poll_s)

    def _not_started(self, name: str, what: str) -> NotStarted:
        log = self.folder.logs / f"{name}.log"
        return NotStarted(f"{name} {what}. The end of {log}:\n{last_lines(log)}")

    # --- serve

    def _serve(self) -> None:
        if self.options.until_ready:
            return
        if self.options.demonstration and not self.folder.demonstration_marker.exists():
            self._note_one_shot(
                "demonstration", children.start_demonstration(self.folder, environment=self.environment)
            )
        while not self.stop_signals.asked:
            self._look_after_children()
            delays = [service.seconds_until_restart() for service in self.services]
            self.stop_signals.sleep(min((delay for delay in delays if delay is not None), default=IDLE_S))

    def _look_after_children(self) -> None:
        for service in self.services:
            news = service.look_after()
            if news:
                say(news)
        for name, process in list(self.one_shots.items()):
            if processes.has_ended(process):
                processes.wait_and_end(process, grace_s=0)
                del self.one_shots[name]
                self.records.forget(name)

    # --- stop

    def _stop(self) -> None:
        """End every child in reverse order: what uses the databases first, together, then the databases."""
        say("Stopping …")
        for name, process in self.one_shots.items():
            processes.stop(process, first=signal.SIGTERM, grace_s=ONE_SHOT_GRACE_S)
            self.records.forget(name)
        users = [service for service in reversed(self.services) if service.name not in DATABASES]
        for service in users:
            service.ask_to_stop()
        for service in users:
            service.stop(in_a_hurry=self._in_a_hurry)
        for service in reversed(self.services):
            service.ask_to_stop()
            service.stop(in_a_hurry=self._in_a_hurry)

    def _in_a_hurry(self) -> bool:
        """Whether Ctrl-C was pressed once more: then nothing is waited for any longer."""
        return self.stop_signals.count > 1
