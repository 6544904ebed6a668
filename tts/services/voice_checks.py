"""A recording, judged before it becomes a voice. Nothing of it is stored."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from accounts.models import Workspace
from portal.lib.throttling import count_try
from tts.audio.errors import ClipTooLarge
from tts.audio.intake import InspectedClip, inspect_clip
from tts.audio.limits import MAX_UPLOAD_BYTES
from tts.audio.peaks import waveform_peaks
from tts.audio.quality import QualityReport
from tts.audio.wav import read_wav
from tts.errors import TooManyVoiceChecks


def check_recording(*, workspace: Workspace, upload: UploadedFile[bytes]) -> QualityReport:
    """Return the report that a voice of this upload would have, a verdict of `rejected` included.

    Takes about a second of a processor: a child process decodes and measures, as when a voice is made.

    Raises:
        TooManyVoiceChecks: the workspace has had its checks for this minute.
        ClipRejected, ClipInspectionUnavailable: see tts.audio.errors; there is no report then.
    """
    if not count_try(
        scope="voice_checks", setting="VOICE_CHECKS_PER_MINUTE", who=f"workspace:{workspace.pk}"
    ):
        raise TooManyVoiceChecks(limit=settings.VOICEPOOL["VOICE_CHECKS_PER_MINUTE"])
    return inspect_upload(upload).report


def recorded_of(clip: InspectedClip) -> dict[str, Any]:
    """What a voice and each of its versions keep of a clip beside the file itself."""
    return {
        "clip_sha256": clip.sha256,
        "clip_ms": clip.duration_ms,
        "quality": clip.report.as_dict(),
        "peaks": waveform_peaks(read_wav(clip.canonical_wav).pcm),
    }


def inspect_upload(upload: UploadedFile[bytes]) -> InspectedClip:
    """Hand the upload to the limited child as a file of a name that we chose. Raises as `inspect_clip` does."""
    if (upload.size or 0) > MAX_UPLOAD_BYTES:
        raise ClipTooLarge
    with tempfile.NamedTemporaryFile(prefix="clip-") as file:
        for chunk in upload.chunks():
            file.write(chunk)
        file.flush()
        return inspect_clip(source=Path(file.name))
