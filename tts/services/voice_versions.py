"""Another recording for a cloned voice, which keeps its id, name and history; an earlier one used again, or deleted.

Whoever may speak with a voice may do all this, as they may rename and delete it; the recordings of what another member
keeps private are nobody else's affair. Each act holds the voice's row: one comes after the other.
"""

from __future__ import annotations

import logging
import uuid
from typing import Final

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from accounts.models import User, Workspace
from accounts.services.consent import record_consent
from tts import storage
from tts.audio.intake import InspectedClip
from tts.errors import PresetVoiceFixed, VoiceNotFound
from tts.models import Voice, VoiceKind, VoiceVersion
from tts.selectors.voice_versions import RECORDED, version_of
from tts.selectors.voices import usable_voices, voice_of
from tts.services.new_folders import new_folder
from tts.services.stored import check_storage
from tts.services.voice_checks import inspect_upload, recorded_of
from tts.services.voice_pins import is_needed
from tts.services.voices import check_consent, delete_recordings, inspect_spoken
from tts.version_errors import (
    TooManyVoiceVersions,
    VoiceVersionCurrent,
    VoiceVersionNeeded,
    VoiceVersionNotFound,
)

logger = logging.getLogger(__name__)
MAX_VERSIONS: Final = 10


def replace_recording(
    *,
    workspace: Workspace,
    user: User,
    voice_id: uuid.UUID,
    upload: UploadedFile[bytes],
    language: str,
    transcript: str,
    consent: bool,
    locale: str,
    address: str | None,
    spoken_consent: UploadedFile[bytes] | None = None,
) -> Voice:
    """Give the voice another recording as its newest version, which speaks from now on; return the voice.

    Judged and consented to like the first one. Jobs that were submitted before speak with what they were quoted with.
    Takes about a second, without a transaction.

    Raises:
        VoiceNotFound, PresetVoiceFixed, TooManyVoiceVersions, and of consent, clip and storage what
        tts.services.voices.create_voice raises. Nothing was stored then.
    """
    _check_room(clone_of(workspace, user, voice_id))
    check_consent(agreed=consent, spoken=spoken_consent)
    clip = inspect_upload(upload)
    clip.require_usable()
    spoken = inspect_spoken(spoken_consent)
    check_storage(workspace, adds_ms=clip.duration_ms)
    version = VoiceVersion(
        voice_id=voice_id,
        language=language,
        transcript=transcript.strip(),
        **recorded_of(clip),
        created_by=user,
    )
    voice = _keep(version, clip, spoken, workspace=workspace, user=user, locale=locale, address=address)
    logger.info("voice_replaced", extra={"voice_id": voice.pk, "version": voice.version})
    return voice


def _keep(
    version: VoiceVersion,
    clip: InspectedClip,
    spoken: InspectedClip | None,
    *,
    workspace: Workspace,
    user: User,
    locale: str,
    address: str | None,
) -> Voice:
    """Store the recordings, then the version and its consent in one transaction; when that fails, nothing is left."""
    folder = storage.voice_version_folder(
        workspace_id=workspace.pk, voice_id=version.voice_id, version_id=version.pk
    )
    version.clip_key = f"{folder}/clip.wav"
    version.spoken_key = f"{folder}/consent.wav" if spoken else ""
    with new_folder(folder):
        storage.save(version.clip_key, clip.canonical_wav)
        if spoken is not None:
            storage.save(version.spoken_key, spoken.canonical_wav)
        with transaction.atomic():
            voice = _locked(workspace, user, version.voice_id)
            _check_room(voice)
            version.number = voice.last_version + 1
            version.consent = record_consent(
                workspace=workspace,
                user=user,
                voice_id=voice.pk,
                clip_sha256=clip.sha256,
                locale=locale,
                address=address,
                spoken_sha256=spoken.sha256 if spoken else "",
            )
            version.save(force_insert=True)
            _make_current(voice, version)
            Voice.objects.filter(pk=voice.pk).update(last_version=version.number)
    return voice_of(workspace, user, voice.pk)


def use_version(*, workspace: Workspace, user: User, voice_id: uuid.UUID, number: int) -> Voice:
    """Let the voice speak with this version from now on. The current one already: nothing happens.

    Raises VoiceNotFound, PresetVoiceFixed, VoiceVersionNotFound. Nothing was changed then.
    """
    with transaction.atomic():
        voice = _locked(workspace, user, voice_id)
        version = version_of(voice, number)
        if version.number != voice.version:
            _make_current(voice, version)
    logger.info("voice_version_used", extra={"voice_id": voice.pk, "version": number})
    return voice_of(workspace, user, voice_id)


def delete_version(*, workspace: Workspace, user: User, voice_id: uuid.UUID, number: int) -> None:
    """Delete a version that is not the current one, with its recordings and what engines computed. What was spoken with
    it stays, and so does the record of consent.

    Raises VoiceNotFound, PresetVoiceFixed, VoiceVersionNotFound, VoiceVersionCurrent; VoiceVersionNeeded while a job
    that waits or speaks was quoted with it. Nothing was changed then.
    """
    with transaction.atomic():
        voice = _locked(workspace, user, voice_id)
        # Whoever stores a job with it comes before this, and is seen, or after it (tts.services.voice_pins).
        of_number = VoiceVersion.objects.filter(voice_id=voice.pk, number=number)
        version = of_number.select_for_update().first()
        if version is None:
            raise VoiceVersionNotFound
        if version.number == voice.version:
            raise VoiceVersionCurrent
        if is_needed(voice, number):
            raise VoiceVersionNeeded
        of_number.delete()
        transaction.on_commit(lambda: delete_recordings(voice, [version]), robust=True)
    logger.info("voice_version_deleted", extra={"voice_id": voice.pk, "version": number})


def clone_of(workspace: Workspace, user: User, voice_id: uuid.UUID) -> Voice:
    """The clone whose versions the user may hear and arrange. Raises VoiceNotFound, PresetVoiceFixed."""
    voice = voice_of(workspace, user, voice_id)
    if voice.kind == VoiceKind.PRESET:
        raise PresetVoiceFixed
    return voice


def _locked(workspace: Workspace, user: User, voice_id: uuid.UUID) -> Voice:
    """The same, read with its row locked until the transaction ends."""
    clone_of(workspace, user, voice_id)
    voice = usable_voices(workspace, user).filter(pk=voice_id).select_for_update(no_key=True).first()
    if voice is None:
        raise VoiceNotFound
    return voice


def _check_room(voice: Voice) -> None:
    if VoiceVersion.objects.filter(voice_id=voice.pk).count() >= MAX_VERSIONS:
        raise TooManyVoiceVersions(limit=MAX_VERSIONS)


def _make_current(voice: Voice, version: VoiceVersion) -> None:
    recorded = {name: getattr(version, name) for name in RECORDED}
    Voice.objects.filter(pk=voice.pk).update(version=version.number, **recorded)
