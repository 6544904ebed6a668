"""Migrations of large tables: who reads and writes them meanwhile does not wait for an index."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddConstraint, AddIndex, CreateModel, RemoveIndex
from django.db.migrations.operations.base import Operation
from django.db.migrations.operations.special import SeparateDatabaseAndState

from tests.pool.test_claims import wait_until_blocked

# Tables that have a row for each piece of work or movement of money.
LARGE = {"attempt", "segment", "synthesisjob", "usagerecord", "hold", "ledgertransaction", "ledgerentry"}
# The numbers from which on the rule holds: what is before makes the tables of an installation without rows.
SINCE = {"accounts": 8, "billing": 21, "tts": 18}
# Those make an index, or look through the table for a constraint, while nobody may write. (A new column is empty:
# PostgreSQL looks through nothing for the foreign key that comes with it.)
STOPS_WRITERS = (AddIndex, RemoveIndex, AddConstraint)
CONCURRENT = (AddIndexConcurrently, RemoveIndexConcurrently)
INDEXES = ["job_revisions", "segment_by_voice", "segment_phrase"]


def done_to_the_database(operations: list[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, SeparateDatabaseAndState):
            yield from done_to_the_database(operation.database_operations)
        else:
            yield operation


def test_indexes_of_large_tables_are_made_while_they_are_written() -> None:
    stopping = []
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        if app not in SINCE or int(name[:4]) < SINCE[app]:
            continue
        operations = list(done_to_the_database(migration.operations))
        new = {operation.name_lower for operation in operations if isinstance(operation, CreateModel)}
        stopping += [
            f"{app}.{name}: {operation.describe()}"
            for operation in operations
            if isinstance(operation, STOPS_WRITERS)
            and not isinstance(operation, CONCURRENT)
            and operation.model_name_lower in LARGE - new
        ]
    assert stopping == []


def has_valid_index(name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
        row = cursor.fetchone()
    return bool(row and row[0])


@pytest.mark.parametrize("is_there", [True, False])
def test_writers_pass_while_the_indexes_of_the_segments_are_made(
    transactional_db: None, is_there: bool
) -> None:
    """Also where an earlier state of the migrations has made them."""
    loader = MigrationLoader(connection)
    migration = loader.disk_migrations["tts", "0026_large_indexes"]
    state = loader.project_state(migration.dependencies)
    failed: list[BaseException] = []

    def migrate() -> None:
        try:
            with connection.schema_editor(atomic=migration.atomic) as editor:
                migration.apply(state, editor)
        except BaseException as error:
            failed.append(error)
        finally:
            connection.close()

    if not is_there:
        with connection.cursor() as cursor:
            for name in INDEXES:
                cursor.execute(f"DROP INDEX {name}")
    migrating = threading.Thread(target=migrate)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE tts_segment IN ROW EXCLUSIVE MODE")
        migrating.start()
        wait_until_blocked()
        # A writer that comes after it, which would wait behind an index that stops writers.
        another = threading.Thread(target=write)
        another.start()
        another.join(timeout=30)
        assert not another.is_alive()
        assert migrating.is_alive()
    migrating.join(timeout=60)
    assert (migrating.is_alive(), failed) == (False, [])
    assert all(map(has_valid_index, INDEXES))


def write() -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE tts_segment IN ROW EXCLUSIVE MODE")
    finally:
        connection.close()
