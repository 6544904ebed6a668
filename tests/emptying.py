"""Empty the database after a test that commits, much faster than Django does it.

Django truncates every table, which makes a new file for each of them and each of their indexes, and then writes down
all content types and permissions again: about a second. Here only tables with rows are emptied, by DELETE, and content
types, permissions and the classes of the fair share are there as the migrations made them.
"""

from __future__ import annotations

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

# Beside the classes of the fair share, all that the migrations write.
KEPT = frozenset({"auth_permission", "django_content_type"})


def empty_after_tests_that_commit() -> None:
    """From now on Django's tests with transactions of their own end with `empty_tables`. After `django.setup()`."""
    from django.test import TransactionTestCase

    TransactionTestCase._fixture_teardown = lambda _case: empty_tables()  # type: ignore[method-assign]


def empty_tables() -> None:
    """Leave the rows that the migrations made and no others, also of tables whose triggers protect them."""
    names = set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - KEPT
    with transaction.atomic(), connection.cursor() as cursor:
        full = _with_rows(cursor, sorted(names))
        if not full:
            return
        # The tables' own triggers refuse to delete what is append-only, and count what is deleted.
        guarded = _with_triggers(cursor, full)
        _execute(cursor, [f"ALTER TABLE {_quoted(name)} DISABLE TRIGGER USER" for name in guarded])
        _execute(cursor, [f"DELETE FROM {_quoted(name)}" for name in full])  # noqa: S608 (our tables)
        # References are checked at the end; a table cannot be altered while it waits for that.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        _execute(cursor, [f"ALTER TABLE {_quoted(name)} ENABLE TRIGGER USER" for name in guarded])
        cursor.execute("SELECT tts_ensure_classes()")


def _with_rows(cursor: CursorWrapper, names: list[str]) -> list[str]:
    parts = [f"SELECT '{name}' WHERE EXISTS (SELECT FROM {_quoted(name)})" for name in names]  # noqa: S608
    cursor.execute(" UNION ALL ".join(parts))
    return [name for (name,) in cursor.fetchall()]


def _with_triggers(cursor: CursorWrapper, names: list[str]) -> list[str]:
    cursor.execute(
        "SELECT DISTINCT relname::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
        " WHERE NOT tgisinternal AND relname = ANY(%s)",
        [names],
    )
    return [name for (name,) in cursor.fetchall()]


def _execute(cursor: CursorWrapper, statements: list[str]) -> None:
    if statements:
        cursor.execute("; ".join(statements))


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
