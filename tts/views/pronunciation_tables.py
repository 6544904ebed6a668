"""A workspace's pronunciations as a table: what stands on which line of a CSV file."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Final

from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext as _

from portal.lib.csv_export import FORMULA_STARTS
from portal.lib.display import count_text
from tts.documents.encodings import decode
from tts.documents.refusal import Refused
from tts.text.pronunciation import Entry

# A table of a thousand entries at their longest is below it.
_MAX_TABLE_BYTES: Final = 2 * 1024 * 1024
_HEADER: Final = ["word", "replacement"]


@dataclass(frozen=True)
class Table:
    """The entries of a file, and on which of its lines, from 1, each begins; or, in words, why it is no table."""

    entries: list[Entry]
    lines: list[int]
    problem: str = ""


def read_table(upload: UploadedFile[bytes]) -> Table:
    """The entries of a CSV file, by commas, semicolons or tabs."""
    if not upload.size or upload.size > _MAX_TABLE_BYTES:
        return _no_table()
    try:
        text, _encoding = decode(upload.read())
    except Refused:
        return _no_table()
    text = text.lstrip("\ufeff")
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    # The reader has to see line ends as they are: old ones are a carriage return alone.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    table = Table([], [])
    line = 1
    try:
        for row in reader:
            if any(row) and not (line == 1 and [cell.strip().lower() for cell in row[:2]] == _HEADER):
                if len(row) < 2:
                    return _no_table(line)
                table.entries.append(Entry(_unguarded(row[0]), _unguarded(row[1])))
                table.lines.append(line)
            # A cell may hold line ends: what follows begins behind all of them.
            line = reader.line_num + 1
    except csv.Error:
        return _no_table(line)
    return table if table.entries else _no_table()


def _no_table(line: int = 0) -> Table:
    wanted = _("This is no table with two columns, a word and what is said for it. Save it as CSV.")
    if not line:
        return Table([], [], wanted)
    return Table([], [], _("Line %(line)s: %(reason)s") % {"line": count_text(line), "reason": wanted})


def _unguarded(cell: str) -> str:
    """A cell without the sign that our export puts before what a spreadsheet would take for a formula."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_STARTS) else cell
