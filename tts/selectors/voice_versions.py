"""The versions of a voice: its recordings, of which one is current. To be asked of a voice of tts.selectors.voices."""

from __future__ import annotations

import copy

from django.db.models import QuerySet

from tts.models import Voice, VoiceKind, VoiceVersion
from tts.version_errors import VoiceVersionNotFound

# What a version brings along: the voice has a copy of what the current one has.
RECORDED = ("language", "transcript", "clip_key", "clip_sha256", "clip_ms", "quality", "peaks", "consent_id")


def versions_of(voice: Voice) -> QuerySet[VoiceVersion]:
    """Newest first."""
    rows = VoiceVersion.objects.filter(voice_id=voice.pk)
    return rows.select_related("consent__user", "created_by").order_by("-number")


def version_of(voice: Voice, number: int) -> VoiceVersion:
    """Raises VoiceVersionNotFound."""
    version = VoiceVersion.objects.filter(voice_id=voice.pk, number=number).first()
    if version is None:
        raise VoiceVersionNotFound
    return version


def recorded_in(voice: Voice, version: VoiceVersion) -> Voice:
    """The voice as it is with this recording. Not to be saved."""
    other = with_number(voice, version.number)
    for name in RECORDED:
        setattr(other, name, getattr(version, name))
    return other


def with_number(voice: Voice, number: int) -> Voice:
    """The voice under the number of a version, for what only says which one it was."""
    other = copy.copy(voice)
    other.version = number
    return other


def voice_as(voice: Voice, number: int) -> Voice:
    """The voice with the recording of this version. Nothing is read where that is the current one.

    Raises VoiceVersionNotFound.
    """
    if voice.kind == VoiceKind.PRESET or voice.version == number:
        return voice
    return recorded_in(voice, version_of(voice, number))


def voice_as_before(voice: Voice, number: int) -> Voice:
    """The same, with the current recording where that version is gone."""
    try:
        return voice_as(voice, number)
    except VoiceVersionNotFound:
        return voice
