"""Which segment goes next, and when a waiting job will start. The one home of that rule.

Start-time fair queueing (Goyal, Vin, Cheng 1997) on two levels. Every queue (a workspace in a class) carries a start
tag; choosing its oldest segment adds the segment's estimate / the workspace's weight to the tag, and what the segment
really took replaces the estimate once it is settled, at the latest in the next decision (a fault of the platform costs
nothing). The
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
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from tts.models import SynthesisJob
from tts.states import DEVICE_HEARTBEAT_SECONDS, JobState

# More than this many segments ahead are not played through slot by slot, and their jobs are not counted one by one:
# the sums say the same.
PLAY_THROUGH_SEGMENTS = 2000

# The job's first waiting segment, and the tag at which it will be chosen, were nothing new to come.
_MINE = """
SELECT s.id, q.id, s.workspace_id, s.job_class, q.start_tag + earlier.estimate * 1000 / GREATEST(1, w.weight),
    earlier.segments, earlier.estimate
FROM tts_segment s
JOIN tts_fairsharequeue q ON q.workspace_id = s.workspace_id AND q.job_class = s.job_class
JOIN accounts_workspace w ON w.id = s.workspace_id
CROSS JOIN LATERAL (
    SELECT COUNT(*) AS segments, COALESCE(SUM(e.estimate_gpu_ms), 0)::bigint AS estimate FROM tts_segment e
    WHERE e.workspace_id = s.workspace_id AND e.job_class = s.job_class AND e.state = 'queued' AND e.id < s.id
) AS earlier
WHERE s.job_id = %(job)s AND s.state = 'queued' ORDER BY s.id LIMIT 1
"""

# The other queues of its class that come before that tag, and how many segments each is due until then. From the
# counters: a queue's segments count as equally long.
_OTHERS = """
WITH due AS (
    SELECT q.id, q.workspace_id, LEAST(q.queued, GREATEST(1, CEIL(
            (%(tag)s - q.start_tag) * GREATEST(1, w.weight) / 1000.0 * q.queued / GREATEST(1, q.queued_estimate_gpu_ms)
        ))) AS segments, q.queued_estimate_gpu_ms::float8 / q.queued AS each_ms
    FROM tts_fairsharequeue q JOIN accounts_workspace w ON w.id = q.workspace_id
    WHERE q.job_class = %(job_class)s AND q.queued > 0 AND q.workspace_running < q.running_limit
        AND (q.start_tag, q.id) < (%(tag)s, %(queue)s) AND q.id <> %(queue)s
)
"""
# Put together from constants of this module alone.
_OTHERS_SUM = f"""{_OTHERS}
SELECT COALESCE(SUM(segments), 0)::bigint, COALESCE(SUM(segments * each_ms), 0)::float8 FROM due
"""  # noqa: S608
_OTHERS_JOBS = f"""{_OTHERS}
SELECT COUNT(DISTINCT next.job_id) FROM due CROSS JOIN LATERAL (
    SELECT s.job_id FROM tts_segment s
    WHERE s.workspace_id = due.workspace_id AND s.job_class = %(job_class)s AND s.state = 'queued'
    ORDER BY s.id LIMIT due.segments::bigint
) AS next
"""  # noqa: S608
_OWN_JOBS = """
SELECT COUNT(DISTINCT job_id) FROM tts_segment
WHERE workspace_id = %(workspace)s AND job_class = %(job_class)s AND state = 'queued' AND id < %(segment)s
"""

# What the other classes are due until this class has come so far.
_OTHER_CLASSES = """
SELECT COALESCE(SUM(CEIL(backlog.queued * due.share)), 0)::bigint,
    COALESCE(SUM(backlog.estimate * due.share), 0)::float8
FROM tts_fairshareclass mine
JOIN tts_fairshareclass c ON c.job_class <> mine.job_class AND c.active
CROSS JOIN LATERAL (
    SELECT COALESCE(SUM(q.queued_estimate_gpu_ms), 0)::float8 AS estimate, COALESCE(SUM(q.queued), 0) AS queued
    FROM tts_fairsharequeue q WHERE q.job_class = c.job_class AND q.queued > 0
) AS backlog
CROSS JOIN LATERAL (
    SELECT GREATEST(0, LEAST(1, (
        CASE WHEN mine.active THEN mine.start_tag ELSE GREATEST(mine.start_tag, c.start_tag) END
        + %(ahead_ms)s * 1000 / mine.weight - c.start_tag
    ) * c.weight / 1000 / GREATEST(1, backlog.estimate))) AS share
) AS due
WHERE mine.job_class = %(job_class)s
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
        cursor.execute(_MINE, {"job": job.pk})
        mine = cursor.fetchone()
        if mine is None:
            # Its first segment is with a worker already.
            return Place(position=1, segments_ahead=0, starts_in_ms=0)
        ahead = _ahead(cursor, mine)
        cursor.execute(_PACE)
        pace: float = cursor.fetchone()[0]
        cursor.execute(_SLOTS, {"pace": pace, "heartbeat": DEVICE_HEARTBEAT_SECONDS})
        busy_ms = [left for (left,) in cursor.fetchall()]
    return Place(
        position=ahead.jobs + 1,
        segments_ahead=ahead.segments,
        starts_in_ms=_first_free_ms(busy_ms, segments=ahead.segments, work_ms=ahead.estimate_ms * pace),
    )


@dataclass(frozen=True)
class _Ahead:
    jobs: int
    segments: int
    estimate_ms: float


def _ahead(cursor: CursorWrapper, mine: tuple[Any, ...]) -> _Ahead:
    """What the rule would choose before the segment of `_MINE`."""
    segment, queue, workspace, job_class, tag, own_segments, own_ms = mine
    known = {"segment": segment, "queue": queue, "workspace": workspace, "job_class": job_class, "tag": tag}
    cursor.execute(_OTHERS_SUM, known)
    other_segments, other_ms = cursor.fetchone()
    segments, class_ms = int(own_segments + other_segments), float(own_ms + other_ms)
    jobs = segments
    if segments <= PLAY_THROUGH_SEGMENTS:
        cursor.execute(_OWN_JOBS, known)
        jobs = cursor.fetchone()[0]
        if other_segments:
            cursor.execute(_OTHERS_JOBS, known)
            jobs += cursor.fetchone()[0]
    cursor.execute(_OTHER_CLASSES, {"ahead_ms": class_ms, "job_class": job_class})
    class_segments, classes_ms = cursor.fetchone()
    return _Ahead(jobs=jobs, segments=segments + int(class_segments), estimate_ms=class_ms + classes_ms)


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
