"""How long work waits for a device: lately, and what a new request has to expect now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import connection

from tts.states import DEVICE_HEARTBEAT_SECONDS, JobClass

LATELY: Final = timedelta(minutes=15)
# A bound attempt starts within seconds: what started lately was bound a little before at most.
BIND_MARGIN: Final = timedelta(minutes=1)
# Before anything was spoken.
UNKNOWN_SEGMENT_MS: Final = 2_000

_RECENT = """
SELECT job_class, COUNT(*),
    percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY EXTRACT(EPOCH FROM started_at - created_at) * 1000)
FROM (
    SELECT DISTINCT j.id, j.job_class, j.created_at, j.started_at
    FROM tts_attempt a JOIN tts_synthesisjob j ON j.id = a.job_id
    WHERE a.bound_at > now() - %(margin)s AND j.started_at > now() - %(lately)s
) AS started
GROUP BY job_class
"""
_SLOTS = """
SELECT COUNT(*), COUNT(*) FILTER (WHERE slot.attempt_id IS NULL)
FROM tts_deviceslot slot JOIN tts_device d ON d.id = slot.device_id
WHERE slot.ready AND d.state IN ('ready', 'busy') AND d.heartbeat_at >= now() - make_interval(secs => %s)
"""
# How long a segment holds a slot, of the latest ones of the last hour.
_SEGMENT_MS = """
SELECT AVG(EXTRACT(EPOCH FROM finished_at - bound_at) * 1000)::float8
FROM (
    SELECT bound_at, finished_at FROM tts_attempt
    WHERE bound_at > now() - interval '1 hour' AND state = 'succeeded' ORDER BY bound_at DESC LIMIT 60
) AS latest
"""
_CLASSES = """
SELECT c.job_class, c.weight, EXISTS (
    SELECT 1 FROM tts_fairsharequeue q
    WHERE q.job_class = c.job_class AND q.queued > 0 AND q.workspace_running < q.running_limit)
FROM tts_fairshareclass c
"""


@dataclass(frozen=True)
class RecentWait:
    """Of the jobs that started in the last 15 minutes; None where there were none."""

    job_class: str
    jobs: int
    p50_ms: int | None
    p95_ms: int | None


def recent_waits() -> list[RecentWait]:
    """From the submission of a job to its start, for every class, the most urgent first. One query."""
    with connection.cursor() as cursor:
        span: dict[str, Any] = {"lately": LATELY, "margin": LATELY + BIND_MARGIN}
        cursor.execute(_RECENT, span)
        found = {row[0]: row for row in cursor.fetchall()}
    waits = []
    for job_class in JobClass:
        _, jobs, percentiles = found.get(job_class.value, (job_class.value, 0, None))
        p50_ms, p95_ms = (max(0, round(value)) for value in percentiles) if percentiles else (None, None)
        waits.append(RecentWait(job_class.value, jobs, p50_ms, p95_ms))
    return waits


def expected_waits() -> dict[str, int | None]:
    """By class, what a new job of a workspace that has nothing waiting must expect, in ms; None: no device is ready.

    Such a job is the next of its class (tts.services.fair_share). A class with weight w gets w of W turns, W being the
    weights of the classes that have work; a turn comes whenever one of the slots ends its segment.
    """
    with connection.cursor() as cursor:
        cursor.execute(_SLOTS, [DEVICE_HEARTBEAT_SECONDS])
        slots, idle = cursor.fetchone()
        if not slots:
            return {job_class.value: None for job_class in JobClass}
        cursor.execute(_CLASSES)
        classes: dict[str, tuple[int, bool]] = {row[0]: (row[1], row[2]) for row in cursor.fetchall()}
        if idle and not any(busy for _, busy in classes.values()):
            return {job_class.value: 0 for job_class in JobClass}
        cursor.execute(_SEGMENT_MS)
        segment_ms = cursor.fetchone()[0] or UNKNOWN_SEGMENT_MS
    waits: dict[str, int | None] = {}
    for job_class in JobClass:
        weight = classes.get(job_class.value, (1, False))[0]
        others = sum(other for name, (other, busy) in classes.items() if busy and name != job_class.value)
        waits[job_class.value] = round(segment_ms / slots * (weight + others) / weight)
    return waits
