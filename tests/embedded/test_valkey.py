"""The embedded Valkey keeps what it was given and answers only to its password."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from portal.embedded import processes, valkey
from portal.embedded.ports import port_of, reserve_loopback_port
from portal.embedded.valkey import Valkey


@pytest.fixture
def server(closed_folder: Path) -> Iterator[Valkey]:
    with reserve_loopback_port() as reservation:
        yield Valkey(
            folder=closed_folder / "valkey", port=port_of(reservation), password="a-password", environment={}
        )


@pytest.fixture
def start(tmp_path: Path) -> Iterator:
    running: list[subprocess.Popen[bytes]] = []
    with (tmp_path / "valkey.log").open("ab") as log:

        def start_server(server: Valkey) -> subprocess.Popen[bytes]:
            process = server.start(log.fileno())
            running.append(process)
            assert valkey.wait_until_ready(server, process, timeout_s=30)
            return process

        yield start_server
        for process in running:
            processes.stop(process, first=valkey.STOP_SIGNAL, grace_s=5)


def test_it_wants_its_password_and_never_drops_a_key_to_make_room(server, start):
    process = start(server)
    with redis.from_url(server.redis_url) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
    other = replace(server, password="another")
    with redis.from_url(other.redis_url) as client, pytest.raises(redis.AuthenticationError):
        client.ping()
    assert not other.is_ready()
    assert b"a-password" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()


def test_keys_survive_a_kill(server, start):
    process = start(server)
    with redis.from_url(server.redis_url) as client:
        client.set("kept", "yes")
        # Written to the file by now; the sync to the disk once a second matters only when the power fails.
        assert client.config_get("appendfsync") == {"appendfsync": "everysec"}
    process.send_signal(signal.SIGKILL)
    process.wait()
    start(server)
    with redis.from_url(server.redis_url, decode_responses=True) as client:
        assert client.get("kept") == "yes"


def test_an_orderly_stop_leaves_no_process(server, start):
    process = start(server)
    assert processes.stop(process, first=valkey.STOP_SIGNAL, grace_s=10) == 0
    assert not server.is_ready()
