"""Folders of rows that are being stored: their files come first, so whoever dies in between leaves a folder of nobody.

A note tells of each such folder until its row is there. Housekeeping looks after the notes that were left: where the
row is not, the folder goes too. It looks at no folder without a note.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from django.db import OperationalError

from tts import storage
from tts.models import SynthesisJob, Voice, VoiceVersion

logger = logging.getLogger(__name__)

# Nobody takes nearly as long. A note that is held is left alone however old it is; this is for who has sent the commit
# and died, and for storage without locks.
LEFT_AFTER: Final = timedelta(hours=1)
_MODELS: Final = {"jobs": SynthesisJob, "voices": Voice, "versions": VoiceVersion}
_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FOLDER: Final = re.compile(
    rf"workspaces/{_UUID}/(?:voices/{_UUID}/)?(?P<kind>jobs|voices|versions)/(?P<id>{_UUID})"
)


@contextmanager
def new_folder(folder: str) -> Iterator[None]:
    """Fill the folder and store its row in this block. When it raises, the folder goes again.

    It stays for housekeeping where the database was lost on the way: then the row may be there.
    """
    with storage.noted(folder):
        try:
            yield
        except OperationalError:
            raise
        except BaseException:
            storage.remove_folder(folder)
            storage.forget_note(folder)
            raise
        try:
            storage.forget_note(folder)
        except OSError as error:
            # The row is there: nothing is undone because of a note.
            logger.warning("note_not_removed", extra={"error": type(error).__name__})


def remove_folders_without_rows() -> int:
    """Remove what was left by processes that died before they stored a row; returns how many folders had none."""
    removed = 0
    for folder in storage.noted_folders(older_than=LEFT_AFTER):
        found = _FOLDER.fullmatch(folder)
        if found is None:
            continue  # none of ours
        if not _MODELS[found["kind"]]._default_manager.filter(pk=found["id"]).exists():
            storage.remove_folder(folder)
            removed += 1
        storage.forget_note(folder)
    return removed
