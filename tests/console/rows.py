"""Rows of a pool at chosen moments, so that what the console computes from them is known to the millisecond."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from accounts.models import User, Workspace
from billing.models import PriceVersion
from billing.services.prices import ensure_first_price
from tts.models import Attempt, Device, DeviceKind, DeviceSlot, Segment, SynthesisJob, Voice, VoiceKind
from tts.states import AttemptState, DeviceState, JobClass, JobState, SegmentState

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def ago(**duration: float) -> datetime:
    """So long before NOW."""
    return NOW - timedelta(**duration)


def ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def workspace(name: str = "Acme") -> Workspace:
    return Workspace.objects.create(name=name)


def device(name: str = "GPU-1", *, slots: int = 1, ready: bool = True, **fields: Any) -> Device:
    """A device whose agent was heard of a second ago."""
    made = Device.objects.create(
        **{
            "name": name,
            "node_name": "node-1",
            "kind": DeviceKind.GPU,
            "model_name": "Test GPU",
            "engine": "simulated",
            "state": DeviceState.READY,
            "slots": slots,
            "epoch": 3,
            "heartbeat_at": ago(seconds=1),
            **fields,
        }
    )
    for number in range(slots):
        DeviceSlot.objects.create(device=made, number=number, ready=ready, worker_name=f"{name}-{number}")
    return made


def job(
    *, created_at: datetime, owner: Workspace | None = None, segments: int = 1, **fields: Any
) -> SynthesisJob:
    """A job with its segments, all in the state of `segment_state` (queued)."""
    ensure_first_price()
    owner = owner or workspace()
    segment_state = fields.pop("segment_state", SegmentState.QUEUED)
    voice, _ = Voice.objects.get_or_create(
        kind=VoiceKind.PRESET, preset_key="console-test", defaults={"name": "Preset"}
    )
    made = SynthesisJob.objects.create(
        **{
            "workspace": owner,
            "voice": voice,
            "text": "What the customer wrote.",
            "seed": 1,
            "characters": 24,
            "segment_count": segments,
            "request_sha256": "0" * 64,
            "price_version": PriceVersion.objects.get(number=1),
            "estimate_gpu_ms": 1_000 * segments,
            "held_gpu_ms": 2_000 * segments,
            "held_micros": 24_000 * segments,
            **fields,
        }
    )
    # The columns are stamped by the database's writer; the moment under test is set after.
    SynthesisJob.objects.filter(pk=made.pk).update(created_at=created_at)
    for index in range(segments):
        segment = Segment.objects.create(
            job=made,
            workspace=owner,
            job_class=made.job_class,
            index=index,
            text="What the customer wrote.",
            characters=24,
            state=segment_state,
            estimate_gpu_ms=1_000,
            held_gpu_ms=2_000,
        )
        Segment.objects.filter(pk=segment.pk).update(created_at=created_at)
    made.refresh_from_db()
    return made


def finished_job(
    *,
    created_at: datetime,
    wait_ms: int,
    first_audio_ms: int,
    total_ms: int,
    job_class: JobClass = JobClass.INTERACTIVE,
    **fields: Any,
) -> SynthesisJob:
    """A job that succeeded, by its times from its creation."""
    return job(
        created_at=created_at,
        job_class=job_class,
        state=JobState.SUCCEEDED,
        segment_state=SegmentState.SUCCEEDED,
        started_at=created_at + ms(wait_ms),
        first_audio_at=created_at + ms(first_audio_ms),
        finished_at=created_at + ms(total_ms),
        **fields,
    )


def attempt(
    of: SynthesisJob, on: Device, *, index: int = 0, slot: int | None = None, **fields: Any
) -> Attempt:
    """An attempt of the job's segment; `slot` puts it into that slot's hands."""
    segment = Segment.objects.get(job=of, index=index)
    made = Attempt.objects.create(
        **{
            "segment": segment,
            "job": of,
            "workspace_id": of.workspace_id,
            "attempt_number": 1,
            "device": on,
            "slot_number": slot or 0,
            "epoch": on.epoch,
            "state": AttemptState.RUNNING,
            "leased_until": NOW + timedelta(seconds=10),
            "bound_at": ago(seconds=2),
            **fields,
        }
    )
    if slot is not None:
        DeviceSlot.objects.filter(device=on, number=slot).update(attempt_id=made.pk)
    return made


def somebody(email: str, **fields: Any) -> User:
    return User.objects.create_user(email, uuid.uuid4().hex, **fields)
