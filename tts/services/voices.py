"""Cloned voices: taken in, renamed, deleted."""

from __future__ import annotations

import logging
import unicodedata
import uuid
from collections.abc import Iterable

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models.functions import Now

from accounts.models import User, Workspace
from accounts.selectors.limits import voices_limit
from accounts.services.consent import record_consent
from tts import storage
from tts.audio.errors import ClipRejected
from tts.audio.intake import InspectedClip
from tts.engine.catalogue import PRESET_VOICES
from tts.errors import (
    ConsentRequired,
    NameInvalid,
    PresetVoiceFixed,
    SpokenConsentMissing,
    SpokenConsentUnusable,
    TooManyVoices,
    VoiceNotFound,
    VoiceNotYours,
)
from tts.models import Voice, VoiceKind, VoiceVersion
from tts.selectors.voice_drafts import draft_by
from tts.selectors.voice_versions import RECORDED
from tts.selectors.voices import known_voice_of, may_arrange
from tts.services.new_folders import new_folder
from tts.services.stored import check_storage
from tts.services.voice_checks import inspect_upload, recorded_of
from tts.services.voice_features import delete_features
from tts.states import VoiceState

logger = logging.getLogger(__name__)
MAX_NAME_CHARACTERS = 60
# Unicode's explicit embeddings, overrides and isolates (UAX #9, 2.1 to 2.5). ZWJ and ZWNJ belong to names and stay.
DIRECTION_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def create_voice(
    *,
    workspace: Workspace,
    user: User,
    upload: UploadedFile[bytes],
    name: str,
    language: str,
    transcript: str,
    consent: bool,
    locale: str,
    address: str | None,
    spoken_consent: UploadedFile[bytes] | None = None,
    shared: bool = True,
    as_draft: bool = False,
) -> Voice:
    """Judge the clip, keep its canonical form and the consent, and return the voice. The upload itself is not kept.

    `spoken_consent`, a recording of the sentence that `current_statement` says, is kept beside the clip where it is
    given, and has to be given where the operator asks for it (SPOKEN_CONSENT).

    `as_draft`: to be heard before it is saved (tts.services.voice_drafts). It takes the place of the draft that the
    user had in the workspace, and no place among its voices.

    Takes about a second: a child process decodes and measures. No transaction is open meanwhile.

    Raises:
        ConsentRequired, SpokenConsentMissing, SpokenConsentUnusable, NameInvalid, TooManyVoices, and the refusals of
        tts.audio.errors (ClipQualityRejected carries the report). Nothing was stored then.
    """
    check_consent(agreed=consent, spoken=spoken_consent)
    name = clean_name(name)
    former = draft_by(workspace, user) if as_draft else None
    if not as_draft:
        check_room(workspace)
    clip = inspect_upload(upload)
    clip.require_usable()
    spoken = inspect_spoken(spoken_consent)
    check_storage(workspace, adds_ms=clip.duration_ms - (former.clip_ms if former else 0))
    voice = Voice(
        workspace=workspace,
        created_by=user,
        kind=VoiceKind.CLONE,
        state=VoiceState.DRAFT if as_draft else VoiceState.READY,
        name=name,
        language=language,
        transcript=transcript.strip(),
        **recorded_of(clip),
        shared=shared,
    )
    _keep(voice, clip, spoken, workspace=workspace, user=user, locale=locale, address=address)
    event = "voice_draft_created" if as_draft else "voice_created"
    logger.info(event, extra={"voice_id": voice.pk, "clip_ms": clip.duration_ms})
    return voice


def check_consent(*, agreed: bool, spoken: UploadedFile[bytes] | None) -> None:
    """Raises ConsentRequired, SpokenConsentMissing."""
    if not agreed:
        raise ConsentRequired
    if spoken is None and settings.VOICEPOOL["SPOKEN_CONSENT"]:
        raise SpokenConsentMissing


def inspect_spoken(upload: UploadedFile[bytes] | None) -> InspectedClip | None:
    """The recording of the spoken consent. It has to hold speech; how good it sounds does not matter.

    Raises SpokenConsentUnusable.
    """
    if upload is None:
        return None
    try:
        return inspect_upload(upload)
    except ClipRejected as error:
        raise SpokenConsentUnusable(reason=error.text()) from error


def _keep(
    voice: Voice,
    clip: InspectedClip,
    spoken: InspectedClip | None,
    *,
    workspace: Workspace,
    user: User,
    locale: str,
    address: str | None,
) -> None:
    """Store the recordings, then the voice and its consent in one transaction; when that fails, nothing is left."""
    voice.clip_key = storage.voice_clip_key(workspace_id=workspace.pk, voice_id=voice.pk)
    spoken_key = storage.spoken_consent_key(workspace_id=workspace.pk, voice_id=voice.pk)
    with new_folder(storage.voice_folder(workspace_id=workspace.pk, voice_id=voice.pk)):
        storage.save(voice.clip_key, clip.canonical_wav)
        if spoken is not None:
            storage.save(spoken_key, spoken.canonical_wav)
        with transaction.atomic():
            lock_voices(workspace)
            if voice.state != VoiceState.DRAFT:
                check_room(workspace)
            elif former := draft_by(workspace, user):
                erase_voice(former)
            voice.consent = record_consent(
                workspace=workspace,
                user=user,
                voice_id=voice.pk,
                clip_sha256=clip.sha256,
                locale=locale,
                address=address,
                spoken_sha256=spoken.sha256 if spoken else "",
            )
            voice.save(force_insert=True)
            VoiceVersion.objects.create(
                voice=voice,
                number=voice.version,
                spoken_key=spoken_key if spoken else "",
                created_by=user,
                **{name: getattr(voice, name) for name in RECORDED},
            )


def clean_name(name: str) -> str:
    """The name without spaces at its ends.

    Raises NameInvalid when nothing visible is left, and for line breaks and marks that turn the direction of
    writing: those would reorder whatever stands beside the name on a page.
    """
    cleaned = unicodedata.normalize("NFC", name).strip()
    if any(
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in DIRECTION_MARKS
        for character in cleaned
    ):
        raise NameInvalid
    visible = any(unicodedata.category(character)[0] not in "CZM" for character in cleaned)
    if not visible or len(cleaned) > MAX_NAME_CHARACTERS:
        raise NameInvalid
    return cleaned


def lock_voices(workspace: Workspace) -> None:
    """Locks the workspace's row, so that two at once cannot both take the last place."""
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)


def check_room(workspace: Workspace) -> None:
    """Raises TooManyVoices."""
    limit = voices_limit(workspace)
    if Voice.objects.filter(workspace=workspace, state=VoiceState.READY).count() >= limit:
        raise TooManyVoices(limit=limit)


def _own_clone(workspace: Workspace, user: User, voice_id: uuid.UUID) -> Voice:
    voice = known_voice_of(workspace, user, voice_id)
    if voice.kind == VoiceKind.PRESET:
        raise PresetVoiceFixed
    return voice


def change_voice(
    *,
    workspace: Workspace,
    user: User,
    voice_id: uuid.UUID,
    name: str | None = None,
    shared: bool | None = None,
) -> Voice:
    """Give the workspace's voice another name, or say who may use it: everybody or only who made it. None: as it is.

    Jobs that were submitted before it became private go on.

    Raises:
        VoiceNotFound, PresetVoiceFixed, NameInvalid, VoiceNotYours (of `shared`). Nothing was changed then.
    """
    voice = _own_clone(workspace, user, voice_id)
    changes: dict[str, str | bool] = {}
    if shared is not None:
        if not may_arrange(workspace, user, voice):
            raise VoiceNotYours
        changes["shared"] = voice.shared = shared
    if name is not None:
        changes["name"] = voice.name = clean_name(name)
    if changes and not Voice.objects.filter(pk=voice.pk, state=VoiceState.READY).update(**changes):
        raise VoiceNotFound
    if shared is not None:
        logger.info("voice_shared" if shared else "voice_made_private", extra={"voice_id": voice.pk})
    return voice


def delete_voice(*, workspace: Workspace, user: User, voice_id: uuid.UUID) -> None:
    """Delete the workspace's voice and all its versions for good, with what engines computed of them. Jobs that it
    spoke keep their audio; the record of consent is kept, with the fingerprints of what was recorded.

    Raises VoiceNotFound, PresetVoiceFixed.
    """
    voice = _own_clone(workspace, user, voice_id)
    erase_voice(voice)
    logger.info("voice_deleted", extra={"voice_id": voice.pk})


def erase_voice(voice: Voice) -> bool:
    """Delete a voice or a draft as it was read, with its recordings; False where it has changed its state since."""
    with transaction.atomic():
        deleted = Voice.objects.filter(pk=voice.pk, state=voice.state).update(
            state=VoiceState.DELETED, deleted_at=Now(), transcript="", clip_key="", peaks=[], quality=None
        )
        if deleted:
            # The row is locked now: nobody adds another one.
            versions = VoiceVersion.objects.filter(voice_id=voice.pk)
            kept = list(versions)
            versions.delete()
            transaction.on_commit(lambda: delete_recordings(voice, kept), robust=True)
    return bool(deleted)


def delete_recordings(voice: Voice, versions: Iterable[VoiceVersion]) -> None:
    """Remove the files of versions whose rows are gone, and what engines computed of the voice."""
    for version in versions:
        storage.delete(version.clip_key)
        storage.delete(version.spoken_key)
    delete_features(voice=voice)


def ensure_preset_voices() -> None:
    """Bring the platform's preset voices in line with the catalogue. Idempotent, also two calls at once."""
    known = set(Voice.objects.filter(kind=VoiceKind.PRESET).values_list("preset_key", flat=True))
    missing = [
        Voice(
            kind=VoiceKind.PRESET,
            preset_key=preset.key,
            name=preset.english_name,
            language=preset.language,
        )
        for preset in PRESET_VOICES
        if preset.key not in known
    ]
    # Keys are unique: of a preset that another call stored meanwhile there is one.
    Voice.objects.bulk_create(missing, ignore_conflicts=True)
