"""Who speaks in a script, as the studio asks for it: every speaker with a voice chosen beforehand."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from django.http import QueryDict

from tts.documents.scripts import NARRATOR_NAMES, name_key
from tts.services.quoting import QuotedSpeaker
from tts.text.limits import MAX_SPEAKERS
from tts.views.cards import VoiceCard


@dataclass(frozen=True)
class CastRow:
    """A speaker and the voice that is chosen: by a person, or for a start by us."""

    name: str
    voice_id: uuid.UUID
    characters: int
    segment_count: int


def posted_cast(data: Mapping[str, Any], voices: Sequence[VoiceCard]) -> dict[str, uuid.UUID]:
    """What a form says of its speakers. A voice that is none of these is left out: then it is asked for anew."""
    if not isinstance(data, QueryDict):
        return {}
    known = {str(voice.voice_id): voice.voice_id for voice in voices}
    pairs = zip(data.getlist("speaker"), data.getlist("speaker_voice"), strict=False)
    return {name: known[chosen] for name, chosen in list(pairs)[:MAX_SPEAKERS] if chosen in known}


def cast_rows(
    speakers: Sequence[QuotedSpeaker],
    *,
    chosen: Mapping[str, uuid.UUID],
    narrator_id: uuid.UUID,
    voices: Sequence[VoiceCard],
) -> list[CastRow]:
    """The speakers with their voices: the chosen ones, else each another one, of the narrator's language first."""
    by_key = {name_key(name): voice_id for name, voice_id in chosen.items()}
    free = _free_voices(voices, narrator_id, taken=set(by_key.values()))
    rows = []
    for speaker in speakers:
        key = name_key(speaker.name)
        voice_id = by_key.get(key) or (narrator_id if key in NARRATOR_NAMES else next(free))
        rows.append(CastRow(speaker.name, voice_id, speaker.characters, speaker.segment_count))
    return rows


def _free_voices(
    voices: Sequence[VoiceCard], narrator_id: uuid.UUID, *, taken: set[uuid.UUID]
) -> Iterator[uuid.UUID]:
    """Voices for those who have none, without end: nobody's first, then all of them again."""
    languages = {voice.voice_id: voice.language for voice in voices}
    language = languages.get(narrator_id)
    others = sorted(
        (voice for voice in voices if voice.voice_id != narrator_id),
        key=lambda voice: (voice.voice_id in taken, voice.language != language),
    )
    return cycle([voice.voice_id for voice in others] or [narrator_id])
