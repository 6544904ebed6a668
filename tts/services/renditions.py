"""A job's audio in the form that is wanted: format, rate, loudness, and what is heard of the label.

The master (24 kHz mono 16-bit WAV with its implicit label) is stored when a job ends. Every other form is made of it
when it is first asked for, in a child process, and kept with the job: most are never asked for, and a file of the usual
length takes less than a second. Nothing of it is charged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import tempfile
import threading
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import redis
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from portal.lib.queues import redis_connection
from tts import storage
from tts.audio import explicit
from tts.audio.aigc import read_chunk_label
from tts.audio.formats import DEFAULT_FORMAT, FORMATS, MASTER_SAMPLE_RATE_HZ, AudioFormat
from tts.audio.rendering import RenderFailed, RenderSpec, render_file
from tts.errors import AudioBeingMade, AudioNotMade, AudioNotReady, FormatUnknown, SampleRateNotSupported
from tts.models import Rendition, SynthesisJob
from tts.services.labels import label_of, rule_of

logger = logging.getLogger(__name__)

# Longer speech is made in a thread of its own, and whoever asked asks again: at most a minute of processor time for
# an hour of speech, and a request is not to wait for that.
WAITED_FOR_MS: Final = 180_000
# A browser that asks twice, or two pages: the second waits for the first one's file.
WAIT_FOR_PLACE_S: Final = 3.0
WAIT_FOR_ANOTHER_S: Final = 8.0
LOOK_AGAIN_S: Final = 0.2
# As many forms of one job are kept; the first one made goes first.
KEPT_PER_JOB: Final = 12
# A process that died while it made a file gives way after so long.
MAKING_SECONDS: Final = 900

_places = threading.BoundedSemaphore(settings.VOICEPOOL["RENDERINGS_PER_PROCESS"])


@dataclass(frozen=True)
class Form:
    """The wanted form. `loudness_lufs` None: as the engine left it."""

    format: str = DEFAULT_FORMAT
    sample_rate_hz: int = MASTER_SAMPLE_RATE_HZ
    loudness_lufs: float | None = None
    explicit_label: str = explicit.NONE
    label_position: str = explicit.AT_START

    @property
    def audio_format(self) -> AudioFormat:
        return FORMATS[self.format]


MASTER: Final = Form()


@dataclass(frozen=True)
class AudioFile:
    """A stored file that may be delivered. `label`: what its container says, or for PCM is to be said beside it."""

    key: str
    audio_format: AudioFormat
    label: str


def form_of(
    job: SynthesisJob,
    *,
    format_code: str | None = None,
    sample_rate_hz: int | None = None,
    labelled: bool = True,
) -> Form:
    """The form that the job is delivered in: as it was ordered, or in another format or rate.

    `labelled` False: without what is heard of the label, for a page that says it in words.

    Raises:
        FormatUnknown, SampleRateNotSupported.
    """
    code = format_code or job.response_format
    if sample_rate_hz is None and code == job.response_format:
        sample_rate_hz = job.sample_rate_hz
    rule = rule_of(job.workspace)
    kind = rule.kind if labelled else explicit.NONE
    return Form(
        format=code,
        sample_rate_hz=checked_rate(code, sample_rate_hz),
        loudness_lufs=job.loudness_lufs,
        explicit_label=kind,
        label_position=rule.position if kind != explicit.NONE else explicit.AT_START,
    )


def checked_rate(format_code: str, sample_rate_hz: int | None) -> int:
    """The rate to deliver at. Raises FormatUnknown, SampleRateNotSupported."""
    audio_format = FORMATS.get(format_code)
    if audio_format is None:
        raise FormatUnknown(formats=", ".join(FORMATS))
    rate = audio_format.default_sample_rate_hz if sample_rate_hz is None else sample_rate_hz
    if rate not in audio_format.sample_rates_hz:
        rates = ", ".join(str(each) for each in audio_format.sample_rates_hz)
        raise SampleRateNotSupported(format=audio_format.name, rates=rates)
    return rate


def audio_file(job: SynthesisJob, form: Form) -> AudioFile:
    """The job's audio in this form, made now where it was not yet asked for.

    Raises:
        AudioNotReady: there is no audio. AudioBeingMade: it takes longer, or too many are being made; ask again.
        AudioNotMade: it could not be made, or its label could not be read back.
    """
    if not job.audio_key:
        raise AudioNotReady
    label = label_of(job.pk)
    if form == MASTER and _stored_label(job.audio_key) is not None:
        return AudioFile(job.audio_key, form.audio_format, label)
    variant = _variant(job, form)
    made = _made(job.pk, variant) or _make(job, form, variant)
    return AudioFile(made.audio_key, form.audio_format, made.implicit_label)


def _stored_label(key: str) -> str | None:
    """The label of a stored WAV file; None in files of earlier versions. Raises AudioNotReady where it is gone."""
    try:
        with storage.open_audio(key) as file:
            return read_chunk_label(file)
    except FileNotFoundError as error:
        raise AudioNotReady from error


def _variant(job: SynthesisJob, form: Form) -> str:
    shaped_by = {"master": job.audio_key, "label": label_of(job.pk), **asdict(form)}
    return hashlib.sha256(json.dumps(shaped_by, sort_keys=True).encode()).hexdigest()


def _made(job_id: uuid.UUID, variant: str) -> Rendition | None:
    found = Rendition.objects.filter(job_id=job_id, variant=variant).first()
    if found is not None and not storage.exists(found.audio_key):
        Rendition.objects.filter(pk=found.pk).delete()
        return None
    return found


def _make(job: SynthesisJob, form: Form, variant: str) -> Rendition:
    if not _places.acquire(timeout=WAIT_FOR_PLACE_S):
        raise AudioBeingMade
    if not _claim(job.pk, variant):
        _places.release()
        return _made_by_another(job.pk, variant)
    if job.audio_ms <= WAITED_FOR_MS:
        return _make_claimed(job, form, variant)
    threading.Thread(
        target=_make_aside, args=(job, form, variant), name=f"rendition-{job.pk}", daemon=True
    ).start()
    raise AudioBeingMade


def _made_by_another(job_id: uuid.UUID, variant: str) -> Rendition:
    """What another thread or process is making right now. Raises AudioBeingMade when it takes long."""
    until = time.monotonic() + WAIT_FOR_ANOTHER_S
    while time.monotonic() < until:
        time.sleep(LOOK_AGAIN_S)
        if found := _made(job_id, variant):
            return found
    raise AudioBeingMade


def _make_aside(job: SynthesisJob, form: Form, variant: str) -> None:
    """Body of a thread. What went wrong stands in the log; whoever asks again starts it again."""
    try:
        with contextlib.suppress(AudioNotMade, AudioNotReady):
            _make_claimed(job, form, variant)
    finally:
        connection.close()


def _make_claimed(job: SynthesisJob, form: Form, variant: str) -> Rendition:
    try:
        with (
            tempfile.TemporaryDirectory(prefix="rendition-") as folder,
            contextlib.ExitStack() as opened,
        ):
            spec = RenderSpec(
                source=opened.enter_context(storage.local_file(job.audio_key)),
                target=str(Path(folder) / f"audio.{form.audio_format.extension}"),
                label=label_of(job.pk),
                spoken_label=_spoken_label(job, form, opened),
                **asdict(form),
            )
            return _render_and_keep(job, form, variant, spec)
    except FileNotFoundError as error:
        raise AudioNotReady from error
    finally:
        _places.release()
        _give_up_claim(job.pk, variant)


def _spoken_label(job: SynthesisJob, form: Form, opened: contextlib.ExitStack) -> str:
    """The words' file; empty while nobody has spoken them yet: then the tone stands for them."""
    if form.explicit_label != explicit.SPOKEN:
        return ""
    key = storage.spoken_label_key(label_language(job))
    return opened.enter_context(storage.local_file(key)) if storage.exists(key) else ""


def label_language(job: SynthesisJob) -> str:
    """The language that the label is spoken in: Mandarin or English, as the speech is."""
    if job.language:
        return "zh" if job.language == "zh" else "en"
    # Asked of the database: the text may be a book, and whoever hears the job does not need it.
    is_chinese = SynthesisJob.objects.filter(pk=job.pk, text__regex="[\u4e00-\u9fff]").exists()
    return "zh" if is_chinese else "en"


def _render_and_keep(job: SynthesisJob, form: Form, variant: str, spec: RenderSpec) -> Rendition:
    try:
        rendered = render_file(spec)
    except RenderFailed as error:
        logger.error(
            "rendition_failed", extra={"job_id": job.pk, "format": form.format, "reason": str(error)}
        )
        raise AudioNotMade from error
    logger.info(
        "rendition_made",
        extra={
            "job_id": job.pk,
            "format": form.format,
            "size_bytes": rendered.size_bytes,
            "cpu_ms": rendered.cpu_ms,
            "peak_memory_bytes": rendered.peak_memory_bytes,
        },
    )
    key = storage.rendition_key(
        workspace_id=job.workspace_id, job_id=job.pk, extension=form.audio_format.extension
    )
    storage.save_file(key, spec.target)
    return _publish(
        Rendition(
            job_id=job.pk,
            workspace_id=job.workspace_id,
            variant=variant,
            **asdict(form),
            implicit_label=spec.label,
            verified_at=Now(),
            audio_key=key,
            size_bytes=rendered.size_bytes,
            sha256=rendered.sha256,
        )
    )


def _publish(made: Rendition) -> Rendition:
    """Name the file by a row. The job's lock: a deletion sees the row, or this sees the deletion."""
    try:
        with transaction.atomic():
            locked = SynthesisJob.objects.select_for_update(no_key=True).only("deleted_at")
            job = locked.get(pk=made.job_id)
            if job.deleted_at is not None:
                raise AudioNotReady
            made.save(force_insert=True)
            spare = list(Rendition.objects.filter(job_id=made.job_id).order_by("-pk")[KEPT_PER_JOB:])
            Rendition.objects.filter(pk__in=[each.pk for each in spare]).delete()
    except IntegrityError:
        # Its claim ran out, and another process was faster.
        storage.delete(made.audio_key)
        return Rendition.objects.get(job_id=made.job_id, variant=made.variant)
    except BaseException:
        storage.delete(made.audio_key)
        raise
    for each in spare:
        storage.delete(each.audio_key)
    return made


def _claim_key(job_id: uuid.UUID, variant: str) -> str:
    return f"rendition:{job_id}:{variant}"


def _claim(job_id: uuid.UUID, variant: str) -> bool:
    """Whether this process is to make it. Without Redis everybody may: the row is unique all the same."""
    try:
        return bool(redis_connection().set(_claim_key(job_id, variant), b"1", nx=True, ex=MAKING_SECONDS))
    except redis.RedisError:
        return True


def _give_up_claim(job_id: uuid.UUID, variant: str) -> None:
    with contextlib.suppress(redis.RedisError):
        redis_connection().delete(_claim_key(job_id, variant))
