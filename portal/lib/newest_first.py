"""Pages of long lists, newest first, by the place of the last row: nothing is counted, and new rows shift nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from django.utils.dateparse import parse_datetime

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class PageOfRows(Generic[Row]):
    """`older` is what leads to the next page, empty on the last one. `is_first`: newer rows would stand here."""

    rows: list[Row]
    older: str
    is_first: bool


def page_before(rows: QuerySet[Row], *, moment_field: str, before: str, size: int) -> PageOfRows[Row]:
    """The newest `size` rows before the place `before`; an empty or unknown place is the beginning. One query."""
    place = _parsed(before, rows)
    if place is not None:
        moment, key = place
        # The moment alone lets the index be used.
        rows = rows.filter(**{f"{moment_field}__lte": moment}).filter(
            Q(**{f"{moment_field}__lt": moment}) | Q(pk__lt=key)
        )
    found = list(rows.order_by(f"-{moment_field}", "-pk")[: size + 1])
    older = ""
    if len(found) > size:
        last = found[size - 1]
        older = f"{getattr(last, moment_field).isoformat()},{last.pk}"
    return PageOfRows(rows=found[:size], older=older, is_first=place is None)


def pages(rows: QuerySet[Row], *, moment_field: str, size: int, at_most: int) -> Iterator[list[Row]]:
    """All rows, newest first, up to `at_most`, in pages of `size`. A query each, between which nothing is held: what
    comes meanwhile is newer than the first page, and is not among them."""
    before, left = "", at_most
    while left > 0:
        page = page_before(rows, moment_field=moment_field, before=before, size=min(size, left))
        if page.rows:
            yield page.rows
        left -= len(page.rows)
        before = page.older
        if not before:
            return


def _parsed(text: str, rows: QuerySet[Any]) -> tuple[datetime, Any] | None:
    moment_text, comma, key_text = text.replace(" ", "+").partition(",")
    try:
        moment = parse_datetime(moment_text)
        key = rows.model._meta.pk.to_python(key_text)
    except Exception:  # whatever a field says of a value that is none of its own
        return None
    if not comma or moment is None or moment.tzinfo is None or key is None or moment.year in (1, 9999):
        return None
    return moment, key
