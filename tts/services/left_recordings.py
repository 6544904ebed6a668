"""Recordings whose row was deleted by a process that died before it removed the files: nothing of them stays.

Rows go first, as a voice without its recording would be worse; so what was meant to go may be there still.
"""

from __future__ import annotations

from django.db.models import Count, F

from tts import storage
from tts.models import Voice, VoiceKind, VoiceVersion
from tts.states import VoiceState


def remove_left_recordings() -> int:
    """Remove the files of deleted voices, and those of deleted versions of the others; returns how many voices had any.

    Looks at the folder of each deleted voice, and of each one that has lost a version. For once an hour.
    """
    clones = Voice.objects.filter(kind=VoiceKind.CLONE)
    removed = 0
    for voice in clones.filter(state=VoiceState.DELETED).only("workspace_id").iterator():
        folder = _folder(voice)
        if storage.is_filled(folder):
            storage.remove_folder(folder)
            removed += 1
    kept = clones.exclude(state=VoiceState.DELETED).annotate(version_count=Count("versions"))
    for voice in kept.filter(version_count__lt=F("last_version")).only("workspace_id").iterator():
        removed += _remove_of_versions(voice)
    return removed


def _folder(voice: Voice) -> str:
    if voice.workspace_id is None:
        raise ValueError("a preset voice has no recordings")
    return storage.voice_folder(workspace_id=voice.workspace_id, voice_id=voice.pk)


def _remove_of_versions(voice: Voice) -> bool:
    """Remove the recordings that no version of the voice names; whether there were any."""
    # In this order: what is being stored has a note until its row is there.
    stored = [
        key for key in storage.recording_keys(_folder(voice)) if not storage.is_noted(key.rpartition("/")[0])
    ]
    named = VoiceVersion.objects.filter(voice_id=voice.pk).values_list("clip_key", "spoken_key")
    left = set(stored).difference(*named)
    for key in left:
        storage.delete(key)
    return bool(left)
