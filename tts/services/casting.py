"""Who speaks what: the voices of a script's speakers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from accounts.models import User, Workspace
from tts.documents.scripts import NARRATOR_NAMES, name_key
from tts.errors import VoiceNotFound
from tts.models import Voice
from tts.selectors.voices import usable_voices


def voices_of_cast(
    workspace: Workspace,
    user: User | None,
    *,
    narrator: Voice,
    speakers: Sequence[str],
    cast: Mapping[str, uuid.UUID],
) -> dict[str, Voice]:
    """The voice of every speaker that has one, by the names as the script spells them.

    Names are told as the script tells them (case and width do not matter); names that nobody has in the script are
    left out. A narrator who is named (旁白, Narrator) and has no voice of his own is the job's voice. One query.

    Raises:
        VoiceNotFound: one of all these voices is none that this member of the workspace may use, nor a preset.
    """
    found = (
        {voice.pk: voice for voice in usable_voices(workspace, user).filter(pk__in=set(cast.values()))}
        if cast
        else {}
    )
    if len(found) < len(set(cast.values())):
        raise VoiceNotFound(field="cast")
    chosen = {name_key(name): found[voice_id] for name, voice_id in cast.items()}
    for name in NARRATOR_NAMES:
        chosen.setdefault(name, narrator)
    return {speaker: chosen[name_key(speaker)] for speaker in speakers if name_key(speaker) in chosen}
