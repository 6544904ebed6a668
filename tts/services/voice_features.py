"""What engines have computed of a voice's clip: kept beside it, so that it is computed once for all devices.

Of one clip, by one version of one engine: another version computes its own. Deleted with the voice, and with each of
its versions: a file's name does not tell which one's it is, and what still speaks is computed anew.
"""

from __future__ import annotations

import contextlib
import logging

from tts import storage
from tts.engine.base import LoadedEngine
from tts.models import Voice, VoiceVersion
from tts.states import VOICE_KEPT

logger = logging.getLogger(__name__)


def read_features(*, voice: Voice, engine: LoadedEngine) -> bytes:
    """The features of the voice for this engine; b"" where nobody has computed them yet."""
    try:
        return storage.read(_key(voice, engine))
    except FileNotFoundError:
        return b""


def keep_features(*, voice: Voice, engine: LoadedEngine, content: bytes) -> None:
    """Store them, unless another device was faster, or the voice or the version that it speaks with is gone."""
    key = _key(voice, engine)
    with contextlib.suppress(FileExistsError):
        storage.save(key, content)
    # Looked at afterwards: whoever deleted it before this has not seen the file.
    of_this = VoiceVersion.objects.filter(voice_id=voice.pk, number=voice.version)
    if not of_this.filter(voice__state__in=VOICE_KEPT).exists():
        storage.delete(key)
        return
    logger.info("voice_features_kept", extra={"voice_id": voice.pk, "bytes": len(content)})


def drop_features(*, voice: Voice, engine: LoadedEngine) -> None:
    """Forget what this engine could not read."""
    storage.delete(_key(voice, engine))
    logger.warning("voice_features_unreadable", extra={"voice_id": voice.pk})


def delete_features(*, voice: Voice) -> None:
    """Remove everything that any engine computed of the voice, of whichever version."""
    if voice.workspace_id is None:
        return
    for key in storage.voice_features_keys(workspace_id=voice.workspace_id, voice_id=voice.pk):
        storage.delete(key)


def _key(voice: Voice, engine: LoadedEngine) -> str:
    if voice.workspace_id is None:
        raise ValueError("a preset voice has no clip")
    return storage.voice_features_key(
        workspace_id=voice.workspace_id,
        voice_id=voice.pk,
        computed_by=f"{engine.engine}\0{engine.engine_version}\0{voice.clip_sha256}",
    )
