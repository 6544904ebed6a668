"""A database with all tables, made once per installation and copied by every first start.

Making a cluster and applying all migrations takes several seconds of two cores; a copy takes a fraction of
one. The installation makes it (`python -m portal.embedded.template`), keyed by everything that decides what
is in it. Where there is no template for the present key, a first start makes its database from nothing, with
the same result.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from portal.embedded import postgres, processes
from portal.embedded.console import fail, say
from portal.embedded.layout import ROOT
from portal.embedded.ports import port_of, reserve_loopback_port
from portal.embedded.postgres import Postgres
from portal.embedded.programs import PostgresUnavailable

TEMPLATES = ROOT / ".venv" / "database-template"
# Newer than the migrations: the template was made, or tried, after them. For the Makefile.
STAMP = TEMPLATES / "tried"
APPS = ("portal", "accounts", "billing", "tts")
READY_TIMEOUT_S = 60.0


class NotMade(Exception):
    """The template could not be made; the message says why. Nothing depends on it but speed."""


def find_template() -> Path | None:
    """Return the folder of the cluster to copy, or None where there is none that fits and may be read."""
    folder = TEMPLATES / _key() / "postgres"
    return folder if os.access(folder / "PG_VERSION", os.R_OK) else None


def make_template() -> None:
    """Make the template for the present key and drop those for others.

    Raises:
        NotMade: as it says.
    """
    key = _key()
    TEMPLATES.mkdir(mode=0o755, exist_ok=True)
    for path in TEMPLATES.iterdir():
        if path.name != key and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
    if find_template() is not None:
        return
    with tempfile.TemporaryDirectory(dir=TEMPLATES) as temporary, reserve_loopback_port() as reservation:
        unfinished = Path(temporary) / key
        unfinished.mkdir()
        server = Postgres(
            folder=unfinished / "postgres",
            port=port_of(reservation),
            password=postgres.new_password(),
            superuser_password=postgres.new_password(),
            environment={},
        )
        with tempfile.TemporaryFile() as log:
            try:
                server.create()
                _migrate(server, log.fileno())
            except (PostgresUnavailable, NotMade) as error:
                log.seek(0)
                raise NotMade(f"{error}\n{log.read().decode(errors='replace')[-2000:]}") from error
        shutil.rmtree(TEMPLATES / key, ignore_errors=True)
        unfinished.rename(TEMPLATES / key)


def _migrate(server: Postgres, log: int) -> None:
    process = server.start(log, extra_settings=postgres.THROWAWAY_SETTINGS)
    try:
        if not postgres.wait_until_ready(server, process, timeout_s=READY_TIMEOUT_S):
            raise NotMade("PostgreSQL did not start.")
        migrated = subprocess.run(
            [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity", "0", "--skip-checks"],
            cwd=ROOT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "portal.settings.embedded",
                "DATABASE_URL": server.database_url,
                # Read with the settings, and used by no migration.
                "REDIS_URL": "redis://127.0.0.1:1/0",
                "SECRET_KEY": secrets.token_urlsafe(32),
            },
            stdout=log,
            stderr=log,
            check=False,
        )
        if migrated.returncode != 0:
            raise NotMade("The migrations could not be applied.")
    finally:
        # A copy needs a cluster that was closed in order.
        status = processes.stop(process, first=postgres.STOP_SIGNAL, grace_s=postgres.STOP_GRACE_S)
    if status != 0:
        raise NotMade(f"PostgreSQL did not stop in order (status {status}).")


def _key() -> str:
    """Everything that decides what a new database holds: the pinned packages, our migrations, how it is made."""
    digest = hashlib.sha256()
    paths = [
        ROOT / "requirements.txt",
        ROOT / "deploy" / "requirements-web.txt",
        ROOT / "portal" / "settings" / "base.py",
        *(Path(__file__).with_name(name) for name in ("postgres.py", "template.py")),
        *sorted(path for app in APPS for path in (ROOT / app).glob("**/migrations/*.py")),
    ]
    for path in paths:
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is stopped
    if os.environ.get("DATABASE_URL"):
        return 0  # nobody will copy it
    if find_template() is None:
        say("Preparing an empty database for fast first starts …")
    try:
        make_template()
    except NotMade as error:
        fail(f"It could not be prepared; first starts take some seconds more. {error}")
    STAMP.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
