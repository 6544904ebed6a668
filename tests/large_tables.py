"""What PostgreSQL really reads for a query where a table is large.

The planner's choice in a small table tells nothing: it hangs on statistics that may or may not have been taken. So a
test fills the table, has the statistics taken, and counts the rows that were read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.db import connection
from django.db.models import Model, QuerySet

# Some dozens of pages: a whole table costs many times what an index costs, whatever else holds.
COPIES = 3_000


def copy_row(row: Model, **changes: str) -> None:
    """Insert COPIES copies of the row, each with a primary key of its own, and take the table's statistics.

    `changes` are SQL expressions for other columns, by column; in them `number` counts from 1.
    """
    meta = row._meta
    quote = connection.ops.quote_name
    columns = [field.column for field in meta.local_concrete_fields if field.column is not None]
    values = {str(meta.pk.column): "gen_random_uuid()", **changes}
    assert set(values) <= set(columns)
    chosen = ", ".join(values.get(column, f"t.{quote(column)}") for column in columns)
    names, table = ", ".join(map(quote, columns)), quote(meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({names}) SELECT {chosen} FROM {table} t, generate_series(1, %s) AS number"  # noqa: S608
            f" WHERE t.{quote(str(meta.pk.column))} = %s",
            [COPIES, row.pk],
        )
        assert cursor.rowcount == COPIES
        cursor.execute(f"ANALYZE {table}")


def rows_read(query: str | QuerySet[Any]) -> Counter[str]:
    """Run the query and return how many rows of each table it looked at, those that it threw away too."""
    statement, parameters = (query, None) if isinstance(query, str) else query.query.sql_with_params()
    read: Counter[str] = Counter()
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}", parameters)
        ((found,),) = cursor.fetchall()
    for node in _nodes(found[0]["Plan"]):
        if "Relation Name" in node:
            rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            rows += node.get("Rows Removed by Index Recheck", 0)
            read[node["Relation Name"]] += round(rows * node["Actual Loops"])
    return read


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from _nodes(part)
