"""Speech that was made and charged: the hold, the usage record, the capture and the release of a job of one attempt."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.db import transaction

from billing.models import Plan, PlanVersion, Subscription, UsageRecord
from billing.services.holds import capture, place_hold, release

VOICE_ID = uuid.UUID(int=7)


def speak(
    workspace_id: uuid.UUID,
    amount_micros: int,
    *,
    finished_at: datetime,
    device_class: str = "h200",
    device_name: str = "GPU-1",
    hold_micros: int | None = None,
) -> uuid.UUID:
    """Charge a job for speech that ended then, as a settlement does; returns the job's id."""
    job_id, attempt_id = uuid.uuid4(), uuid.uuid4()
    with transaction.atomic():
        place_hold(workspace_id=workspace_id, job_id=job_id, amount_micros=hold_micros or amount_micros)
        charged = capture(job_id=job_id, attempt_id=attempt_id, amount_micros=amount_micros)
        UsageRecord.objects.create(
            attempt_id=attempt_id,
            job_id=job_id,
            workspace_id=workspace_id,
            voice_id=VOICE_ID,
            device_name=device_name,
            device_class=device_class,
            job_class="standard",
            billable=True,
            gpu_ms=1_500,
            audio_ms=4_000,
            characters=20,
            gpu_second_micros=8_000,
            rated_micros=amount_micros,
            charged_micros=charged,
            started_at=finished_at - timedelta(seconds=2),
            finished_at=finished_at,
        )
        release(job_id=job_id)
    return job_id


def plan(fee_micros: int, *, included_gpu_seconds: int = 0, currency: str = "CNY") -> PlanVersion:
    """A plan of its own with one version."""
    name = f"plan-{uuid.uuid4().hex[:12]}"
    return PlanVersion.objects.create(
        plan=Plan.objects.create(code=name, name=name),
        number=1,
        currency=currency,
        monthly_fee_micros=fee_micros,
        included_gpu_seconds=included_gpu_seconds,
        effective_at=datetime.fromisoformat("2020-01-01T00:00:00Z"),
    )


def subscribed(
    workspace_id: uuid.UUID, version: PlanVersion, starts_at: datetime, ends_at: datetime | None = None
) -> Subscription:
    """That a workspace was on a plan, whatever the time is now."""
    return Subscription.objects.create(
        workspace_id=workspace_id, plan_version=version, starts_at=starts_at, ends_at=ends_at
    )
