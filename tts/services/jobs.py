"""What a customer does to a job after submitting it."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from accounts.models import Workspace
from billing.services import holds
from tts import storage
from tts.errors import JobAlreadyEnded, JobNotFound
from tts.models import Attempt, Rendition, Segment, SynthesisJob
from tts.services import wakeups
from tts.services.endings import ERASED, end_job
from tts.services.submit import JobRequest
from tts.states import JOB_ENDED, AttemptState, JobState, SegmentState


def cancel_job(*, workspace: Workspace, job_id: uuid.UUID) -> SynthesisJob:
    """Stop a job, waiting or running, and return it. What is being spoken ends within a chunk and is paid so far.

    Raises JobNotFound for another workspace's job, JobAlreadyEnded for one that is over.
    """
    with transaction.atomic():
        found = SynthesisJob.objects.filter(pk=job_id, workspace=workspace, deleted_at__isnull=True)
        if not found.exists():
            raise JobNotFound
        holds.lock_account(workspace_id=workspace.pk)
        job = SynthesisJob.objects.select_for_update(no_key=True).get(pk=job_id)
        if job.state in JOB_ENDED:
            raise JobAlreadyEnded
        _request_cancel(job)
    wakeups.wake_job(job_id=job_id)
    job.refresh_from_db()
    return job


def _request_cancel(job: SynthesisJob) -> None:
    """Close all that was not begun; what runs is left to its worker, which settles it. Locks are held by the caller."""
    SynthesisJob.objects.filter(pk=job.pk, cancel_requested_at__isnull=True).update(cancel_requested_at=Now())
    waiting = Q(state=SegmentState.QUEUED) | Q(state=SegmentState.BOUND)
    Segment.objects.filter(waiting, job=job).update(state=SegmentState.CANCELED)
    Attempt.objects.filter(job=job, state=AttemptState.BOUND).update(
        state=AttemptState.CANCELED, finished_at=Now()
    )
    if Segment.objects.filter(job=job, state=SegmentState.RUNNING).exists():
        transaction.on_commit(lambda: wakeups.flag_cancel(job_id=job.pk), robust=True)
    else:
        end_job(job_id=job.pk, state=JobState.CANCELED)


def delete_job(*, workspace: Workspace, job_id: uuid.UUID) -> None:
    """Remove a job from the customer's sight, its text and its audio for good; a live one is canceled first.

    The row stays, without text, for the receipt. Raises JobNotFound.
    """
    with transaction.atomic():
        if not SynthesisJob.objects.filter(pk=job_id, workspace=workspace, deleted_at__isnull=True).exists():
            raise JobNotFound
        holds.lock_account(workspace_id=workspace.pk)
        job = SynthesisJob.objects.select_for_update(no_key=True).get(pk=job_id)
        if job.state not in JOB_ENDED:
            _request_cancel(job)
        SynthesisJob.objects.filter(pk=job_id).update(
            deleted_at=Now(), text="", instruction_text="", cast={}, chapters=[], peaks=[]
        )
        Segment.objects.filter(job_id=job_id).exclude(state=SegmentState.RUNNING).update(**ERASED)
        transaction.on_commit(lambda: delete_job_files(job_id=job_id), robust=True)
    wakeups.wake_job(job_id=job_id)


def delete_job_files(*, job_id: uuid.UUID) -> None:
    """Remove every audio file of a job. What a worker still writes is removed by the sweep, which calls this again."""
    job = SynthesisJob.objects.filter(pk=job_id).only("audio_key", "workspace_id").first()
    keys = set(
        Attempt.objects.filter(job_id=job_id).exclude(audio_key="").values_list("audio_key", flat=True)
    )
    if job is not None:
        keys |= {job.audio_key, *storage.stored_audio_keys(workspace_id=job.workspace_id, job_id=job_id)}
    for key in keys:
        storage.delete(key)
    Rendition.objects.filter(job_id=job_id).delete()
    Attempt.objects.filter(job_id=job_id).update(audio_key="")
    Segment.objects.filter(job_id=job_id).exclude(state=SegmentState.RUNNING).update(audio_key="", **ERASED)
    SynthesisJob.objects.filter(pk=job_id).update(audio_key="")


def repeat_request(job: SynthesisJob) -> JobRequest:
    """The same request again, with a new seed."""
    return JobRequest(
        voice_id=job.voice_id,
        text=job.text,
        language=job.language,
        job_class=job.job_class,
        mode=job.mode,
        instruction=job.instruction,
        instruction_text=job.instruction_text,
        speed=job.speed,
        response_format=job.response_format,
        sample_rate_hz=job.sample_rate_hz,
        loudness_lufs=job.loudness_lufs,
        cast={name: uuid.UUID(voice_id) for name, voice_id in job.cast.items()},
    )
