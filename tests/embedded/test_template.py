"""The database that an installation prepares: what a copy of it is, and when it is not used."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from portal.embedded import postgres, processes, template
from portal.embedded.layout import ROOT
from portal.embedded.ports import port_of, reserve_loopback_port
from portal.embedded.postgres import Postgres


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "templates"
    monkeypatch.setattr(template, "TEMPLATES", folder)
    monkeypatch.setattr(template, "STAMP", folder / "tried")
    monkeypatch.delenv("DATABASE_URL")  # the test session's own
    return folder


@pytest.fixture
def server(closed_folder: Path) -> Iterator[Postgres]:
    with reserve_loopback_port() as reservation:
        yield Postgres(
            folder=closed_folder / "postgres",
            port=port_of(reservation),
            password="application-password",
            superuser_password="superuser-password",
            environment={},
        )


def test_a_copy_has_every_table_and_only_our_passwords(templates, server, tmp_path):
    assert template.main() == 0
    made = template.find_template()
    assert made is not None
    assert (templates / "tried").exists()
    assert server.create(template=made) is True
    with (tmp_path / "postgres.log").open("wb") as log:
        process = server.start(log.fileno())
        try:
            assert postgres.wait_until_ready(server, process, timeout_s=60)
            with psycopg.connect(server.database_url) as connection:
                assert connection.execute("SELECT count(*) FROM accounts_user").fetchone() == (0,)
                owners = connection.execute(
                    "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
                ).fetchall()
                assert owners == [("voicepool",)]
            # Django finds nothing left to apply.
            environment = {**os.environ, "DATABASE_URL": server.database_url, "SECRET_KEY": "x"}
            subprocess.run(
                [sys.executable, "manage.py", "migrate", "--check"], cwd=ROOT, env=environment, check=True
            )
            superuser = f"postgresql://postgres:superuser-password@127.0.0.1:{server.port}/postgres"
            with psycopg.connect(superuser) as connection:
                with_password = connection.execute(
                    "SELECT rolname FROM pg_authid WHERE rolpassword IS NOT NULL ORDER BY 1"
                ).fetchall()
                assert with_password == [("postgres",), ("voicepool",)]
        finally:
            assert processes.stop(process, first=postgres.STOP_SIGNAL, grace_s=20) == 0


def test_a_template_of_other_tables_is_not_used_and_is_dropped(templates, monkeypatch):
    for key in ("older", "present"):
        cluster = templates / key / "postgres"
        cluster.mkdir(parents=True)
        (cluster / "PG_VERSION").write_text("18\n")
    monkeypatch.setattr(template, "_key", lambda: "newest")
    assert template.find_template() is None
    monkeypatch.setattr(template, "_key", lambda: "present")
    assert template.find_template() == templates / "present" / "postgres"
    template.make_template()
    assert sorted(path.name for path in templates.iterdir()) == ["present"]


def test_its_key_follows_the_migrations_and_the_pins(tmp_path, monkeypatch):
    for name in ("requirements.txt", "deploy/requirements-web.txt", "portal/settings/base.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one")
    migration = tmp_path / "billing" / "migrations" / "0001_initial.py"
    migration.parent.mkdir(parents=True)
    migration.write_text("one")
    code = tmp_path / "portal" / "embedded"
    code.mkdir()
    for name in ("postgres.py", "template.py"):
        (code / name).write_text("one")
    monkeypatch.setattr(template, "ROOT", tmp_path)
    monkeypatch.setattr(template, "__file__", str(code / "template.py"))
    first = template._key()
    assert template._key() == first
    migration.write_text("two")
    second = template._key()
    (tmp_path / "requirements.txt").write_text("two")
    assert len({first, second, template._key()}) == 3


def test_migrations_that_fail_cost_only_the_speed(templates, monkeypatch, capsys):
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "portal.settings.embedded")
    monkeypatch.setattr(template, "_migrate", refuse)
    assert template.main() == 0
    assert template.find_template() is None
    assert "The migrations could not be applied" in capsys.readouterr().err
    assert [path.name for path in templates.iterdir()] == ["tried"]


def refuse(server: Postgres, log: int) -> None:
    raise template.NotMade("The migrations could not be applied.")


def test_with_a_database_of_ones_own_nothing_is_prepared(templates, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/voicepool")
    assert template.main() == 0
    assert not templates.exists()
