"""Rows for tests: people, workspaces, voices, and jobs in every state, whole enough to be shown and heard."""

from __future__ import annotations

import hashlib
import math
import struct
import uuid
from datetime import timedelta
from functools import cache
from typing import Any

from django.utils import timezone

from accounts.models import Membership, Role, User, Workspace, WorkspaceKind
from accounts.services.consent import record_consent
from billing.services.prices import ensure_first_price
from portal.workflows import open_account, welcome
from tts import storage
from tts.audio.aigc import label_chunk
from tts.audio.quality import QualityFigures, QualityReport
from tts.audio.wav import wav_file
from tts.models import Attempt, Device, DeviceKind, Segment, SynthesisJob, Voice, VoiceKind, VoiceVersion
from tts.selectors.voice_versions import RECORDED
from tts.services.labels import label_of
from tts.services.submit import JobRequest, submit_job
from tts.services.voices import ensure_preset_voices
from tts.states import AttemptState, DeviceState, JobState, SegmentState, VoiceState

SAMPLE_RATE_HZ = 24_000
PASSWORD = "correct horse battery"
GOOD_FIGURES = QualityFigures(
    duration_s=4.0,
    speech_s=3.6,
    snr_db=40.0,
    clipping_ratio=0.0,
    silence_ratio=0.1,
    bandwidth_hz=11_000,
    channel_count=1,
    source_sample_rate_hz=48_000,
    rms_dbfs=-22.0,
    leading_silence_s=0.1,
    channels_differ=False,
    damaged=False,
)


def make_user(name: str = "somebody", **fields: Any) -> User:
    """A person with a personal workspace that has its welcome credit."""
    ensure_first_price()
    ensure_preset_voices()
    user = User.objects.create_user(f"{name}@example.com", PASSWORD, **fields)
    open_account(user=user)
    welcome(user=user)
    return user


def personal_workspace(user: User) -> Workspace:
    return Workspace.objects.get(memberships__user=user, kind=WorkspaceKind.PERSONAL)


def make_team(owner: User, *members: User, name: str = "Team") -> Workspace:
    workspace = Workspace.objects.create(name=name, kind=WorkspaceKind.TEAM)
    Membership.objects.create(workspace=workspace, user=owner, role=Role.OWNER)
    for member in members:
        Membership.objects.create(workspace=workspace, user=member, role=Role.MEMBER)
    return workspace


@cache
def tone(seconds: float = 1.0, *, frequency_hz: float = 220.0) -> bytes:
    """PCM of a quiet tone: 24 kHz, mono, 16 bit."""
    count = round(seconds * SAMPLE_RATE_HZ)
    step = 2 * math.pi * frequency_hz / SAMPLE_RATE_HZ
    return struct.pack(f"<{count}h", *(round(3000 * math.sin(step * index)) for index in range(count)))


def make_voice(
    workspace: Workspace,
    user: User,
    *,
    name: str = "A voice",
    transcript: str = "",
    state: str = VoiceState.READY,
) -> Voice:
    """A cloned voice with its clip in storage and its consent."""
    clip = wav_file(tone(4.0), sample_rate_hz=SAMPLE_RATE_HZ)
    voice = Voice(
        workspace=workspace,
        created_by=user,
        kind=VoiceKind.CLONE,
        state=state,
        name=name,
        language="en",
        transcript=transcript,
        clip_sha256=hashlib.sha256(clip).hexdigest(),
        clip_ms=4000,
        peaks=[10, 20, 30],
        quality=QualityReport.from_figures(GOOD_FIGURES).as_dict(),
    )
    voice.clip_key = storage.voice_clip_key(workspace_id=workspace.pk, voice_id=voice.pk)
    storage.save(voice.clip_key, clip)
    voice.consent = record_consent(
        workspace=workspace,
        user=user,
        voice_id=voice.pk,
        clip_sha256=voice.clip_sha256,
        locale="en",
        address="127.0.0.1",
    )
    voice.save()
    keep_version(voice)
    return voice


def keep_version(voice: Voice) -> VoiceVersion:
    """The row of what is the voice's current recording."""
    recorded = {name: getattr(voice, name) for name in RECORDED}
    return VoiceVersion.objects.create(
        voice=voice, number=voice.version, created_by=voice.created_by, **recorded
    )


def make_job(
    workspace: Workspace, user: User, voice: Voice, *, text: str = "Hello, this is a test.", **options: Any
) -> SynthesisJob:
    """A job that waits, submitted like a customer's."""
    return submit_job(
        workspace=workspace,
        user=user,
        api_key=None,
        request=JobRequest(voice_id=voice.pk, text=text, **options),
        idempotency_key=None,
        client_address="127.0.0.1",
        request_id="test",
    ).job


def make_device(name: str = "cpu:0@test") -> Device:
    """A device that nobody runs: it takes no work."""
    device, _ = Device.objects.get_or_create(
        name=name,
        defaults={
            "node_name": "test",
            "kind": DeviceKind.CPU,
            "state": DeviceState.STOPPED,
            "engine": "simulated",
        },
    )
    return device


def finish_job(job: SynthesisJob, *, state: str = JobState.SUCCEEDED, seconds: float = 1.0) -> bytes:
    """Bring a waiting job to its end as rows and files would stand then, and return its audio file.

    Moves no money: tests of settling use the real services.
    """
    pcm = tone(seconds)
    audio = wav_file(pcm, sample_rate_hz=SAMPLE_RATE_HZ, chunk=label_chunk(label_of(job.pk)))
    now = timezone.now()
    spoken = state == JobState.SUCCEEDED
    for segment in Segment.objects.filter(job=job):
        attempt_id = uuid.uuid4()
        key = storage.attempt_audio_key(workspace_id=job.workspace_id, job_id=job.pk, attempt_id=attempt_id)
        if spoken:
            storage.save(key, audio)
        Attempt.objects.create(
            id=attempt_id,
            segment=segment,
            job=job,
            workspace_id=job.workspace_id,
            attempt_number=1,
            device=make_device(),
            slot_number=0,
            epoch=1,
            state=AttemptState.SUCCEEDED if spoken else AttemptState.FAILED,
            leased_until=now,
            bound_at=now - timedelta(seconds=2),
            started_at=now - timedelta(seconds=1),
            finished_at=now,
            gpu_ms=100,
            audio_ms=round(1000 * seconds) if spoken else 0,
            charged_micros=50 if spoken else 0,
            audio_key=key if spoken else "",
            error_code="" if spoken else "engine_failed",
        )
        Segment.objects.filter(pk=segment.pk).update(
            state=SegmentState.SUCCEEDED if spoken else SegmentState.FAILED,
            attempt_number=1,
            audio_key=key if spoken else "",
            audio_ms=round(1000 * seconds) if spoken else 0,
        )
    job_key = storage.job_audio_key(workspace_id=job.workspace_id, job_id=job.pk) if spoken else ""
    if spoken:
        storage.save(job_key, audio)
    SynthesisJob.objects.filter(pk=job.pk).update(
        state=state,
        segments_done=job.segment_count if spoken else 0,
        audio_key=job_key,
        audio_ms=round(1000 * seconds) if spoken else 0,
        gpu_ms=100,
        charged_micros=50 if spoken else 0,
        started_at=now - timedelta(seconds=1),
        first_audio_at=now if spoken else None,
        finished_at=now,
        error_code="" if spoken else "engine_failed",
    )
    job.refresh_from_db()
    return audio
