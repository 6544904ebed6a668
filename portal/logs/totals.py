"""Numbers that only grow, kept in one small table: what Prometheus calls counters, over all processes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from django.db import connection

from portal.logs.models import CounterTotal

Labels = tuple[tuple[str, str], ...]
# By family and labels.
Additions = Mapping[tuple[str, Labels], int]

ADD = """
INSERT INTO logs_countertotal AS kept (family, labels, value)
SELECT * FROM unnest(%s::text[], %s::text[], %s::bigint[])
ON CONFLICT (family, labels) DO UPDATE SET value = kept.value + excluded.value
"""


def labels_of(**labels: str) -> Labels:
    return tuple(sorted(labels.items()))


def add_totals(additions: Additions) -> None:
    """Add to the totals, in one statement. Rows are locked in one order: processes that add at once only wait."""
    rows = sorted(
        (family, json.dumps(dict(labels), sort_keys=True, ensure_ascii=False), value)
        for (family, labels), value in additions.items()
        if value
    )
    if not rows:
        return
    families, labels_texts, values = zip(*rows, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(ADD, [list(families), list(labels_texts), list(values)])


def read_totals() -> dict[str, dict[Labels, int]]:
    """Every total by family and labels."""
    found: dict[str, dict[Labels, int]] = {}
    for family, text, value in CounterTotal.objects.values_list("family", "labels", "value"):
        labels: dict[str, str] = json.loads(text)
        found.setdefault(family, {})[tuple(sorted(labels.items()))] = value
    return found
