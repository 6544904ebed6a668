"""The last day and the last hour as numbers over time: what the pool's time went to, waits, jobs and failures."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from django.db import connection

from portal.lib.cache import remembered
from tts.models import Resolution
from tts.states import JobClass

REMEMBERED_SECONDS: Final = 30
DAY: Final = timedelta(hours=24)
POOL_STEP: Final = timedelta(minutes=30)
LATENCY_STEP: Final = timedelta(hours=1)
JOBS_STEP: Final = timedelta(minutes=1)
JOBS_SPAN: Final = timedelta(hours=1)
FAILURE_STEP: Final = timedelta(hours=1)
# An attempt that began this much before the day may reach into it.
LONGEST_ATTEMPT: Final = timedelta(hours=2)
# Kinds of failure that are drawn by name; the rest together.
FAILURE_KINDS: Final = 4
# Buckets begin at whole steps of this clock.
ORIGIN: Final = "2000-01-01 00:00:00+00"

# Each attempt's time is cut at the borders of the buckets. What runs has been busy until now.
_POOL_USE = """
SELECT bucket, (a.state IN ('failed', 'lost')) AS failed,
    SUM(EXTRACT(EPOCH FROM LEAST(a.ended, bucket + %(step)s) - GREATEST(a.started_at, bucket)) * 1000)::bigint
FROM (
    SELECT state, started_at, LEAST(COALESCE(finished_at, %(now)s), %(now)s) AS ended
    FROM tts_attempt WHERE bound_at > %(since)s::timestamptz - %(longest)s AND started_at IS NOT NULL
) AS a
CROSS JOIN LATERAL generate_series(date_bin(%(step)s, a.started_at, %(origin)s), a.ended, %(step)s) AS bucket
WHERE bucket >= %(since)s AND bucket < %(now)s AND a.ended > GREATEST(a.started_at, bucket)
GROUP BY 1, 2
"""
# A device was there in each minute of which it left figures; it then had its slots' time to give.
_POOL_TIME = """
SELECT date_bin(%(step)s, s.taken_at, %(origin)s), SUM(d.slots) * 60000
FROM tts_devicesample s JOIN tts_device d ON d.id = s.device_id
WHERE s.resolution = %(minute)s AND s.taken_at >= %(since)s AND s.taken_at < %(now)s
GROUP BY 1
"""
_LATENCY = """
SELECT date_bin(%(step)s, created_at, %(origin)s), job_class,
    percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY EXTRACT(EPOCH FROM started_at - created_at)),
    percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY EXTRACT(EPOCH FROM first_audio_at - created_at))
FROM tts_synthesisjob WHERE created_at >= %(since)s AND created_at <= %(now)s AND started_at IS NOT NULL
GROUP BY 1, 2
"""
_JOBS = """
SELECT date_bin(%(step)s, created_at, %(origin)s), COUNT(*) FILTER (WHERE state <> 'failed'),
    COUNT(*) FILTER (WHERE state = 'failed')
FROM tts_synthesisjob WHERE created_at >= %(since)s AND created_at <= %(now)s GROUP BY 1
"""
_FAILURES = """
SELECT date_bin(%(step)s, bound_at, %(origin)s), error_code, COUNT(*)
FROM tts_attempt WHERE bound_at >= %(since)s AND bound_at <= %(now)s AND state IN ('failed', 'lost') GROUP BY 1, 2
"""

Rows = list[list[Any]]


def buckets(*, now: datetime, span: timedelta, step: timedelta) -> list[datetime]:
    """The beginnings of the buckets of `span`, the one that `now` lies in being the last."""
    origin = datetime.fromisoformat(ORIGIN)
    last = origin + (now - origin) // step * step
    return [last - step * index for index in range(round(span / step) - 1, -1, -1)]


def _query(sql: str, *, now: datetime, span: timedelta, step: timedelta) -> Rows:
    since = buckets(now=now, span=span, step=step)[0]
    parameters: dict[str, Any] = {
        "now": now,
        "since": since,
        "step": step,
        "origin": ORIGIN,
        "longest": LONGEST_ATTEMPT,
        "minute": Resolution.MINUTE.value,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [[row[0].isoformat(), *row[1:]] for row in cursor.fetchall()]


def _remembered(name: str, sql: str, *, now: datetime, span: timedelta, step: timedelta) -> Rows:
    """The rows as of at most half a minute ago; their first column is a moment as ISO text."""
    return remembered(
        f"console-trend-{name}",
        seconds=REMEMBERED_SECONDS,
        find=lambda: [
            [float(cell) if isinstance(cell, Decimal) else cell for cell in row]
            for row in _query(sql, now=now, span=span, step=step)
        ],
    )


class Trend:
    """Values by bucket, filled up where nothing happened."""

    def __init__(self, *, now: datetime, span: timedelta, step: timedelta) -> None:
        self.moments = buckets(now=now, span=span, step=step)
        self._index = {moment: index for index, moment in enumerate(self.moments)}

    def filled(self, found: list[tuple[str, float]]) -> list[float]:
        """The values in the buckets' order; 0 where there is none."""
        values = [0.0] * len(self.moments)
        for moment, value in found:
            index = self._index.get(datetime.fromisoformat(moment))
            if index is not None:
                values[index] += value
        return values

    def sparse(self, found: list[tuple[str, float | None]]) -> list[float | None]:
        """The values in the buckets' order; None where there is none."""
        values: list[float | None] = [None] * len(self.moments)
        for moment, value in found:
            index = self._index.get(datetime.fromisoformat(moment))
            if index is not None:
                values[index] = value
        return values


class PoolShare:
    """What the slots' time of the last 24 hours went to, in ms by half-hour."""

    def __init__(self, *, now: datetime) -> None:
        span: dict[str, Any] = {"now": now, "span": DAY, "step": POOL_STEP}
        used = _remembered("pool-use", _POOL_USE, **span)
        there = _remembered("pool-time", _POOL_TIME, **span)
        trend = Trend(**span)
        self.moments = trend.moments
        self.busy = trend.filled([(row[0], row[2]) for row in used if not row[1]])
        self.failed = trend.filled([(row[0], row[2]) for row in used if row[1]])
        given = trend.filled([(row[0], row[1]) for row in there])
        # A device that left no figures was there if it spoke.
        self.idle = [
            max(0.0, time - busy - failed)
            for time, busy, failed in zip(given, self.busy, self.failed, strict=True)
        ]

    def percent(self, part: list[float]) -> list[float | None]:
        """The part of each half-hour's time; None where no device was there."""
        return [
            100 * value / total if (total := busy + failed + idle) else None
            for value, busy, failed, idle in zip(part, self.busy, self.failed, self.idle, strict=True)
        ]

    def total_percent(self, part: list[float]) -> float | None:
        total = sum(self.busy) + sum(self.failed) + sum(self.idle)
        return 100 * sum(part) / total if total else None


class Latencies:
    """p50, p95 and p99 of waits and first audio in seconds, by class and hour of submission."""

    MEASURES: Final = ("wait", "first_audio")

    def __init__(self, *, now: datetime) -> None:
        span: dict[str, Any] = {"now": now, "span": DAY, "step": LATENCY_STEP}
        self._rows = _remembered("latency", _LATENCY, **span)
        self._trend = Trend(**span)
        self.moments = self._trend.moments

    def classes(self) -> list[JobClass]:
        """Those that had jobs, the most urgent first."""
        had = {row[1] for row in self._rows}
        return [job_class for job_class in JobClass if job_class.value in had]

    def lines(self, job_class: JobClass, measure: str) -> list[list[float | None]]:
        """The three percentiles, each by hour."""
        column = 2 + self.MEASURES.index(measure)
        rows = [row for row in self._rows if row[1] == job_class.value]
        return [
            self._trend.sparse([(row[0], row[column][index] if row[column] else None) for row in rows])
            for index in range(3)
        ]


class JobsByMinute:
    """Jobs of the last hour by the minute of their submission: those that failed, and all others."""

    def __init__(self, *, now: datetime) -> None:
        span: dict[str, Any] = {"now": now, "span": JOBS_SPAN, "step": JOBS_STEP}
        rows = _query(_JOBS, **span)
        trend = Trend(**span)
        self.moments = trend.moments
        self.others = trend.filled([(row[0], row[1]) for row in rows])
        self.failed = trend.filled([(row[0], row[2]) for row in rows])


class FailuresByKind:
    """Attempts of the last 24 hours that failed, by hour and code, the most frequent codes first."""

    def __init__(self, *, now: datetime) -> None:
        span: dict[str, Any] = {"now": now, "span": DAY, "step": FAILURE_STEP}
        rows = _remembered("failures", _FAILURES, **span)
        trend = Trend(**span)
        self.moments = trend.moments
        counts: dict[str, float] = {}
        for _, code, count in rows:
            counts[code] = counts.get(code, 0) + count
        by_count = sorted(counts, key=lambda code: (-counts[code], code))
        self.total = round(sum(counts.values()))
        self.kinds: list[tuple[str, list[float]]] = [
            (code, trend.filled([(row[0], row[2]) for row in rows if row[1] == code]))
            for code in by_count[:FAILURE_KINDS]
        ]
        rest = set(by_count[FAILURE_KINDS:])
        self.rest = trend.filled([(row[0], row[2]) for row in rows if row[1] in rest]) if rest else None
