"""What lies where in one data folder, and the choices that are kept there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portal.embedded.secret_files import SecretFiles

ROOT = Path(__file__).resolve().parent.parent.parent


class FolderNotUsable(Exception):
    """The data folder cannot be made or written; the message says why."""


@dataclass(frozen=True)
class DataFolder:
    """The data folder of one stack. Everything that the stack keeps lies under it."""

    path: Path

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    @property
    def valkey(self) -> Path:
        return self.path / "valkey"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def demonstration(self) -> Path:
        return self.path / "demonstration"

    @property
    def demonstration_marker(self) -> Path:
        """There once the demonstration has spoken on this folder; a stack does it only once."""
        return self.demonstration / "done.json"

    @property
    def secrets(self) -> SecretFiles:
        return SecretFiles(self.path / "secrets")

    def prepare(self) -> None:
        """Make the folder, closed to other users where it is new.

        Raises:
            FolderNotUsable: it cannot be made or written to.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.run.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise FolderNotUsable(f"The data folder {self.path} cannot be used: {error.strerror}.") from error

    def read_state(self) -> dict[str, Any]:
        """Return what the latest stack wrote about itself (address, ports, process id), empty for none."""
        try:
            state = json.loads((self.run / "stack.json").read_text())
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}

    def write_state(self, state: dict[str, Any]) -> None:
        temporary = self.run / ".stack.json"
        temporary.write_text(json.dumps(state, indent=1) + "\n")
        temporary.replace(self.run / "stack.json")
