"""Audio that a job takes over from earlier ones: its own files, so that each job is deleted by itself."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from tts import storage
from tts.services.new_folders import new_folder
from tts.services.phrases import Reusable

logger = logging.getLogger(__name__)


@contextmanager
def taken_over(
    *, workspace_id: uuid.UUID, job_id: uuid.UUID, reused: Mapping[int, Reusable]
) -> Iterator[dict[int, Reusable]]:
    """Give a job that is about to be stored files of its own of these segments' audio; they go again when the block
    raises.

    Yields what there is, with its new keys: less than was asked for where a job was deleted a moment ago.
    """
    taken: dict[int, Reusable] = {}
    if not reused:
        yield taken
        return
    with new_folder(storage.job_folder(workspace_id=workspace_id, job_id=job_id)):
        for place, source in reused.items():
            key = storage.reused_audio_key(workspace_id=workspace_id, job_id=job_id)
            try:
                storage.link_or_copy(source.audio_key, key)
            except FileNotFoundError:
                logger.info("reused_audio_gone", extra={"job_id": job_id})
                continue
            taken[place] = replace(source, audio_key=key)
        storage.keep_links(source.audio_key for source in taken.values())
        yield taken
