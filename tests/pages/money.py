"""Usage as rows, for the pages that add it up."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from billing.models import UsageRecord
from billing.periods import local_day
from billing.selectors.balances import time_zone_of
from portal.lib.clock import now

VOICE = uuid.uuid5(uuid.NAMESPACE_URL, "voice")


def used(workspace_id: uuid.UUID, day: date, **fields: Any) -> UsageRecord:
    """A record that ended at noon of that day, by UTC."""
    at = datetime.combine(day, time(12), tzinfo=UTC)
    billable = fields.get("billable", True)
    charged = fields.get("charged_micros", 1_000 if billable else 0)
    return UsageRecord.objects.create(
        **{
            "attempt_id": uuid.uuid4(),
            "job_id": uuid.uuid4(),
            "workspace_id": workspace_id,
            "voice_id": VOICE,
            "device_name": "cpu:0@here",
            "device_class": "cpu",
            "job_class": "standard",
            "billable": True,
            "gpu_ms": 100,
            "audio_ms": 1_000,
            "characters": 10,
            "charged_micros": charged,
            "rated_micros": charged,
            "started_at": at - timedelta(seconds=1),
            "finished_at": at,
            **fields,
        }
    )


def today_of(workspace_id: uuid.UUID) -> date:
    return local_day(now(), time_zone_of(workspace_id))
