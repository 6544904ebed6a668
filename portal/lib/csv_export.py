"""Tables as CSV files: harmless in a spreadsheet, and long ones are sent while they are read."""

from __future__ import annotations

import csv
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, TypeVar

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from portal.lib.sse import open_stream_response, release_database

# A spreadsheet takes a cell that begins so for a formula (OWASP, CSV injection).
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Excel reads UTF-8 only where the file says so.
BYTE_ORDER_MARK: Final = "\ufeff"
ROWS_AT_ONCE: Final = 500
CONTENT_TYPE: Final = "text/csv; charset=utf-8"
Response = TypeVar("Response", bound=HttpResponseBase)


def cell(value: Any) -> str:
    """A value as a cell: times in their zone (UTC as they are read), None as nothing, no text a spreadsheet runs."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, (int, float, Decimal)):
        return str(value)
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


class _Line:
    """What csv.writer writes to: gives the line back."""

    def write(self, line: str) -> str:
        return line


def csv_pieces(header: Iterable[str], pages: Iterable[Iterable[Iterable[Any]]]) -> Iterator[bytes]:
    """The file in pieces: the header, then a piece for each page of rows.

    While a piece is on its way to the client, the thread holds no connection to the database.
    """
    writer = csv.writer(_Line())
    yield (BYTE_ORDER_MARK + writer.writerow(list(header))).encode()
    for page in pages:
        piece = "".join(writer.writerow([cell(value) for value in row]) for row in page).encode()
        release_database()
        if piece:
            yield piece


def csv_response(name: str, *, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> HttpResponse:
    """A file `name`.csv for the browser to save, of rows that are few."""
    return _named(HttpResponse(b"".join(csv_pieces(header, [rows])), content_type=CONTENT_TYPE), name)


def csv_stream(
    request: HttpRequest,
    name: str,
    *,
    header: Iterable[str],
    pages: Iterable[Iterable[Iterable[Any]]],
    holder_id: uuid.UUID,
) -> StreamingHttpResponse:
    """The same of rows that are many: `pages` are read one by one while they are sent.

    It holds a thread for as long as the client reads, so it is one of the open streams (portal.lib.sse) of
    `holder_id`: a workspace, or an operator. Raises TooManyStreams.
    """
    response = open_stream_response(
        request, csv_pieces(header, pages), workspace_id=holder_id, content_type=CONTENT_TYPE
    )
    return _named(response, name)


def _named(response: Response, name: str) -> Response:
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    response["Cache-Control"] = "private, no-store"
    return response
