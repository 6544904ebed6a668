"""Counters of what jobs and attempts came to, over all processes and for good.

What ended is counted from the rows themselves: up to a mark into the table of totals, behind the mark at every scrape.
So a total is exact at any moment, costs the rows of some minutes, and stays when rows go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction

from portal.lib.clock import database_now
from portal.logs.models import CounterMark
from portal.logs.totals import Labels, add_totals, labels_of, read_totals
from tts.models import Device

# Rows carry the time at which their transaction began: what began before the mark must have been committed by then.
LAG: Final = timedelta(minutes=5)
BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
MARK: Final = "ended"
# PostgreSQL's advisory lock around mark and totals: "VPMC" in ASCII.
LOCK: Final = 0x56504D43

ATTEMPTS: Final = "attempts"
DEVICE_MS: Final = "device_ms"
JOBS: Final = "jobs"
# Of jobs, by class: histograms in milliseconds.
DURATIONS: Final = ("wait", "first_audio", "duration")
BOUNDS_MS: Final = (100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000, 7_200_000)

_ATTEMPTS = """
SELECT a.device_id, a.state, a.error_code, COUNT(*),
    COALESCE(SUM(EXTRACT(EPOCH FROM a.finished_at - a.started_at) * 1000), 0)::bigint
FROM tts_attempt a
WHERE a.finished_at > %(after)s AND a.finished_at <= %(until)s
GROUP BY 1, 2, 3
"""
_JOBS = """
WITH ended AS (
    SELECT job_class, state,
        ROUND(EXTRACT(EPOCH FROM started_at - created_at) * 1000) AS wait,
        ROUND(EXTRACT(EPOCH FROM first_audio_at - created_at) * 1000) AS first_audio,
        CASE WHEN state = 'succeeded' THEN ROUND(EXTRACT(EPOCH FROM finished_at - created_at) * 1000) END AS duration
    FROM tts_synthesisjob WHERE finished_at > %(after)s AND finished_at <= %(until)s
), measured AS (
    SELECT job_class, 'wait' AS measure, wait AS ms FROM ended WHERE wait IS NOT NULL
    UNION ALL SELECT job_class, 'first_audio', first_audio FROM ended WHERE first_audio IS NOT NULL
    UNION ALL SELECT job_class, 'duration', duration FROM ended WHERE duration IS NOT NULL
)
SELECT 'jobs', job_class, state, 0, COUNT(*), 0 FROM ended GROUP BY 2, 3
UNION ALL
-- A bound belongs to its bucket.
SELECT measure, job_class, '', width_bucket(ms, %(bounds)s::numeric[]), COUNT(*), SUM(GREATEST(ms, 0))::bigint
FROM measured GROUP BY 1, 2, 4
"""


def bucket_name(index: int) -> str:
    """The upper bound of the bucket in milliseconds, as a label."""
    return str(BOUNDS_MS[index]) if index < len(BOUNDS_MS) else "+Inf"


def ended_between(*, after: datetime, until: datetime) -> Counter[tuple[str, Labels]]:
    """What ended in that time (the later moment included), by family and labels. Two queries."""
    found: Counter[tuple[str, Labels]] = Counter()
    span: dict[str, Any] = {"after": after, "until": until}
    with connection.cursor() as cursor:
        cursor.execute(_ATTEMPTS, span)
        attempts = cursor.fetchall()
        cursor.execute(_JOBS, {**span, "bounds": [bound + 1 for bound in BOUNDS_MS]})
        jobs = cursor.fetchall()
    names = dict(Device.objects.filter(pk__in={row[0] for row in attempts}).values_list("pk", "name"))
    for device_id, state, code, count, device_ms in attempts:
        found[ATTEMPTS, labels_of(result=state, code=code)] += count
        found[DEVICE_MS, labels_of(device=names[device_id], outcome=state)] += device_ms
    for measure, job_class, state, bucket, count, total_ms in jobs:
        if measure == JOBS:
            found[JOBS, labels_of(job_class=job_class, state=state)] += count
        else:
            found[f"{measure}_bucket", labels_of(job_class=job_class, le=bucket_name(bucket))] += count
            found[f"{measure}_ms", labels_of(job_class=job_class)] += total_ms
    return found


def _lock(*, shared: bool) -> None:
    with connection.cursor() as cursor:
        function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
        cursor.execute(f"SELECT {function}(%s)", [LOCK])


def _counted_until() -> datetime:
    mark = CounterMark.objects.filter(name=MARK).first()
    return mark.counted_until if mark is not None else BEGINNING


@transaction.atomic
def count_what_ended() -> None:
    """Move the mark to five minutes ago and add what ended until then to the totals. Called by the clock."""
    _lock(shared=False)
    after, until = _counted_until(), database_now() - LAG
    if until <= after:
        return
    add_totals(ended_between(after=after, until=until))
    CounterMark.objects.update_or_create(name=MARK, defaults={"counted_until": until})


@transaction.atomic
def totals_now() -> dict[str, Mapping[Labels, int]]:
    """Every total as of this moment, by family and labels."""
    _lock(shared=True)
    found: dict[str, Counter[Labels]] = {family: Counter(values) for family, values in read_totals().items()}
    for (family, labels), value in ended_between(after=_counted_until(), until=database_now()).items():
        found.setdefault(family, Counter())[labels] += value
    return dict(found)
