"""A device's time account: what of its time was billed, unbilled, spent on test sentences, and idle."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db import connection


@dataclass(frozen=True)
class DeviceTime:
    """Milliseconds of one device. Billed, unbilled, overhead, canary and idle are its up time, to the millisecond.

    `overhead_ms` is what a worker's clock counts around the engine's own measure, and the work of attempts that were
    lost with their worker before they could be recorded.
    """

    device_name: str
    up_ms: int
    billed_ms: int
    unbilled_ms: int
    canary_ms: int
    idle_ms: int
    overhead_ms: int


_ACCOUNTS = """
WITH worked AS (
    SELECT device_id, SUM(up_ms) AS up, SUM(worked_ms) AS worked, SUM(canary_ms) AS canary
    FROM tts_devicehour WHERE hour >= %(start)s AND hour < %(end)s GROUP BY device_id
), used AS (
    SELECT device_name, SUM(gpu_ms) FILTER (WHERE billable) AS billed,
        SUM(gpu_ms) FILTER (WHERE NOT billable) AS unbilled
    FROM billing_usagerecord WHERE finished_at >= %(start)s AND finished_at < %(end)s GROUP BY device_name
)
SELECT d.name, COALESCE(worked.up, 0), COALESCE(worked.worked, 0), COALESCE(worked.canary, 0), COALESCE(used.billed, 0),
    COALESCE(used.unbilled, 0)
FROM tts_device d LEFT JOIN worked ON worked.device_id = d.id LEFT JOIN used ON used.device_name = d.name
WHERE (worked.device_id IS NOT NULL OR used.device_name IS NOT NULL)
    AND (%(device)s::bigint IS NULL OR d.id = %(device)s)
ORDER BY d.name
"""


def device_times(*, day: date | None, device_id: int | None = None) -> list[DeviceTime]:
    """The account of every device that was up on a day of UTC (None: ever), or of one. One query."""
    start = datetime.min.replace(tzinfo=UTC) if day is None else datetime.combine(day, time(0), tzinfo=UTC)
    end = datetime.max.replace(tzinfo=UTC) if day is None else start + timedelta(days=1)
    with connection.cursor() as cursor:
        cursor.execute(_ACCOUNTS, {"start": start, "end": end, "device": device_id})
        rows = cursor.fetchall()
    return [
        DeviceTime(
            device_name=name,
            up_ms=int(up + canary),
            billed_ms=int(billed),
            unbilled_ms=int(unbilled),
            canary_ms=int(canary),
            idle_ms=int(up - worked),
            overhead_ms=int(worked - billed - unbilled),
        )
        for name, up, worked, canary, billed, unbilled in rows
    ]
