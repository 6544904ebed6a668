"""`python -m portal.embedded`: run the whole product on this machine until Ctrl-C."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from portal.embedded.console import fail
from portal.embedded.layout import DataFolder, FolderNotUsable
from portal.embedded.lock import FolderInUse
from portal.embedded.ports import PortTaken
from portal.embedded.supervisor import Options, Supervisor

EXIT_FAILED = 1
EXIT_PORT_TAKEN = 3
EXIT_FOLDER_IN_USE = 4


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port < 65536:
        raise ValueError(text)
    return port


def _options() -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m portal.embedded",
        description=__doc__,
        epilog="DATABASE_URL and REDIS_URL in the environment replace the embedded PostgreSQL and Valkey. "
        "Exit status: 0 stopped, 1 did not start, 2 wrong arguments, 3 the port is taken, "
        "4 the data folder is in use.",
    )
    parser.add_argument("--data", type=Path, default=Path(".data"), help="the data folder (default: .data)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8000, help="port to listen on (default: 8000)")
    parser.add_argument("--no-demonstration", action="store_true", help="leave out the spoken demonstration")
    parser.add_argument("--until-ready", action="store_true", help="stop again as soon as it is ready")
    given = parser.parse_args()
    return Options(
        folder=DataFolder(Path(os.path.abspath(given.data))),
        host=given.host,
        port=given.port,
        demonstration=not given.no_demonstration,
        until_ready=given.until_ready,
    )


def main() -> int:
    options = _options()
    try:
        return Supervisor(options).run()
    except FolderNotUsable as error:
        fail(str(error))
        return EXIT_FAILED
    except PortTaken as error:
        fail(
            f"Port {error.port} of {error.host} cannot be used: {error.reason.lower()}. "
            "Nothing was started.\n"
            f"Stop the program that uses it, or choose another port: make run PORT={error.port + 1}"
        )
        return EXIT_PORT_TAKEN
    except FolderInUse as error:
        where = options.folder.read_state().get("address", "")
        fail(
            f"VoicePool already runs on {options.folder.path} (process {error.holder}"
            f"{', ' + where if where else ''}). Nothing was started.\n"
            "Stop that one first, or choose another data folder and port: make run DATA=.data2 PORT=8001"
        )
        return EXIT_FOLDER_IN_USE


if __name__ == "__main__":
    sys.exit(main())
