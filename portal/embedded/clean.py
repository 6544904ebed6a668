"""`python -m portal.embedded.clean`: delete one data folder for good, unless a stack runs on it."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from portal.embedded.console import fail, say
from portal.embedded.layout import DataFolder
from portal.embedded.lock import FolderInUse, lock_folder
from portal.embedded.processes import ProcessRecords


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m portal.embedded.clean", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(".data"))
    parser.add_argument("--yes", action="store_true", help="do not ask")
    given = parser.parse_args()
    folder = DataFolder(Path(os.path.abspath(given.data)))
    if not folder.path.exists():
        say(f"{folder.path} does not exist: nothing to delete.")
        return 0
    # Only what a stack made: a wrong DATA=… must not cost anybody their files.
    if not (folder.run / "supervisor.lock").exists():
        fail(f"{folder.path} is not a data folder of VoicePool. Nothing was deleted.")
        return 1
    try:
        lock_folder(folder.run)
    except FolderInUse as error:
        fail(f"VoicePool runs on {folder.path} (process {error.holder}). Stop it first. Nothing was deleted.")
        return 1
    if not given.yes and not _confirmed(folder.path):
        fail("Nothing was deleted.")
        return 1
    ProcessRecords(folder.run / "processes").end_leftovers()
    shutil.rmtree(folder.path)
    say(f"Deleted {folder.path}.")
    return 0


def _confirmed(path: Path) -> bool:
    if not sys.stdin.isatty():
        fail("This deletes customers, voices, audio and money for good: say YES=1.")
        return False
    answer = input(f"Delete {path} with all customers, voices, audio and money in it, for good? [y/N] ")
    return answer.strip().lower() in {"y", "yes"}


if __name__ == "__main__":
    sys.exit(main())
