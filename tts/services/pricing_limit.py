"""How much text a workspace may have priced in a minute: a book takes half a second of a processor, a word nothing."""

from __future__ import annotations

import uuid

from django.conf import settings

from portal.lib.throttling import seconds_until_room
from tts.errors import TooManyCharactersPriced

_SETTING = "PRICED_CHARACTERS_PER_MINUTE"


def count_priced(*, workspace_id: uuid.UUID, characters: int) -> None:
    """Count a text that is about to be looked through, for a quote or for a job. Raises TooManyCharactersPriced."""
    seconds = seconds_until_room(
        scope="priced_characters", setting=_SETTING, who=f"workspace:{workspace_id}", amount=characters
    )
    if seconds:
        raise TooManyCharactersPriced(
            limit=settings.VOICEPOOL[_SETTING], seconds=seconds, retry_after_s=seconds
        )
