"""Holds that outlived their job."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from billing.models import Hold, HoldState
from billing.services.holds import release


def release_stale_holds(*, ended_job_ids: QuerySet[Any, Any]) -> int:
    """Release every open hold whose job is among `ended_job_ids` (a query of ids); returns how many."""
    stale = list(
        Hold.objects.filter(state=HoldState.OPEN, job_id__in=ended_job_ids).values_list("job_id", flat=True)[
            :100
        ]
    )
    for job_id in stale:
        with transaction.atomic():
            release(job_id=job_id)
    return len(stale)
