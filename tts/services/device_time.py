"""Writing down where a device's time goes."""

from __future__ import annotations

from django.db import connection

from tts.time_account import Spent

_ADD = """
INSERT INTO tts_devicehour AS d (device_id, hour, up_ms, worked_ms, canary_ms)
SELECT %(device)s, date_trunc('hour', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC', %(up_ms)s, %(worked_ms)s,
    %(canary_ms)s
WHERE EXISTS (SELECT 1 FROM tts_device WHERE id = %(device)s)
ON CONFLICT ON CONSTRAINT device_hour_once DO UPDATE SET
    up_ms = d.up_ms + excluded.up_ms, worked_ms = d.worked_ms + excluded.worked_ms,
    canary_ms = d.canary_ms + excluded.canary_ms
"""


def add_device_time(*, device_id: int, spent: Spent) -> None:
    """Add to the device's current hour. Nothing for a device that is gone."""
    if spent == Spent(0, 0, 0):
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _ADD,
            {
                "device": device_id,
                "up_ms": spent.up_ms,
                "worked_ms": spent.worked_ms,
                "canary_ms": spent.canary_ms,
            },
        )
