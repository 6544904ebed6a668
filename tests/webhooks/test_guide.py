"""The receivers on the page are whole programs: they run as they stand, take what is ours, and refuse the rest."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from accounts.webhooks.guide import SECRET_VARIABLE, receivers
from accounts.webhooks.secrets import secret_of, signed_headers

CODE = {one.key: one.code for one in receivers()}


def post(port: int, body: str, headers: dict[str, str]) -> int:
    request = Request(f"http://127.0.0.1:{port}/hook", data=body.encode(), headers=headers)
    try:
        with urlopen(request, timeout=60) as response:
            status: int = response.status
            return status
    except HTTPError as error:
        return error.code


@pytest.mark.parametrize(("key", "name"), [("python", "receive.py"), ("node", "receive.mjs")])
def test_a_receiver_runs_and_tells_ours_from_others(tmp_path: Path, key: str, name: str) -> None:
    program = sys.executable if key == "python" else shutil.which("node")
    if program is None:
        pytest.skip("Node is not installed here")
    (tmp_path / name).write_text(CODE[key], encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    secret = secret_of(key="key", endpoint_id=uuid.uuid4(), secret_id=uuid.uuid4())
    other = secret_of(key="key", endpoint_id=uuid.uuid4(), secret_id=uuid.uuid4())
    receiver = subprocess.Popen(
        [program, str(tmp_path / name)],
        env={**os.environ, SECRET_VARIABLE: secret, "PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    body = json.dumps({"type": "ping", "data": {"name": "你好"}}, ensure_ascii=False)
    try:
        delivery_id = uuid.uuid4()
        signed = [
            signed_headers(delivery_id=delivery_id, at=datetime.now(UTC), body=body, secrets=secrets)
            for secrets in ([secret], [other, secret], [other])
        ]
        _wait_until_it_listens(port, receiver)
        assert [post(port, body, headers) for headers in signed] == [204, 204, 400]
        assert post(port, body + " ", signed[0]) == 400
        late = signed_headers(
            delivery_id=delivery_id, at=datetime(2020, 1, 1, tzinfo=UTC), body=body, secrets=[secret]
        )
        assert post(port, body, late) == 400
    finally:
        receiver.kill()
        output, _errors = receiver.communicate(timeout=60)
    lines = [line for line in output.splitlines() if "ping" in line]
    assert len(lines) == 2
    assert f"msg_{delivery_id.hex}" in lines[0]


def _wait_until_it_listens(port: int, receiver: subprocess.Popen[str]) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=60).close()
        except ConnectionRefusedError:
            assert receiver.poll() is None
        else:
            return
