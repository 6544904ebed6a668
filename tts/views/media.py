"""Audio and events for the page session. Nothing leaves here that the session's workspace may not hear."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import BinaryIO, cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from accounts.models import User
from accounts.tenancy import require_workspace
from portal.lib.ranges import ranged_response
from portal.lib.sse import event_stream_response, open_stream_response
from tts import storage
from tts.errors import AudioNotReady, JobAlreadyEnded, JobNotFound, VoiceNotFound
from tts.models import SynthesisJob, Voice, VoiceKind
from tts.selectors.jobs import followed_job_of, lone_job_of
from tts.selectors.voices import voice_of
from tts.services.jobs import cancel_job
from tts.services.labels import label_of
from tts.services.live_sound import ENCODERS, live_form_of, live_sound
from tts.services.renditions import MASTER, Form, audio_file, form_of
from tts.services.streams import first_look, job_events
from tts.states import JOB_ENDED

WAV_TYPE = "audio/wav"
# What a file's container says of its origin, said beside it too: bare samples and streams have no place for it.
LABEL_HEADER = "X-AIGC"
SAMPLE_RATE = re.compile(r"\d{1,6}", re.ASCII)
EVENT_ID = re.compile(r"\d{1,18}", re.ASCII)


def job_filename(job: SynthesisJob, extension: str = "wav") -> str:
    """A name to save a job's audio under: when it was made and which one it is, nothing that a user typed."""
    return f"voicepool-{job.created_at:%Y%m%d-%H%M%S}-{str(job.pk)[:8]}.{extension}"


def wanted_form(job: SynthesisJob, query: Mapping[str, str]) -> Form:
    """The form that `format` and `sample_rate_hz` of a query ask for, else the job's own.

    Raises FormatUnknown, SampleRateNotSupported.
    """
    rate = query.get("sample_rate_hz") or None
    # What is no number is no rate that a format takes: 0 is refused with the list of those.
    rate_hz = None if rate is None else int(rate) if SAMPLE_RATE.fullmatch(rate) else 0
    return form_of(job, format_code=query.get("format") or None, sample_rate_hz=rate_hz)


def job_audio_response(
    request: HttpRequest, job: SynthesisJob, form: Form, *, download: bool
) -> HttpResponseBase:
    """The job's audio in this form, with ranges.

    Raises AudioNotReady where there is none, AudioBeingMade, AudioNotMade.
    """
    file = audio_file(job, form)
    try:
        response = ranged_response(
            request,
            open_file=_opener(file.key),
            size=storage.size_of(file.key),
            content_type=file.audio_format.content_type,
            etag=_name_of(file.key),
            filename=job_filename(job, file.audio_format.extension),
            download=download,
            storage_key=file.key,
        )
    except FileNotFoundError as error:  # deleted since the row was read
        raise AudioNotReady from error
    response[LABEL_HEADER] = file.label
    return response


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
    return key.rsplit("/", 1)[-1].rsplit(".", 1)[0]


def job_events_response(request: HttpRequest, job: SynthesisJob) -> HttpResponseBase:
    """The job's events from where the client was cut off (Last-Event-ID) to its end. Raises TooManyStreams."""
    after = request.headers.get("Last-Event-ID", "")
    events = job_events(job, after=after if EVENT_ID.fullmatch(after) else "0")
    return event_stream_response(request, events, workspace_id=job.workspace_id)


def job_stream_response(
    request: HttpRequest,
    job: SynthesisJob,
    *,
    format_code: str | None = None,
    labelled: bool = True,
    cancel_on_close: bool = False,
) -> HttpResponseBase:
    """The job's audio while it is made, in one of the live formats (WAV where none is named).

    `labelled` False: without what is heard of the label, for a page that says it in words. `cancel_on_close`: a
    listener who hangs up before the end cancels the job. Raises FormatUnknown, AudioNotReady where the job has ended
    and left none, TooManyStreams.
    """
    form = live_form_of(job, format_code=format_code, labelled=labelled)
    if job.state in JOB_ENDED and not job.audio_key:
        raise AudioNotReady
    chunks = live_sound(job, form, first=first_look(job))
    if cancel_on_close:
        chunks = _canceling(chunks, job)
    leave = partial(ENCODERS.leave, job.workspace_id)
    with contextlib.ExitStack() as undo:
        if form.is_encoded:
            ENCODERS.enter(job.workspace_id)
            undo.callback(leave)
        response = open_stream_response(
            request,
            chunks,
            workspace_id=job.workspace_id,
            content_type=form.audio_format.content_type,
            on_close=leave if form.is_encoded else None,
        )
        undo.pop_all()
    response[LABEL_HEADER] = label_of(job.pk)
    return response


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
    """To be played, the master as it is: the page says in words that AI made it. To be saved, with its label."""
    job = lone_job_of(require_workspace(request), job_id)
    download = "download" in request.GET
    form = wanted_form(job, request.GET) if download else MASTER
    return job_audio_response(request, job, form, download=download)


@login_required
@require_safe
def voice_audio(request: HttpRequest, voice_id: uuid.UUID) -> HttpResponseBase:
    return voice_audio_response(
        request, voice_of(require_workspace(request), cast(User, request.user), voice_id)
    )


@login_required
@require_safe
def job_events_page(request: HttpRequest, job_id: uuid.UUID) -> HttpResponseBase:
    return job_events_response(request, followed_job_of(require_workspace(request), job_id))


@login_required
@require_safe
def job_stream_page(request: HttpRequest, job_id: uuid.UUID) -> HttpResponseBase:
    """As the page plays it, which says in words that AI speaks."""
    job = followed_job_of(require_workspace(request), job_id)
    return job_stream_response(request, job, format_code=request.GET.get("format"), labelled=False)
