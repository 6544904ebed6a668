"""Which segment goes next, and when a waiting job will start. The one home of that rule.

Start-time fair queueing (Goyal, Vin, Cheng 1997) on two levels. Every queue (a workspace in a class) carries a start
tag; choosing its oldest segment adds the segment's estimate / the workspace's weight to the tag, and what the segment
really took replaces the estimate at the next decision after its end (a fault of the platform costs nothing). The
queue with the lowest tag goes first; the class's clock is the tag of the last one chosen, and a queue that comes back
starts at that clock, so that idle time is not banked. Classes compete in the same way with weights 16 : 4 : 1.
At most every fourth decision goes by age instead: a queue's head that has waited for longer than its class allows
(30 s, 10 min, 6 h) is next, so that batch work never starves. No queue's tag is more than ten minutes of a device
ahead of its clock. A workspace at its limit of running segments is passed over.

The decision is made by the database in one call (`tts_bind` in the migrations), on counters that a trigger keeps.
`tts.services.bind` calls it; here the same tags say what goes before a job.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from django.db import connection

from tts.models import SynthesisJob
from tts.states import DEVICE_HEARTBEAT_SECONDS, JobState

# A queue's segments beyond this many are not looked at one by one when a place is counted.
LOOK_AHEAD_SEGMENTS = 400
# More than this many segments ahead are not played through slot by slot: their sum says the same.
PLAY_THROUGH_SEGMENTS = 5000

# The waiting segments of the job's class, each with the tag at which it will be chosen, were nothing new to come; and
# of the other classes what they are due until this class's tag has come as far.
_AHEAD = """
WITH mine AS (
    SELECT s.id, s.workspace_id, s.job_class FROM tts_segment s
    WHERE s.job_id = %(job)s AND s.state = 'queued' ORDER BY s.id LIMIT 1
), lined_up AS (
    SELECT s.id, s.job_id, s.estimate_gpu_ms, q.id AS queue_id,
        q.start_tag + (SUM(s.estimate_gpu_ms) OVER (PARTITION BY q.id ORDER BY s.id) - s.estimate_gpu_ms)
            * 1000 / GREATEST(1, w.weight) AS tag
    FROM tts_fairsharequeue q
    JOIN mine ON mine.job_class = q.job_class
    JOIN accounts_workspace w ON w.id = q.workspace_id
    CROSS JOIN LATERAL (
        SELECT s.id, s.job_id, s.estimate_gpu_ms FROM tts_segment s
        WHERE s.workspace_id = q.workspace_id AND s.job_class = q.job_class AND s.state = 'queued'
        ORDER BY s.id LIMIT %(look_ahead)s
    ) AS s
    WHERE q.queued > 0
), here AS (
    SELECT l.tag, l.queue_id, l.id, mine.job_class FROM lined_up l JOIN mine ON mine.id = l.id
), ahead AS (
    SELECT COUNT(*) AS segments, COUNT(DISTINCT l.job_id) AS jobs, COALESCE(SUM(l.estimate_gpu_ms), 0) AS estimate
    FROM lined_up l, here
    WHERE l.job_id <> %(job)s AND (l.tag, l.queue_id, l.id) < (here.tag, here.queue_id, here.id)
), others AS (
    SELECT COALESCE(SUM(GREATEST(0, LEAST(backlog.estimate,
            ((CASE WHEN mine.active THEN mine.start_tag ELSE GREATEST(mine.start_tag, c.start_tag) END
                + ahead.estimate * 1000 / mine.weight) - c.start_tag) * c.weight / 1000))), 0) AS estimate,
        COALESCE(SUM(backlog.queued * GREATEST(0, LEAST(1.0,
            ((CASE WHEN mine.active THEN mine.start_tag ELSE GREATEST(mine.start_tag, c.start_tag) END
                + ahead.estimate * 1000 / mine.weight) - c.start_tag) * c.weight / 1000.0
            / GREATEST(1, backlog.estimate)))), 0) AS segments
    FROM here
    JOIN tts_fairshareclass mine ON mine.job_class = here.job_class
    CROSS JOIN ahead
    JOIN tts_fairshareclass c ON c.job_class <> here.job_class AND c.active
    CROSS JOIN LATERAL (
        SELECT COALESCE(SUM(q.queued_estimate_gpu_ms), 0) AS estimate, COALESCE(SUM(q.queued), 0) AS queued
        FROM tts_fairsharequeue q WHERE q.job_class = c.job_class AND q.queued > 0
    ) AS backlog
)
SELECT ahead.jobs, ahead.segments + CEIL(others.segments)::bigint, ahead.estimate + others.estimate
FROM ahead, others
"""

# What the slots that take work have left to do, in estimated milliseconds, and how long a segment has really taken
# lately for each estimated millisecond, from the choice to the end.
_SLOTS = """
SELECT COALESCE(
        GREATEST(0, s.estimate_gpu_ms * pace.pace - EXTRACT(EPOCH FROM now() - a.bound_at) * 1000), 0
    )::float8
FROM tts_deviceslot slot
JOIN tts_device d ON d.id = slot.device_id
CROSS JOIN (SELECT %(pace)s::float8 AS pace) AS pace
LEFT JOIN tts_attempt a ON a.id = slot.attempt_id
LEFT JOIN tts_segment s ON s.id = a.segment_id
WHERE slot.ready AND d.state IN ('ready', 'busy')
    AND d.heartbeat_at >= now() - make_interval(secs => %(heartbeat)s)
"""
_PACE = """
SELECT COALESCE(
    SUM(EXTRACT(EPOCH FROM a.finished_at - a.bound_at) * 1000) / NULLIF(SUM(s.estimate_gpu_ms), 0), 1
)::float8
FROM (
    SELECT * FROM tts_attempt WHERE state = 'succeeded' AND bound_at > now() - interval '1 hour'
    ORDER BY bound_at DESC LIMIT 60
) AS a JOIN tts_segment s ON s.id = a.segment_id
"""


@dataclass(frozen=True)
class Place:
    """Where a job waits: 1 is next. `starts_in_ms` is None when no device takes work."""

    position: int
    segments_ahead: int
    starts_in_ms: int | None


def place_of(job: SynthesisJob) -> Place | None:
    """The waiting job's place and an estimate of its start; None once it has started or ended.

    Counts what the rule would choose before it, were nothing new to come, and plays that through on the slots that
    take work: each begins when it has ended what it speaks now, at the pace of the last hour's segments.
    """
    if job.state != JobState.QUEUED:
        return None
    with connection.cursor() as cursor:
        cursor.execute(_AHEAD, {"job": job.pk, "look_ahead": LOOK_AHEAD_SEGMENTS})
        row = cursor.fetchone()
        if row is None:
            # Its first segment is with a worker already.
            return Place(position=1, segments_ahead=0, starts_in_ms=0)
        jobs, segments, estimate_ms = int(row[0]), int(row[1]), float(row[2])
        cursor.execute(_PACE)
        pace: float = cursor.fetchone()[0]
        cursor.execute(_SLOTS, {"pace": pace, "heartbeat": DEVICE_HEARTBEAT_SECONDS})
        busy_ms = [left for (left,) in cursor.fetchall()]
    return Place(
        position=jobs + 1,
        segments_ahead=segments,
        starts_in_ms=_first_free_ms(busy_ms, segments=segments, work_ms=estimate_ms * pace),
    )


def _first_free_ms(busy_ms: list[float], *, segments: int, work_ms: float) -> int | None:
    """When a slot is free after `segments` of equal length, `work_ms` in all, went to the slots one by one."""
    if not busy_ms:
        return None
    if segments > PLAY_THROUGH_SEGMENTS:
        return round((sum(busy_ms) + work_ms) / len(busy_ms))
    slots = list(busy_ms)
    heapq.heapify(slots)
    for _ in range(segments):
        heapq.heapreplace(slots, slots[0] + work_ms / segments)
    return round(slots[0])
