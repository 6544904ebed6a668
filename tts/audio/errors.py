"""Why a reference clip is refused. Every refusal has a stable code and says what to do instead."""

from __future__ import annotations

import math
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError, ServiceUnavailable
from tts.audio.limits import (
    BEST_CLIP_SECONDS,
    MAX_CHANNEL_COUNT,
    MAX_CLIP_SECONDS,
    MAX_SAMPLE_RATE_HZ,
    MAX_UPLOAD_BYTES,
    MIN_CLIP_SECONDS,
    MIN_SAMPLE_RATE_HZ,
)
from tts.audio.quality import QualityReport
from tts.audio.report_json import report_as_json

_LIMITS: dict[str, Any] = {
    "minimum_s": round(MIN_CLIP_SECONDS),
    "maximum_s": round(MAX_CLIP_SECONDS),
    "best_from_s": BEST_CLIP_SECONDS[0],
    "best_to_s": BEST_CLIP_SECONDS[1],
    "maximum_mib": MAX_UPLOAD_BYTES // (1024 * 1024),
    "maximum_channels": MAX_CHANNEL_COUNT,
    "minimum_khz": MIN_SAMPLE_RATE_HZ // 1000,
    "maximum_khz": MAX_SAMPLE_RATE_HZ // 1000,
}


class ClipRejected(DomainError):
    """A clip that cannot become a voice. Nothing of it was kept."""

    code = "clip_rejected"
    status = 400
    message = _("This clip cannot be used. Upload another recording.")
    field = "clip"

    def __init__(self, **params: Any) -> None:
        super().__init__(**{**_LIMITS, **params})


class ClipEmpty(ClipRejected):
    code = "clip_empty"
    message = _("The file is empty. Upload a recording of %(best_from_s)s to %(best_to_s)s seconds.")


class ClipTooLarge(ClipRejected):
    code = "clip_too_large"
    status = 413
    message = _(
        "The file is larger than %(maximum_mib)s MiB. Upload only the %(best_from_s)s to %(best_to_s)s "
        "seconds that you need."
    )


class ClipUnreadable(ClipRejected):
    code = "clip_unreadable"
    message = _(
        "This file is damaged or is not audio. WAV, FLAC, MP3, M4A, AAC, OGG, Opus and WebM recordings can "
        "be used, "
        "whatever the file is called."
    )


class ClipHasNoAudio(ClipRejected):
    code = "clip_no_audio"
    message = _("This file has no sound track. Upload a recording of someone speaking.")


class ClipFormatNotSupported(ClipRejected):
    code = "clip_format_not_supported"
    message = _(
        "The sound in this file is stored in a format that we do not read. "
        "Save it as WAV, FLAC, MP3, M4A, OGG or WebM and upload it again."
    )


class ClipTooShort(ClipRejected):
    code = "clip_too_short"
    message = _(
        "The clip lasts %(duration_s).1f seconds; at least %(minimum_s)s are needed. "
        "Record %(best_from_s)s to %(best_to_s)s seconds of speech."
    )

    def __init__(self, *, duration_s: float, **params: Any) -> None:
        # Rounded down: "lasts 3.0 seconds, at least 3 are needed" would puzzle everybody.
        super().__init__(duration_s=math.floor(round(duration_s * 10, 6)) / 10, **params)


class ClipTooLong(ClipRejected):
    code = "clip_too_long"
    message = _(
        "The clip is longer than %(maximum_s)s seconds. Cut it to the best %(best_from_s)s to %(best_to_s)s "
        "seconds: "
        "one person, whole sentences, no music."
    )


class ClipTooManyChannels(ClipRejected):
    code = "clip_too_many_channels"
    message = _(
        "The clip has %(channel_count)s channels; up to %(maximum_channels)s can be read. Save it as mono "
        "or stereo."
    )


class ClipSampleRateNotSupported(ClipRejected):
    code = "clip_sample_rate_not_supported"
    message = _(
        "The clip has %(sample_rate_hz)s samples per second. Between %(minimum_khz)s and %(maximum_khz)s "
        "kHz can be "
        "read; 24 kHz or more sounds best."
    )


class ClipSilent(ClipRejected):
    code = "clip_silent"
    message = _(
        "Nothing can be heard in this clip. Check that the right microphone is chosen and not muted, and "
        "record again."
    )


class ClipHasNoSpeech(ClipRejected):
    code = "clip_no_speech"
    message = _(
        "No speech was found in this clip. Record one person who speaks for %(best_from_s)s to "
        "%(best_to_s)s seconds."
    )


class ClipTooComplex(ClipRejected):
    code = "clip_too_complex"
    message = _(
        "Reading this file would take too much time or memory. "
        "Save %(best_from_s)s to %(best_to_s)s seconds of it as an ordinary WAV or MP3 file and upload that."
    )


class ClipQualityRejected(ClipRejected):
    """The clip was decoded and measured, and is too poor to clone. `report` says why."""

    code = "clip_quality_rejected"
    message = _(
        "This recording is not good enough to clone a voice. The quality report says what to do better."
    )

    def __init__(self, *, report: QualityReport, **params: Any) -> None:
        self.report = report
        super().__init__(**params)

    def details(self) -> dict[str, Any]:
        return {"quality": report_as_json(self.report)}


class ClipInspectionUnavailable(ServiceUnavailable):
    """The platform's fault:

    the inspecting process did not start or was starved. Nothing is said about the clip.
    """

    code = "clip_inspection_unavailable"
    message = _("Clips cannot be checked right now. Your recording was not kept. Try again in a moment.")


_REFUSALS: tuple[type[ClipRejected], ...] = (
    ClipUnreadable,
    ClipHasNoAudio,
    ClipFormatNotSupported,
    ClipTooShort,
    ClipTooLong,
    ClipTooManyChannels,
    ClipSampleRateNotSupported,
    ClipSilent,
    ClipHasNoSpeech,
    ClipTooComplex,
)

# What the decoding child may answer.
REFUSAL_BY_CODE: dict[str, type[ClipRejected]] = {refusal.code: refusal for refusal in _REFUSALS}
