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
from dataclasses import dataclass
from typing import Any

from portal.embedded import processes
from portal.embedded.console import DEMONSTRATION_EMAIL, OPERATOR_EMAIL
from portal.embedded.layout import ROOT, DataFolder
from portal.embedded.service import open_log

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


@dataclass
class Bootstrap:
    """`manage.py bootstrap`: migrations, operator, demonstration customer. It waits at a gate for the
    database.
    """

    process: subprocess.Popen[bytes]
    _gate: int

    @classmethod
    def start(cls, folder: DataFolder, *, environment: Mapping[str, str]) -> Bootstrap:
        """Start it now: it imports Django while the database is started, and waits before it connects."""
        reader, writer = os.pipe()
        try:
            with open_log(folder.logs, "bootstrap") as log:
                process = processes.start(
                    [sys.executable, "manage.py", "bootstrap", "--json", "--migrate", "--wait-for-input"],
                    environment={**environment, **_accounts(folder)},
                    output=subprocess.PIPE,
                    errors=log,
                    directory=ROOT,
                    stdin=reader,
                )
        finally:
            os.close(reader)
        return cls(process, writer)

    def open_gate(self) -> None:
        """Tell it that the databases answer."""
        with contextlib.suppress(BrokenPipeError):  # it has ended; its status says why
            os.write(self._gate, b"go\n")
        os.close(self._gate)
        self._gate = -1

    def result(self) -> dict[str, Any]:
        """What it printed, once it has ended well."""
        output = self.process.stdout
        answer = json.loads(output.read()) if output is not None else None
        if not isinstance(answer, dict):
            raise ValueError("not an object")
        return answer


def _accounts(folder: DataFolder) -> dict[str, str]:
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
