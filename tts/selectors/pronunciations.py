"""A workspace's pronunciations: the newest, one by its number, and ready to be applied."""

from __future__ import annotations

import functools
import logging
import uuid
from dataclasses import dataclass

from django.db.models import Func, IntegerField, QuerySet

from accounts.models import Workspace
from accounts.tenancy import owned_by
from tts.errors import PronunciationVersionUnknown
from tts.models import PronunciationVersion
from tts.text.pronunciation import NOTHING, Dictionary, Entry

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Change:
    """What one version made of the one before it."""

    added: list[str]
    changed: list[str]
    removed: list[str]


def versions_of(workspace: Workspace) -> QuerySet[PronunciationVersion]:
    """The versions that are kept, the newest first, with who made them."""
    return (
        owned_by(PronunciationVersion.objects.all(), workspace)
        .select_related("created_by")
        .order_by("-number")
    )


def version_list(workspace: Workspace) -> QuerySet[PronunciationVersion]:
    """The same for a list: without their entries, which are long together; `entry_count` says how many there are."""
    counted = Func("entries", function="jsonb_array_length", output_field=IntegerField())
    return versions_of(workspace).defer("entries").annotate(entry_count=counted)


def newest_version(workspace: Workspace) -> PronunciationVersion | None:
    return versions_of(workspace).first()


def version_of(workspace: Workspace, number: int) -> PronunciationVersion:
    """Raises PronunciationVersionUnknown: there is none, it is kept no more, or it is another workspace's."""
    found = versions_of(workspace).filter(number=number).first() if number < 2**31 else None
    if found is None:
        raise PronunciationVersionUnknown
    return found


def entries_of(version: PronunciationVersion | None) -> list[Entry]:
    """The entries of a version; none where there is no version."""
    return [] if version is None else [Entry(word, replacement) for word, replacement in version.entries]


def pronunciations_for(workspace: Workspace, number: int | None) -> tuple[int | None, Dictionary]:
    """The number and the dictionary of a request that asks for `number`: None for the newest, 0 for none.

    Raises:
        PronunciationVersionUnknown
    """
    if number is None:
        number = (
            owned_by(PronunciationVersion.objects.all(), workspace)
            .order_by("-number")
            .values_list("number", flat=True)
            .first()
        )
    elif number:
        version_of(workspace, number)
    return (number, dictionary(workspace.pk, number)) if number else (None, NOTHING)


def dictionary(workspace_id: uuid.UUID, number: int | None) -> Dictionary:
    """A version ready to be applied: that of a job. A version never changes, so it is read once for each process."""
    if number is None:
        return NOTHING
    found = _dictionary(workspace_id, number)
    if found is None:
        # Kept for as long as a job that is not deleted names it.
        logger.error("pronunciation_version_missing", extra={"workspace_id": workspace_id, "number": number})
        return NOTHING
    return found


class _Missing(Exception):
    """Not remembered by the cache, as a result would be."""


def _dictionary(workspace_id: uuid.UUID, number: int) -> Dictionary | None:
    try:
        return _read(workspace_id, number)
    except _Missing:
        return None


@functools.lru_cache(maxsize=32)
def _read(workspace_id: uuid.UUID, number: int) -> Dictionary:
    found = (
        PronunciationVersion.objects.filter(workspace_id=workspace_id, number=number).only("entries").first()
    )
    if found is None:
        raise _Missing
    return Dictionary(entries_of(found))


def change_between(before: list[Entry], after: list[Entry]) -> Change:
    """The words that were added, changed and removed, in the order of the entries."""
    old = {entry.word: entry.replacement for entry in before}
    new = {entry.word: entry.replacement for entry in after}
    return Change(
        added=[word for word in new if word not in old],
        changed=[word for word in new if word in old and old[word] != new[word]],
        removed=[word for word in old if word not in new],
    )
