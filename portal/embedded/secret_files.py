"""Secrets of one data folder: made once, one file each, readable by their owner alone."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


class SecretFiles:
    """The folder `DATA/secrets`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        return self.folder / name

    def read(self, name: str) -> str:
        """Return a secret, or an empty string where there is none yet."""
        try:
            return self.path(name).read_text().strip()
        except FileNotFoundError:
            return ""

    def write(self, name: str, value: str) -> None:
        """Keep `value`; a kill in the middle leaves the old file or the new one, never half of it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self.path(f".{name}.unfinished")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(value + "\n")
            file.flush()
            os.fsync(descriptor)
        temporary.replace(self.path(name))

    def get_or_make(self, name: str, *, random_bytes: int = 24) -> str:
        """Return the secret, made of `random_bytes` random bytes (URL-safe text) the first time."""
        value = self.read(name)
        if not value:
            value = secrets.token_urlsafe(random_bytes)
            self.write(name, value)
        return value
