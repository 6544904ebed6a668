"""The data folder: one supervisor, secrets for the owner's eyes, ports kept free, logs that do not grow for
ever.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from portal.embedded import service
from portal.embedded.layout import DataFolder, FolderNotUsable
from portal.embedded.lock import FolderInUse, lock_folder
from portal.embedded.ports import PortTaken, listen, port_of, reserve_loopback_port
from portal.embedded.secret_files import SecretFiles


def test_a_second_supervisor_learns_who_holds_the_folder(tmp_path):
    code = (
        "import sys, pathlib\n"
        "from portal.embedded.lock import lock_folder\n"
        "lock_folder(pathlib.Path(sys.argv[1])); print('locked', flush=True); sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(FolderInUse) as refused:
            lock_folder(tmp_path)
        assert refused.value.holder == holder.pid
        holder.kill()
        holder.wait()
    # No file has to be removed after a kill: the kernel drops the lock.
    os.close(lock_folder(tmp_path))


def test_secrets_are_made_once_and_closed_to_others(tmp_path):
    secrets = SecretFiles(tmp_path / "secrets")
    assert secrets.read("key") == ""
    made = secrets.get_or_make("key", random_bytes=48)
    assert len(made) == 64
    assert SecretFiles(tmp_path / "secrets").get_or_make("key") == made
    secrets.write("key", "changed")
    assert secrets.read("key") == "changed"
    assert secrets.folder.stat().st_mode & 0o777 == 0o700
    assert [(path.name, path.stat().st_mode & 0o777) for path in secrets.folder.iterdir()] == [("key", 0o600)]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    folder = DataFolder(tmp_path / "file" / "data")
    with pytest.raises(FolderNotUsable, match="file/data"):
        folder.prepare()


def test_a_broken_state_file_is_like_none(tmp_path):
    folder = DataFolder(tmp_path / "data")
    folder.prepare()
    assert folder.read_state() == {}
    folder.write_state({"address": "http://127.0.0.1:8000"})
    assert folder.read_state() == {"address": "http://127.0.0.1:8000"}
    (folder.run / "stack.json").write_text('{"addr')
    assert folder.read_state() == {}


def test_a_taken_port_is_refused_and_a_free_one_is_listened_on():
    with listen("127.0.0.1", 0) as first:
        port = port_of(first)
        with pytest.raises(PortTaken) as refused:
            listen("127.0.0.1", port)
        assert refused.value.port == port
    with listen("127.0.0.1", port) as again, socket.create_connection(("127.0.0.1", port), 5):
        connection, _ = again.accept()
        connection.close()


def test_a_reserved_port_is_given_to_nobody_else_and_can_be_listened_on():
    with reserve_loopback_port() as reserved:
        port = port_of(reserved)
        others = [reserve_loopback_port() for _ in range(50)]
        assert port not in [port_of(other) for other in others]
        for other in others:
            other.close()
        with listen("127.0.0.1", port), reserve_loopback_port(port) as elsewhere:
            assert port_of(elsewhere) != port
    with reserve_loopback_port(port) as kept:
        assert port_of(kept) == port


def test_a_log_that_grew_too_large_is_put_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "LOG_BYTES_MAX", 10)
    for text in (
        b"the first",
        b" start.....",
        b"the second.....",
        b"the third......",
        b"the fourth....",
        b"5",
    ):
        with service.open_log(tmp_path, "web") as log:
            os.write(log, text)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "web.log": "5",
        "web.log.1": "the fourth....",
        "web.log.2": "the third......",
        "web.log.3": "the second.....",
    }
