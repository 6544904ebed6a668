"""What a live listener is sent: a job's audio while it is made, in a format that can be heard from its beginning.

The samples are those of the master. WAV leaves its length open; mp3 and opus are encoded piece by piece in a child
process each (`tts.audio.live_encoding`). What is heard of the label stands before or behind the speech, as in files.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from portal.lib.sse import TooManyStreams
from tts import storage
from tts.audio import explicit
from tts.audio.formats import DEFAULT_FORMAT, FORMATS, AudioFormat
from tts.audio.live_encoding import LIVE_CODECS, LiveEncoder, LiveEncodingFailed
from tts.audio.wav import read_wav, silence, wav_header
from tts.errors import FormatUnknown
from tts.models import SynthesisJob
from tts.services.labels import label_of, rule_of
from tts.services.renditions import label_language
from tts.services.streams import SAMPLE_RATE_HZ, Look, job_audio

logger = logging.getLogger(__name__)

# The others say at their beginning how long they are, or cannot be cut into packets without it.
LIVE_FORMATS: Final = ("wav", "pcm", *LIVE_CODECS)


@dataclass(frozen=True)
class LiveForm:
    """What is wanted. `label_pcm`: what is heard of the label, empty for nothing."""

    format: str
    label_pcm: bytes = b""
    label_position: str = explicit.AT_START

    @property
    def audio_format(self) -> AudioFormat:
        return FORMATS[self.format]

    @property
    def is_encoded(self) -> bool:
        return self.format in LIVE_CODECS


class Encoders:
    """Which encoding children this process has: each takes memory, and processor time while its stream lasts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[uuid.UUID] = Counter()

    @property
    def count(self) -> int:
        return self._running.total()

    def enter(self, workspace_id: uuid.UUID) -> None:
        """Take a place for the workspace. Raises TooManyStreams when there is none, or it has its share."""
        limits = settings.VOICEPOOL
        with self._lock:
            if (
                self._running.total() >= limits["LIVE_ENCODERS_PER_PROCESS"]
                or self._running[workspace_id] >= limits["LIVE_ENCODERS_PER_WORKSPACE"]
            ):
                raise TooManyStreams
            self._running[workspace_id] += 1

    def leave(self, workspace_id: uuid.UUID) -> None:
        with self._lock:
            self._running[workspace_id] -= 1
            # Without the empty ones, or every workspace that ever listened would stay in memory.
            self._running = +self._running


ENCODERS: Final = Encoders()


def live_form_of(job: SynthesisJob, *, format_code: str | None, labelled: bool = True) -> LiveForm:
    """WAV where no format is named. `labelled` False: for a page that says in words that AI speaks.

    Raises FormatUnknown.
    """
    code = format_code or DEFAULT_FORMAT
    if code not in LIVE_FORMATS:
        raise FormatUnknown(formats=", ".join(LIVE_FORMATS))
    rule = rule_of(job.workspace)
    if not labelled or rule.kind == explicit.NONE:
        return LiveForm(code)
    return LiveForm(code, _label_pcm(job, rule.kind), rule.position)


def _label_pcm(job: SynthesisJob, kind: str) -> bytes:
    """The words where somebody has spoken them, else the tone."""
    key = storage.spoken_label_key(label_language(job)) if kind == explicit.SPOKEN else ""
    if key and storage.exists(key):
        words = read_wav(storage.read(key))
        if words.sample_rate_hz == SAMPLE_RATE_HZ and words.channel_count == 1:
            return words.pcm
    return explicit.tone_label(SAMPLE_RATE_HZ).astype("<i2").tobytes()


def live_sound(job: SynthesisJob, form: LiveForm, *, first: Look | None) -> Generator[bytes]:
    """The stream's bytes as they come; an empty piece about every second while nothing is said.

    Raises LiveEncodingFailed where the stream cannot go on.
    """
    heard = _heard(job, form, first)
    if form.is_encoded:
        yield from _encoded(job, form, heard)
        return
    if form.format == "wav":
        yield wav_header(pcm_bytes=None, sample_rate_hz=SAMPLE_RATE_HZ)
    yield from heard


def _heard(job: SynthesisJob, form: LiveForm, first: Look | None) -> Generator[bytes]:
    """All samples: the speech and its label, with the rest between them that files have too."""
    rest = silence(duration_ms=explicit.REST_MS, sample_rate_hz=SAMPLE_RATE_HZ)
    if form.label_pcm and form.label_position == explicit.AT_START:
        yield form.label_pcm + rest
    spoke = False
    for pcm in job_audio(job, first=first):
        spoke = spoke or bool(pcm)
        yield pcm
    if spoke and form.label_pcm and form.label_position == explicit.AT_END:
        yield rest + form.label_pcm


def _encoded(job: SynthesisJob, form: LiveForm, heard: Generator[bytes]) -> Generator[bytes]:
    try:
        with LiveEncoder(
            format_code=form.format, sample_rate_hz=SAMPLE_RATE_HZ, label=label_of(job.pk)
        ) as encoder:
            yield encoder.head()
            for pcm in heard:
                yield encoder.encode(pcm) if pcm else b""
            yield encoder.finish()
    except LiveEncodingFailed as error:
        logger.error(
            "live_encoding_failed",
            extra={"job_id": job.pk, "format": form.format, "reason": str(error)},
        )
        raise
    finally:
        heard.close()
