"""A clock that stands still and is moved by hand: the database's and Django's at once.

PostgreSQL finds a function by the search path. `now()` and its like of a schema that comes before `pg_catalog` take
the place of its own, for statements and for functions of the database alike. Only what is called without a schema is
moved: `CURRENT_TIMESTAMP` and the defaults of columns are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

_SCHEMA = """
CREATE SCHEMA moved_clock;
CREATE TABLE moved_clock.stands (at timestamptz NOT NULL);
INSERT INTO moved_clock.stands VALUES (pg_catalog.now());
CREATE FUNCTION moved_clock.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM moved_clock.stands';
CREATE FUNCTION moved_clock.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT at FROM moved_clock.stands';
CREATE FUNCTION moved_clock.transaction_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT at FROM moved_clock.stands';
CREATE FUNCTION moved_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT at FROM moved_clock.stands';
"""
_PATH = "moved_clock, pg_catalog, public"


class MovedClock:
    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.moment = timezone.now()
        patch.setattr(timezone, "now", lambda: self.moment)

    def to(self, moment: datetime) -> None:
        """It is `moment`, for every process that connects to this database and for this one."""
        self.moment = moment
        with connection.cursor() as cursor:
            cursor.execute("UPDATE moved_clock.stands SET at = %s", [moment])

    def by(self, time: timedelta) -> None:
        self.to(self.moment + time)


@pytest.fixture
def moved_clock(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[MovedClock]:
    database = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(_SCHEMA)
        # New connections too, should this one be lost.
        cursor.execute(f'ALTER DATABASE "{database}" SET search_path = {_PATH}')
        cursor.execute(f"SET search_path = {_PATH}")
    yield MovedClock(monkeypatch)
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{database}" RESET search_path')
        cursor.execute("RESET search_path")
        cursor.execute("DROP SCHEMA moved_clock CASCADE")
    connection.close()
