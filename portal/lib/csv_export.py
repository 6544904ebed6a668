"""Tables as CSV files: sent while they are read, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from django.http import StreamingHttpResponse

# A spreadsheet takes a cell that begins so for a formula (OWASP, CSV injection).
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Excel reads UTF-8 only where the file says so.
BYTE_ORDER_MARK: Final = "\ufeff"
ROWS_AT_ONCE: Final = 500


def cell(value: Any) -> str:
    """A value as a cell: times in UTC, None as nothing, and no text that a spreadsheet would run."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, (int, float)):
        return str(value)
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


class _Line:
    """What csv.writer writes to: gives the line back."""

    def write(self, line: str) -> str:
        return line


def csv_lines(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """The file in pieces of some hundred lines."""
    writer = csv.writer(_Line())
    gathered = [BYTE_ORDER_MARK + writer.writerow(list(header))]
    for row in rows:
        gathered.append(writer.writerow([cell(value) for value in row]))
        if len(gathered) >= ROWS_AT_ONCE:
            yield "".join(gathered)
            gathered = []
    yield "".join(gathered)


def csv_response(name: str, *, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> StreamingHttpResponse:
    """A file `name`.csv for the browser to save. `rows` are read while they are sent."""
    response = StreamingHttpResponse(csv_lines(header, rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    response["Cache-Control"] = "private, no-store"
    return response
