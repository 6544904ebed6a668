"""A workspace's pronunciations: words with what is said for them, their versions, and a table for spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence
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
from portal.lib.csv_export import csv_response
from portal.lib.errors import DomainError
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
from tts.views.pronunciation_tables import read_table
from tts.views.text_faults import TextFault, text_fault

# So many versions are shown with what they changed.
_VERSIONS_SHOWN: Final = 20


@dataclass(frozen=True)
class VersionRow:
    """A version with what it changed."""

    version: PronunciationVersion
    change: Change
    is_newest: bool


@dataclass(frozen=True)
class ShownFault:
    """An entry at fault with the place in it; `line` of the file that it came from, 0 where it was typed."""

    line: int
    word: str
    fault: TextFault


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
    if not isinstance(table, UploadedFile):
        return _page(request, workspace, problem=_("Choose a file first."), status=400)
    imported = read_table(table)
    if imported.problem:
        return _page(request, workspace, problem=imported.problem, status=400)
    entries = imported.entries
    if request.POST.get("how") != "replace":
        words = {entry.word for entry in entries}
        entries = [*entries, *(one for one in entries_of(newest_version(workspace)) if one.word not in words)]
    done = _("The table is taken over.")
    return _save(request, workspace, entries, done=done, lines=imported.lines)


def _expected(request: HttpRequest) -> int:
    """The version that the page showed. A page without one changes nothing."""
    given = request.POST.get("version", "")
    return int(given) if given.isdecimal() and len(given) < 10 else -1


def _save(
    request: HttpRequest,
    workspace: Workspace,
    entries: list[Entry],
    *,
    done: str,
    given: Entry | None = None,
    lines: Sequence[int] = (),
) -> HttpResponse:
    """`lines`: of the file that the first entries came from."""
    try:
        save_pronunciations(
            workspace=workspace,
            user=cast(User, request.user),
            entries=entries,
            expected_number=_expected(request),
        )
    except DomainError as error:
        # Shown above the table, which keeps what was typed.
        faults = _faults(error, entries, lines)
        return _page(request, workspace, error=error, faults=faults, given=given, status=error.status)
    messages.success(request, done)
    return redirect("pronunciations")


def _faults(error: DomainError, tried: list[Entry], lines: Sequence[int]) -> list[ShownFault]:
    found = []
    for mistake in error.details().get("mistakes", []):
        place = mistake["index"]
        entry = tried[place]
        text = entry.word if mistake["side"] == "word" else entry.replacement
        line = lines[place] if place < len(lines) else 0
        found.append(ShownFault(line, entry.word, text_fault(mistake, text)))
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
    faults: Sequence[ShownFault] = (),
    given: Entry | None = None,
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
        "faults": faults,
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
