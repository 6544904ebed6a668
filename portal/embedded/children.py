"""The commands that the supervisor runs: the web server, management commands, the bootstrap, the
demonstration.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from portal.embedded import processes
from portal.embedded.console import DEMONSTRATION_EMAIL, OPERATOR_EMAIL
from portal.embedded.layout import ROOT, DataFolder

WEB_THREADS = 32
# How long the web server may finish requests: streams that stay open would take forever.
WEB_GRACE_S = 3


def start_web(
    output: int, *, environment: Mapping[str, str], listener: socket.socket
) -> subprocess.Popen[bytes]:
    """Start gunicorn on the socket that the supervisor listens on: one worker with threads."""
    return processes.start(
        [
            *(sys.executable, "-m", "gunicorn", "portal.wsgi:application"),
            *("--bind", f"fd://{listener.fileno()}"),
            *("--worker-class", "gthread", "--workers", "1", "--threads", str(WEB_THREADS)),
            *("--graceful-timeout", str(WEB_GRACE_S), "--timeout", "60", "--keep-alive", "5"),
            # Its socket would lie in the home directory and be shared by every stack of this user.
            "--no-control-socket",
        ],
        environment=environment,
        output=output,
        directory=ROOT,
        keep_open=[listener.fileno()],
    )


def start_command(name: str, output: int, *, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start `manage.py NAME`."""
    return processes.start(
        [sys.executable, "manage.py", name], environment=environment, output=output, directory=ROOT
    )


class Bootstrap:
    """One part of `manage.py bootstrap`, whose process then goes on as a management command that stays.

    It imports Django at once, waits at a gate before it uses the database, and answers with one line.
    """

    def __init__(self, part: str, then: str, output: int, *, environment: Mapping[str, str]) -> None:
        command = [
            sys.executable,
            "manage.py",
            "bootstrap",
            "--part",
            part,
            "--wait-for-input",
            "--then",
            then,
        ]
        gate_reader, self._gate = os.pipe()
        self._answers, answer_writer = os.pipe()
        os.set_blocking(self._answers, False)
        self._answer = b""
        try:
            self.process = processes.start(
                command,
                environment=environment,
                output=answer_writer,
                errors=output,
                directory=ROOT,
                stdin=gate_reader,
            )
        finally:
            os.close(gate_reader)
            os.close(answer_writer)

    def open_gate(self) -> None:
        """Tell it that the databases answer."""
        with contextlib.suppress(BrokenPipeError):  # it has ended; its status says why
            os.write(self._gate, b"go\n")
        os.close(self._gate)

    def has_answered(self) -> bool:
        """Whether its work is done and `answer` is there."""
        with contextlib.suppress(BlockingIOError):
            self._answer += os.read(self._answers, 65536)
        return self._answer.endswith(b"\n")

    def answer(self) -> dict[str, Any]:
        """What it answered, once it has."""
        os.close(self._answers)
        values: dict[str, Any] = json.loads(self._answer)
        return values


def account_variables(folder: DataFolder) -> dict[str, str]:
    """What the bootstrap needs to make the accounts, or to see that they are there."""
    secrets = folder.secrets
    return {
        "VOICEPOOL_OPERATOR_EMAIL": OPERATOR_EMAIL,
        "VOICEPOOL_OPERATOR_PASSWORD": secrets.get_or_make("operator_password", random_bytes=12),
        "VOICEPOOL_DEMONSTRATION_EMAIL": DEMONSTRATION_EMAIL,
        "VOICEPOOL_DEMONSTRATION_PASSWORD": secrets.get_or_make("demonstration_password", random_bytes=12),
        "VOICEPOOL_DEMONSTRATION_API_KEY": secrets.read("demonstration_api_key"),
    }


def start_demonstration(folder: DataFolder, *, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the demonstration; it talks to the terminal itself."""
    return processes.start(
        [sys.executable, "-m", "portal.embedded.demonstration", "--data", str(folder.path)],
        environment=environment,
        output=sys.stdout.fileno(),
        errors=sys.stderr.fileno(),
        directory=ROOT,
    )
