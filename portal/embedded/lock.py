"""One supervisor per data folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FolderInUse(Exception):
    """Another supervisor runs on the data folder; `holder` is its process id, or 0 where it could not be
    read.
    """

    def __init__(self, folder: Path, holder: int) -> None:
        super().__init__(f"{folder} is in use by process {holder}.")
        self.folder = folder
        self.holder = holder


def lock_folder(folder: Path) -> int:
    """Take the folder's lock and return the descriptor that holds it until this process ends, however it
    ends.

    The kernel drops the lock with the process, so nothing is stale after a kill. Children do not inherit it.

    Raises:
        FolderInUse: another process holds it.
    """
    descriptor = os.open(folder / "supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 32).decode(errors="replace").strip()
        os.close(descriptor)
        raise FolderInUse(folder, int(holder) if holder.isdigit() else 0) from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor
