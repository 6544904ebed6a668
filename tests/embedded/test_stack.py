"""The whole embedded stack, as a person starts, stops and kills it."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from portal.embedded import processes, programs
from tests.embedded.stack import ROOT, Stack, environment_for_stack, listens

pytestmark = pytest.mark.slow


@pytest.fixture
def start(closed_folder: Path) -> Iterator[Callable[..., Stack]]:
    """Start stacks below a folder that is closed to others and has a space in its path."""
    stacks: list[Stack] = []

    def start_stack(data: Path | None = None, *, ready: bool = True, **options: object) -> Stack:
        stack = Stack(data or closed_folder / "first", **options)  # type: ignore[arg-type]
        stacks.append(stack)
        if ready:
            stack.wait_until_ready()
        return stack

    yield start_stack
    for stack in stacks:
        stack.close()


def all_ended(identities: dict[int, processes.ProcessIdentity]) -> bool:
    return all(processes.identify(pid) != identity for pid, identity in identities.items())


def test_ctrl_c_stops_every_process(start, wait_until):
    stack = start()
    assert stack.get("/readyz")[0] == 200
    assert f"http://127.0.0.1:{stack.port}/" in stack.output
    assert stack.folder.secrets.read("operator_password") in stack.output
    assert "/outbox/" in stack.output
    state = stack.folder.read_state()
    ports = [stack.port, state["postgres_port"], state["valkey_port"]]
    assert all(listens(port) for port in ports)
    running = stack.processes()
    # PostgreSQL, Valkey, gunicorn and its worker, the clock, the node, its worker and that one's engine.
    assert len(running) >= 8
    assert stack.interrupt() == 0
    wait_until(lambda: all_ended(running), what="the end of every process")
    assert not any(listens(port) for port in ports)
    assert list((stack.folder.run / "processes").glob("*.json")) == []
    assert stack.output.count("\n") < 20, stack.output


def test_ctrl_c_in_the_middle_of_the_first_start_leaves_nothing_that_hinders_the_next(start, wait_until):
    stack = start(ready=False)
    records = stack.folder.run / "processes"
    wait_until(lambda: (records / "web.json").exists(), what="the start of the web server")
    running = stack.processes()
    assert stack.interrupt() == 0
    wait_until(lambda: all_ended(running), what="the end of every process")
    assert not listens(stack.port)
    again = start(port=stack.port)
    assert again.get("/readyz")[0] == 200


def test_it_starts_again_after_the_kill_of_everything_and_has_lost_nothing(start, wait_until):
    stack = start()
    password = stack.folder.secrets.read("operator_password")
    with psycopg.connect(stack.database_url()) as connection:
        connection.execute("CREATE TABLE kept (number integer)")
        connection.execute("INSERT INTO kept SELECT generate_series(1, 1000)")
        users = connection.execute("SELECT id FROM accounts_user ORDER BY id").fetchall()
    running = stack.processes()
    stack.kill_everything()
    wait_until(lambda: all_ended(running), what="the end of every process")
    assert (stack.folder.postgres / "postmaster.pid").exists()

    again = start(port=stack.port)
    assert again.get("/readyz")[0] == 200
    with psycopg.connect(again.database_url()) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1000,)
        assert connection.execute("SELECT id FROM accounts_user ORDER BY id").fetchall() == users
    assert again.folder.secrets.read("operator_password") == password
    assert again.interrupt() == 0


def test_the_children_of_a_killed_supervisor_end_and_free_its_port(start, wait_until):
    stack = start()
    running = stack.processes()
    stack.process.kill()
    stack.process.wait()
    wait_until(lambda: all_ended(running), what="the end of every process")
    assert not listens(stack.port)


def test_an_orphan_that_outlived_everything_is_ended_by_the_next_start(start, tmp_path, wait_until):
    stack = start()
    token = stack.token
    stack.kill_everything()
    # A process that missed the kernel's signal: still there, with the dead stack's token, on its port.
    listen = (
        "import socket, sys, time\n"
        "listener = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(600)\n"
    )
    wait_until(lambda: not listens(stack.port), what="the end of the web server")
    orphan = subprocess.Popen(
        [sys.executable, "-c", listen, str(stack.port)], env={**os.environ, processes.TOKEN_VARIABLE: token}
    )
    try:
        wait_until(lambda: listens(stack.port), what="the orphan's start")
        again = start(port=stack.port)
        assert orphan.wait(5) != 0
        assert again.get("/readyz")[0] == 200
        assert "Ended what an earlier stack had left running" in again.output
    finally:
        orphan.kill()
        orphan.wait()


def test_a_taken_port_is_refused_before_anything_is_started(start, closed_folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        stack = start(port=port, ready=False)
        assert stack.process.wait(30) == 3
    assert f"Port {port} of 127.0.0.1 cannot be used" in stack.output
    assert "Nothing was started" in stack.output
    assert f"make run PORT={port + 1}" in stack.output
    assert not stack.folder.postgres.exists()
    assert not stack.folder.logs.exists()


def test_two_folders_run_at_once_and_each_folder_only_once(start, closed_folder):
    first = start(closed_folder / "first", ready=False)
    second = start(closed_folder / "second", ready=False)
    first.wait_until_ready()
    second.wait_until_ready()
    refused = start(closed_folder / "first", ready=False)
    assert refused.process.wait(30) == 4
    assert (
        f"already runs on {first.folder.path} (process {first.process.pid}, http://127.0.0.1:{first.port})"
        in (refused.output)
    )
    assert first.get("/readyz")[0] == 200
    assert second.get("/readyz")[0] == 200
    for name in ("operator_password", "secret_key", "database_password"):
        assert first.folder.secrets.read(name) != second.folder.secrets.read(name)
    one, two = first.folder.read_state(), second.folder.read_state()
    assert one["postgres_port"] != two["postgres_port"]
    assert one["valkey_port"] != two["valkey_port"]
    assert first.interrupt() == 0
    assert second.get("/readyz")[0] == 200


@pytest.mark.parametrize("name", ["web", "node", "clock", "valkey", "postgres"])
def test_a_child_that_dies_is_started_again(shared_stack, wait_until, name):
    pid = shared_stack.pid_of(name)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: shared_stack.pid_of(name) != pid, what="the restart")
    assert f"{name} ended by itself (signal SIGKILL) and starts again" in shared_stack.output
    wait_until(lambda: shared_stack.get("/readyz")[0] == 200, timeout_s=60, what="readiness")


@pytest.fixture(scope="module")
def shared_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("shared") / "data")
    stack.wait_until_ready()
    yield stack
    stack.close()


def test_it_stops_when_the_process_that_started_it_is_gone(closed_folder, wait_until):
    starter = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.embedded.stack import Stack\n"
        "stack = Stack(Path(sys.argv[1])); stack.wait_until_ready()\n"
        "print(stack.process.pid, stack.port, flush=True); stack.process.wait()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", starter, str(closed_folder / "first")],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        pid, port = map(int, parent.stdout.readline().split())
        supervisor = processes.identify(pid)
        parent.kill()
    assert supervisor is not None
    wait_until(lambda: processes.identify(pid) != supervisor, timeout_s=60, what="the supervisor's end")
    assert not listens(port)


def test_given_databases_replace_the_embedded_ones(start, closed_folder):
    name = f"given_{secrets.token_hex(4)}"
    server = os.environ["DATABASE_URL"]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        given = server.rpartition("/")[0] + "/" + name
        environment = environment_for_stack(DATABASE_URL=given, REDIS_URL=os.environ["REDIS_URL"])
        stack = start(environment=environment)
        assert stack.get("/readyz")[0] == 200
        with psycopg.connect(given) as connection:
            assert connection.execute("SELECT count(*) FROM accounts_user").fetchone() == (2,)
        assert not stack.folder.postgres.exists()
        assert not stack.folder.valkey.exists()
        assert stack.folder.read_state()["postgres_port"] is None
        assert stack.interrupt() == 0
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_an_engine_that_does_not_load_keeps_no_page_from_being_served(start):
    stack = start(environment=environment_for_stack(VOICEPOOL_CPU_ENGINE="of-that-name-there-is-none"))
    assert "No device is ready yet, so jobs will wait. node was not ready within 30 s" in stack.output
    assert stack.get("/healthz")[0] == 200
    assert stack.get("/readyz")[0] == 503
    assert stack.interrupt() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run it as an ordinary user already")
def test_an_ordinary_user_can_run_it(wait_until):
    nobody = pwd.getpwnam("nobody")
    home = Path(tempfile.mkdtemp(prefix="voicepool ordinary ", dir="/var/tmp"))
    home.chmod(0o755)
    python = python_for_everybody(home / "venv")
    data = home / "data"
    data.mkdir(mode=0o700)
    os.chown(data, nobody.pw_uid, nobody.pw_gid)
    environment = environment_for_stack(HOME=str(data), USER="nobody", PYTHONDONTWRITEBYTECODE="1")
    stack = Stack(data / "first", python=str(python), environment=environment, user=nobody.pw_uid)
    try:
        stack.wait_until_ready()
        running = stack.processes()
        assert {Path(f"/proc/{pid}").stat().st_uid for pid in running} == {nobody.pw_uid}
        assert stack.get("/readyz")[0] == 200
        assert stack.interrupt() == 0
        wait_until(lambda: all_ended(running), what="the end of every process")
    finally:
        stack.close()
        shutil.rmtree(home)


def python_for_everybody(venv: Path) -> Path:
    """A virtual environment with this one's packages whose Python any user can run, or the test is skipped."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for base in (Path(sys.executable).resolve(), Path("/usr/bin") / name):
        if base.exists() and programs.open_to_others(base):
            subprocess.run([base, "-m", "venv", "--without-pip", venv], check=True)
            packages = sysconfig.get_paths()["purelib"]
            # By a .pth file they come after the standard library, as they do in their own environment.
            (venv / "lib" / name / "site-packages" / "packages.pth").write_text(packages + "\n")
            return venv / "bin" / "python"
    pytest.skip("no Python of this version is open to ordinary users")
