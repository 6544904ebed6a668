"""Children end with their parent, and only leftovers of the same stack are ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from portal.embedded import processes
from portal.embedded.processes import TOKEN_VARIABLE, ProcessIdentity, ProcessRecords

SLEEPER = [sys.executable, "-c", "import sys, time; print('up', flush=True); time.sleep(300)"]


def start_sleeper(token: str = "", command: list[str] | None = None) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **({TOKEN_VARIABLE: token} if token else {})}
    process = subprocess.Popen(command or SLEEPER, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.stdout.close()
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def test_an_ended_process_has_no_identity():
    process = start_sleeper()
    identity = processes.identify(process.pid)
    assert identity is not None
    assert identity.pid == process.pid
    assert "time.sleep(300)" in identity.command
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    assert processes.identify(process.pid) is None
    process.wait()
    assert processes.identify(process.pid) is None


def test_a_child_gets_its_signal_when_its_parent_is_killed(tmp_path, wait_until):
    told = tmp_path / "child"
    child = (
        "import os, pathlib, signal, sys, time\n"
        "def note(*_): pathlib.Path(sys.argv[1]).write_text('asked to stop'); os._exit(0)\n"
        "signal.signal(signal.SIGTERM, note)\n"
        "pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))\n"
        "time.sleep(300)\n"
    )
    parent = (
        "import os, sys, time\n"
        "from portal.embedded import processes\n"
        "command = [sys.executable, '-c', sys.argv[1], sys.argv[2]]\n"
        "processes.start(command, environment=os.environ, output=2)\n"
        "time.sleep(300)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", parent, child, str(told)])
    wait_until(lambda: told.exists() and told.read_text() != "", what="the child's start")
    process.kill()
    process.wait()
    wait_until(lambda: told.read_text() == "asked to stop", what="the child's end")


def test_stopping_ends_the_whole_session_of_a_child_that_will_not_stop(wait_until, tmp_path):
    told = tmp_path / "grandchild"
    stubborn = (
        "import pathlib, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid))\n"
        "time.sleep(300)\n"
    )
    process = processes.start(
        [sys.executable, "-c", stubborn, str(told)], environment=os.environ, output=subprocess.DEVNULL
    )
    wait_until(lambda: told.exists() and told.read_text() != "", what="the grandchild's start")
    grandchild = int(told.read_text())
    assert processes.stop(process, first=signal.SIGTERM, grace_s=0.2) == -signal.SIGKILL
    wait_until(lambda: processes.identify(grandchild) is None, what="the grandchild's end")


def test_a_leftover_is_ended_only_where_everything_recorded_agrees(tmp_path):
    records = ProcessRecords(tmp_path / "processes")
    ours, other_start, other_command = start_sleeper(), start_sleeper(), start_sleeper()
    try:
        records.write("ours", ours.pid, token="a")
        for name, process, change in (
            ("other-start", other_start, {"started": "another boot/1"}),
            ("other-command", other_command, {"command": "something else"}),
        ):
            records.write(name, process.pid, token="a")
            path = tmp_path / "processes" / f"{name}.json"
            path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
        assert records.end_leftovers(grace_s=30.0) == ["ours"]
        assert ours.wait(5) == -signal.SIGINT or ours.returncode == 1
        assert other_start.poll() is None
        assert other_command.poll() is None
        assert list((tmp_path / "processes").glob("*.json")) == []
    finally:
        for process in (ours, other_start, other_command):
            end(process)


def test_descendants_of_a_dead_stack_are_found_by_its_token(tmp_path):
    records = ProcessRecords(tmp_path / "processes")
    dead, descendant, stranger = start_sleeper("token-a"), start_sleeper("token-a"), start_sleeper("token-b")
    try:
        records.write("dead", dead.pid, token="token-a")
        end(dead)
        assert records.end_leftovers(grace_s=5.0) == [sys.executable]
        descendant.wait(5)
        assert stranger.poll() is None
    finally:
        for process in (descendant, stranger):
            end(process)


def test_a_leftover_that_ignores_the_first_signal_is_killed(tmp_path):
    deaf = (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('up', flush=True); time.sleep(300)\n"
    )
    process = start_sleeper(command=[sys.executable, "-c", deaf])
    records = ProcessRecords(tmp_path / "processes")
    records.write("deaf", process.pid, token="a")
    # It is this test's own child, so it stays a zombie after its end: that counts as ended.
    assert records.end_leftovers(grace_s=0.3) == ["deaf"]
    assert process.wait(5) == -signal.SIGKILL


def test_a_record_cut_short_by_a_kill_names_nobody(tmp_path):
    records = ProcessRecords(tmp_path / "processes")
    (tmp_path / "processes" / "half.json").write_text('{"pid": 1, "start')
    (tmp_path / "processes" / "list.json").write_text("[]")
    assert records.end_leftovers() == []


def test_identities_differ_between_two_processes_with_the_same_command():
    first, second = start_sleeper(), start_sleeper()
    try:
        one, two = processes.identify(first.pid), processes.identify(second.pid)
        assert one is not None
        assert two is not None
        assert one != two
        assert processes.identify(first.pid) == one
        assert one != ProcessIdentity(one.pid, "earlier", one.command)
    finally:
        end(first)
        end(second)


def test_the_records_folder_is_closed_to_others(tmp_path: Path):
    records = ProcessRecords(tmp_path / "processes")
    assert records.folder.stat().st_mode & 0o777 == 0o700
