"""The commands around the stack: make's targets, the installation, deleting a data folder, the benchmarks."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import tests.bench
from portal.embedded import install
from portal.embedded.layout import ROOT, DataFolder
from portal.embedded.lock import lock_folder
from portal.embedded.secret_files import SecretFiles
from tests.bench.__main__ import main as bench_main
from tests.embedded.stack import environment_for_stack


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = environment_for_stack(**variables)
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def clean(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "portal.embedded.clean", "--data", str(folder), *arguments)


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    folder = DataFolder(tmp_path / "a data folder")
    folder.prepare()
    os.close(lock_folder(folder.run))
    SecretFiles(folder.path / "secrets").write("key", "value")
    return folder.path


def test_make_alone_says_what_there_is():
    shown = run("make")
    assert shown.returncode == 0
    named = re.findall(r"^  make ([a-z-]+) +\S", shown.stdout, re.MULTILINE)
    assert {"run", "test", "check", "bench", "demo", "clean-data", "help"} <= set(named)


def test_make_run_on_a_taken_port_fails_with_a_sentence(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run("make", "run", f"DATA={tmp_path / 'data'}", f"PORT={port}")
    assert refused.returncode == 2  # make's own status for a command that failed
    assert f"Port {port} of 127.0.0.1 cannot be used" in refused.stderr
    assert "Error 3" in refused.stderr


def test_a_port_that_is_none_is_refused(tmp_path):
    for port in ("0", "65536", "eight"):
        refused = run(
            sys.executable, "-m", "portal.embedded", "--data", str(tmp_path / "data"), "--port", port
        )
        assert refused.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_an_old_python_is_named_with_the_way_out(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer, and .* is 3\.10") as told:
        install.check_version()
    assert "make PYTHON=" in str(told.value)


def test_the_demonstration_needs_a_running_stack(tmp_path):
    told = run(sys.executable, "-m", "portal.embedded.demonstration", "--data", str(tmp_path / "none"))
    assert told.returncode == 1
    assert "Start one with: make run" in told.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_data_folder_is_deleted_only_after_a_yes(data_folder):
    asked = clean(data_folder)
    assert asked.returncode == 1
    assert "YES=1" in asked.stderr
    assert (data_folder / "secrets" / "key").read_text() == "value\n"
    deleted = clean(data_folder, "--yes")
    assert deleted.returncode == 0
    assert not data_folder.exists()
    assert clean(data_folder, "--yes").returncode == 0


def test_a_folder_that_is_in_use_is_not_deleted(data_folder):
    held = lock_folder(data_folder / "run")
    refused = clean(data_folder, "--yes")
    os.close(held)
    assert refused.returncode == 1
    assert f"process {os.getpid()}" in refused.stderr
    assert (data_folder / "secrets" / "key").exists()


def test_a_folder_of_something_else_is_not_deleted(tmp_path):
    (tmp_path / "letters.txt").write_text("mine")
    refused = clean(tmp_path, "--yes")
    assert refused.returncode == 1
    assert "not a data folder" in refused.stderr
    assert (tmp_path / "letters.txt").read_text() == "mine"


def test_an_unknown_benchmark_is_answered_with_the_known_ones():
    told = run(sys.executable, "-m", "tests.bench", "nothing")
    assert told.returncode == 2
    assert re.search(r"There are: .*\bstart\b", told.stderr)
    assert told.stdout == ""


def test_the_last_line_of_a_benchmark_is_its_figures(tmp_path, monkeypatch, capsys):
    (tmp_path / "tiny.py").write_text("def run():\n    print('working')\n    return {'answer': 42}\n")
    monkeypatch.setattr(tests.bench, "__path__", [str(tmp_path)])
    assert bench_main(["tiny"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {
        "bench": "tiny",
        "figures": {"answer": 42.0},
    }
