"""Audio and events for the page session. Nothing leaves here that the session's workspace may not hear."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Generator
from typing import BinaryIO

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from accounts.tenancy import require_workspace
from portal.lib.ranges import ranged_response
from portal.lib.sse import event_stream_response, open_stream_response
from tts import storage
from tts.audio.wav import wav_header
from tts.errors import AudioNotReady, JobAlreadyEnded, JobNotFound, VoiceNotFound
from tts.models import SynthesisJob, Voice, VoiceKind
from tts.selectors.jobs import job_of
from tts.selectors.voices import voice_of
from tts.services.jobs import cancel_job
from tts.services.streams import SAMPLE_RATE_HZ, job_audio, job_events
from tts.states import JOB_ENDED

WAV_TYPE = "audio/wav"
EVENT_ID = re.compile(r"\d{1,18}", re.ASCII)


def job_filename(job: SynthesisJob) -> str:
    """A name to save a job's audio under: when it was made and which one it is, nothing that a user typed."""
    return f"voicepool-{job.created_at:%Y%m%d-%H%M%S}-{str(job.pk)[:8]}.wav"


def job_audio_response(request: HttpRequest, job: SynthesisJob, *, download: bool) -> HttpResponseBase:
    """The job's audio as a WAV file, with ranges. Raises AudioNotReady where there is none."""
    key = job.audio_key
    if not key:
        raise AudioNotReady
    try:
        return ranged_response(
            request,
            open_file=_opener(key),
            size=storage.size_of(key),
            content_type=WAV_TYPE,
            etag=_name_of(key),
            filename=job_filename(job),
            download=download,
            storage_key=key,
        )
    except FileNotFoundError as error:  # deleted since the row was read
        raise AudioNotReady from error


def voice_audio_response(request: HttpRequest, voice: Voice) -> HttpResponseBase:
    """The voice's clip, or a preset's sample, as a WAV file. Raises VoiceNotFound where there is neither."""
    is_preset = voice.kind == VoiceKind.PRESET
    key = storage.preset_sample_key(voice.preset_key) if is_preset else voice.clip_key
    if not key:
        raise VoiceNotFound
    try:
        size = storage.size_of(key)
        return ranged_response(
            request,
            open_file=_opener(key),
            size=size,
            content_type=WAV_TYPE,
            # A sample may be made anew by another engine, which gives it another length.
            etag=f"{voice.preset_key}-{size}" if is_preset else voice.clip_sha256,
            filename=f"voicepool-voice-{str(voice.pk)[:8]}.wav",
            storage_key=key,
        )
    except FileNotFoundError as error:
        raise VoiceNotFound from error


def _opener(key: str) -> Callable[[], BinaryIO]:
    return lambda: storage.open_audio(key)


def _name_of(key: str) -> str:
    """A file is never written twice under one key, so the key's last part names its content."""
    return key.rsplit("/", 1)[-1].removesuffix(".wav")


def job_events_response(request: HttpRequest, job: SynthesisJob) -> HttpResponseBase:
    """The job's events from where the client was cut off (Last-Event-ID) to its end. Raises TooManyStreams."""
    after = request.headers.get("Last-Event-ID", "")
    events = job_events(job, after=after if EVENT_ID.fullmatch(after) else "0")
    return event_stream_response(request, events, workspace_id=job.workspace_id)


def job_stream_response(
    request: HttpRequest, job: SynthesisJob, *, cancel_on_close: bool = False
) -> HttpResponseBase:
    """The job's audio while it is made: one WAV header without a length, then samples as they come.

    `cancel_on_close`: a listener who hangs up before the end cancels the job. Raises AudioNotReady where the job has
    ended and left none, TooManyStreams.
    """
    if job.state in JOB_ENDED and not job.audio_key:
        raise AudioNotReady
    chunks = _live_wav(job)
    if cancel_on_close:
        chunks = _canceling(chunks, job)
    return open_stream_response(request, chunks, workspace_id=job.workspace_id, content_type=WAV_TYPE)


def _live_wav(job: SynthesisJob) -> Generator[bytes, None, None]:
    yield wav_header(pcm_bytes=None, sample_rate_hz=SAMPLE_RATE_HZ)
    yield from job_audio(job)


def _canceling(chunks: Generator[bytes, None, None], job: SynthesisJob) -> Generator[bytes]:
    """The same chunks; whoever closes this before its end cancels the job."""
    try:
        yield from chunks
    except GeneratorExit:
        # Another listener, or the customer, may have ended it before.
        with contextlib.suppress(JobAlreadyEnded, JobNotFound):
            cancel_job(workspace=job.workspace, job_id=job.pk)
        raise


@login_required
@require_safe
def job_audio_page(request: HttpRequest, job_id: uuid.UUID) -> HttpResponseBase:
    job = job_of(require_workspace(request), job_id)
    return job_audio_response(request, job, download="download" in request.GET)


@login_required
@require_safe
def voice_audio(request: HttpRequest, voice_id: uuid.UUID) -> HttpResponseBase:
    return voice_audio_response(request, voice_of(require_workspace(request), voice_id))


@login_required
@require_safe
def job_events_page(request: HttpRequest, job_id: uuid.UUID) -> HttpResponseBase:
    return job_events_response(request, job_of(require_workspace(request), job_id))


@login_required
@require_safe
def job_stream_page(request: HttpRequest, job_id: uuid.UUID) -> HttpResponseBase:
    return job_stream_response(request, job_of(require_workspace(request), job_id))
