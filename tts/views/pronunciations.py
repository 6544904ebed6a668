"""A workspace's pronunciations: words with what is said for them, their versions, and a table for spreadsheets."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any, Final, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User, Workspace
from accounts.tenancy import require_workspace
from portal.lib.csv_export import FORMULA_STARTS, csv_response
from portal.lib.errors import DomainError
from tts.documents.encodings import decode
from tts.documents.refusal import Refused
from tts.models import PronunciationVersion
from tts.selectors.pronunciations import (
    Change,
    change_between,
    entries_of,
    newest_version,
    version_of,
    versions_of,
)
from tts.services.pronunciations import restore_version, save_pronunciations
from tts.text.pronunciation import (
    MAX_ENTRIES,
    MAX_REPLACEMENT_CHARACTERS,
    MAX_WORD_CHARACTERS,
    Entry,
)
from tts.views.text_faults import TextFault, text_fault

# A table of a thousand entries at their longest is below it.
_MAX_TABLE_BYTES: Final = 2 * 1024 * 1024
# So many versions are shown with what they changed.
_VERSIONS_SHOWN: Final = 20


@dataclass(frozen=True)
class VersionRow:
    """A version with what it changed."""

    version: PronunciationVersion
    change: Change
    is_newest: bool


@login_required
@require_safe
def pronunciations(request: HttpRequest) -> HttpResponse:
    """The table, or that of an earlier version (`?version=`)."""
    workspace = require_workspace(request)
    wanted = request.GET.get("version", "")
    shown = version_of(workspace, int(wanted)) if wanted.isdecimal() and len(wanted) < 10 else None
    return _page(request, workspace, shown=shown)


@login_required
@require_POST
def pronunciation_save(request: HttpRequest) -> HttpResponse:
    """Add an entry, or change the one whose word was `before`."""
    workspace = require_workspace(request)
    entry = Entry(request.POST.get("word", ""), request.POST.get("replacement", ""))
    before = request.POST.get("before", "")
    entries = entries_of(newest_version(workspace))
    places = [index for index, one in enumerate(entries) if one.word == before] if before else []
    if places:
        entries[places[0]] = entry
    else:
        # In front, where its fault or itself is seen at once.
        entries.insert(0, entry)
    return _save(
        request, workspace, entries, given=entry, done=_("Saved. It is said so from the next job on.")
    )


@login_required
@require_POST
def pronunciation_delete(request: HttpRequest) -> HttpResponse:
    """Remove the entry of a word."""
    workspace = require_workspace(request)
    word = request.POST.get("word", "")
    entries = [entry for entry in entries_of(newest_version(workspace)) if entry.word != word]
    return _save(request, workspace, entries, done=_("Removed. An earlier version brings it back."))


@login_required
@require_POST
def pronunciation_restore(request: HttpRequest, number: int) -> HttpResponse:
    """Make an earlier version the newest again."""
    workspace = require_workspace(request)
    restore_version(
        workspace=workspace,
        user=cast(User, request.user),
        number=number,
        expected_number=_expected(request),
    )
    messages.success(
        request, _("Version %(number)s is in force again, as a new version.") % {"number": number}
    )
    return redirect("pronunciations")


@login_required
@require_safe
def pronunciation_table(request: HttpRequest) -> HttpResponse:
    """All entries as CSV."""
    entries = entries_of(newest_version(require_workspace(request)))
    rows = [(entry.word, entry.replacement) for entry in entries]
    return csv_response("pronunciations", header=("word", "replacement"), rows=rows)


@login_required
@require_POST
def pronunciation_import(request: HttpRequest) -> HttpResponse:
    """Take entries from a CSV file: added to those that are there, or in their place."""
    workspace = require_workspace(request)
    table = request.FILES.get("table")
    imported = _read_table(table) if isinstance(table, UploadedFile) else None
    if not imported:
        problem = _("This is no table with two columns, a word and what is said for it. Save it as CSV.")
        return _page(request, workspace, problem=problem, status=400)
    entries = imported
    if request.POST.get("how") != "replace":
        words = {entry.word for entry in imported}
        entries = [
            *imported,
            *(one for one in entries_of(newest_version(workspace)) if one.word not in words),
        ]
    return _save(request, workspace, entries, done=_("The table is taken over."))


def _read_table(table: UploadedFile[bytes]) -> list[Entry] | None:
    """The entries of a CSV file, by commas, semicolons or tabs; None where it is none."""
    if not table.size or table.size > _MAX_TABLE_BYTES:
        return None
    try:
        text, _encoding = decode(table.read())
        first = text.partition("\n")[0]
        delimiter = max(",;\t", key=first.count)
        rows = [
            row for row in csv.reader(io.StringIO(text.lstrip("\ufeff")), delimiter=delimiter) if any(row)
        ]
    except (Refused, csv.Error):
        return None
    if rows and [cell.strip().lower() for cell in rows[0][:2]] == ["word", "replacement"]:
        rows = rows[1:]
    if any(len(row) < 2 for row in rows):
        return None
    return [Entry(_unguarded(row[0]), _unguarded(row[1])) for row in rows]


def _unguarded(cell: str) -> str:
    """A cell without the sign that our export puts before what a spreadsheet would take for a formula."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_STARTS) else cell


def _expected(request: HttpRequest) -> int:
    """The version that the page showed. A page without one changes nothing."""
    given = request.POST.get("version", "")
    return int(given) if given.isdecimal() and len(given) < 10 else -1


def _save(
    request: HttpRequest, workspace: Workspace, entries: list[Entry], *, done: str, given: Entry | None = None
) -> HttpResponse:
    try:
        save_pronunciations(
            workspace=workspace,
            user=cast(User, request.user),
            entries=entries,
            expected_number=_expected(request),
        )
    except DomainError as error:
        # Shown above the table, which keeps what was typed.
        return _page(request, workspace, error=error, given=given, tried=entries, status=error.status)
    messages.success(request, done)
    return redirect("pronunciations")


def _faults(error: DomainError | None, tried: list[Entry]) -> list[tuple[Entry, TextFault]]:
    """Each entry at fault with the place in it."""
    found = []
    for mistake in error.details().get("mistakes", []) if error else []:
        entry = tried[mistake["index"]]
        text = entry.word if mistake["side"] == "word" else entry.replacement
        found.append((entry, text_fault(mistake, text)))
    return found


def _versions(workspace: Workspace) -> list[VersionRow]:
    kept = list(versions_of(workspace)[: _VERSIONS_SHOWN + 1])
    return [
        VersionRow(
            version=version,
            change=change_between(
                entries_of(kept[place + 1] if place + 1 < len(kept) else None), entries_of(version)
            ),
            is_newest=place == 0,
        )
        for place, version in enumerate(kept[:_VERSIONS_SHOWN])
    ]


def _page(
    request: HttpRequest,
    workspace: Workspace,
    *,
    shown: PronunciationVersion | None = None,
    error: DomainError | None = None,
    problem: str = "",
    given: Entry | None = None,
    tried: list[Entry] | None = None,
    status: int = 200,
) -> HttpResponse:
    newest = newest_version(workspace)
    is_newest = shown is None or (newest is not None and shown.number == newest.number)
    context: dict[str, Any] = {
        "version": newest.number if newest else 0,
        "shown": shown or newest,
        "is_newest": is_newest,
        "entries": entries_of(shown or newest),
        "versions": _versions(workspace),
        "error": error,
        "problem": problem,
        "faults": _faults(error, tried or []),
        "given": given,
        "limits": {
            "entries": MAX_ENTRIES,
            "word": MAX_WORD_CHARACTERS,
            "replacement": MAX_REPLACEMENT_CHARACTERS,
        },
    }
    # By its place: no word of a customer's stands in an address.
    place = request.GET.get("edit", "")
    chosen = context["entries"][int(place) :][:1] if place.isdecimal() and len(place) < 5 else []
    edited = chosen[0] if chosen else None
    context["given"] = given or edited
    context["before"] = request.POST.get("before", "") if given else edited.word if edited else ""
    return render(request, "tts/pronunciations.html", context, status=status)
