"""Saving a workspace's pronunciations: each time a new version, and nothing lost that somebody else saved meanwhile."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import Final

from django.db import IntegrityError, transaction

from accounts.models import User, Workspace
from tts.errors import PronunciationsChanged, PronunciationsFull, PronunciationVersionUnknown
from tts.models import PronunciationVersion, SynthesisJob
from tts.selectors.pronunciations import entries_of, newest_version, version_of
from tts.text.pronunciation import MAX_ENTRIES, Entry, checked
from tts.text.pronunciation_errors import PronunciationInvalid

logger = logging.getLogger(__name__)
# Older ones go, unless a job that is not deleted was spoken by them.
VERSIONS_KEPT: Final = 100


def save_pronunciations(
    *, workspace: Workspace, user: User | None, entries: Sequence[Entry], expected_number: int | None
) -> PronunciationVersion | None:
    """Make these the workspace's entries and return their version; the newest one where nothing differs.

    `expected_number` is the version that the entries were made from, 0 for none; None replaces whatever is there.

    Raises:
        PronunciationInvalid: carries every fault. PronunciationsFull. PronunciationsChanged: another version is the
        newest by now. Nothing was changed then.
    """
    if len(entries) > MAX_ENTRIES:
        raise PronunciationsFull(limit=MAX_ENTRIES)
    kept, faults = checked(entries)
    if faults:
        raise PronunciationInvalid(faults=faults)
    newest = newest_version(workspace)
    number = newest.number if newest else 0
    if expected_number is not None and expected_number != number:
        raise PronunciationsChanged
    if entries_of(newest) == kept:
        return newest
    try:
        with transaction.atomic():
            version = PronunciationVersion.objects.create(
                workspace=workspace,
                number=number + 1,
                entries=[[entry.word, entry.replacement] for entry in kept],
                created_by=user,
            )
            _forget_old(workspace, number + 1)
    except IntegrityError as error:
        # Somebody else's became this number at the same moment.
        raise PronunciationsChanged from error
    logger.info("pronunciations_saved", extra={"workspace_id": workspace.pk, "entries": len(kept)})
    return version


def restore_version(
    *, workspace: Workspace, user: User | None, number: int, expected_number: int
) -> PronunciationVersion | None:
    """Make an earlier version's entries the newest again, as a new version. Raises as save_pronunciations, and
    PronunciationVersionUnknown."""
    earlier = version_of(workspace, number)
    return save_pronunciations(
        workspace=workspace, user=user, entries=entries_of(earlier), expected_number=expected_number
    )


def keep_version(workspace_id: uuid.UUID, number: int | None) -> None:
    """See to it that a version is there when the job of this transaction is stored, and stays for it.

    Raises PronunciationVersionUnknown: it was forgotten since it was looked up.
    """
    if number is None:
        return
    version = PronunciationVersion.objects.filter(workspace_id=workspace_id, number=number)
    if not version.select_for_update(no_key=True).values_list("pk", flat=True):
        raise PronunciationVersionUnknown


def _forget_old(workspace: Workspace, newest_number: int) -> None:
    """Two steps: what a job that is being stored holds (`keep_version`) is passed over, and whoever has stored one by
    now is seen by the second."""
    spoken = SynthesisJob.objects.filter(
        workspace_id=workspace.pk, deleted_at__isnull=True, pronunciation_version__isnull=False
    ).values("pronunciation_version")
    old = PronunciationVersion.objects.filter(
        workspace_id=workspace.pk, number__lte=newest_number - VERSIONS_KEPT
    ).exclude(number__in=spoken)
    held = list(old.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True))
    old.filter(pk__in=held).delete()
