"""What the pool holds at this moment, for Prometheus."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection
from django.db.models import Count, Sum

from billing.models import Hold, HoldState
from tts.models import Device
from tts.selectors.devices import ready_devices
from tts.states import DeviceState, JobClass

_QUEUES = """
SELECT c.job_class,
    COALESCE(SUM(q.queued), 0)::bigint, COALESCE(SUM(q.queued_estimate_gpu_ms), 0)::bigint,
    COALESCE(SUM(q.running), 0)::bigint,
    COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - (
        SELECT s.created_at FROM tts_segment s
        WHERE s.job_class = c.job_class AND s.state = 'queued' ORDER BY s.id LIMIT 1)), 0)::float8
FROM unnest(%s::text[]) AS c(job_class)
LEFT JOIN tts_fairsharequeue q ON q.job_class = c.job_class AND (q.queued > 0 OR q.running > 0)
GROUP BY c.job_class
"""


@dataclass(frozen=True)
class QueueGauges:
    """Of one class: segments and the device time they are estimated to need, and how long the oldest has waited."""

    job_class: str
    queued: int
    queued_gpu_ms: int
    running: int
    oldest_wait_s: float


def queue_gauges() -> list[QueueGauges]:
    """Every class, also an empty one. One query on the counters that the database keeps."""
    with connection.cursor() as cursor:
        cursor.execute(_QUEUES, [[job_class.value for job_class in JobClass]])
        return [QueueGauges(*row) for row in cursor.fetchall()]


def devices_by_state() -> dict[str, int]:
    """How many devices are in each state, also in states that none is in."""
    counted = dict(Device.objects.order_by().values_list("state").annotate(count=Count("pk")))
    return {state.value: counted.get(state.value, 0) for state in DeviceState}


def ready_device_ids() -> set[int]:
    return set(ready_devices().values_list("pk", flat=True))


def open_holds() -> tuple[int, int]:
    """How many holds are open, and their micros together."""
    found = Hold.objects.filter(state=HoldState.OPEN).aggregate(
        count=Count("pk"), amount=Sum("amount_micros")
    )
    return found["count"], found["amount"] or 0
