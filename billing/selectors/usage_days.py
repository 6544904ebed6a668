"""A time's usage by everything at once, from the sums of each day.

A workspace of a million records has tens of thousands of rows for a month, too many to add up while somebody waits.
So the sums of a day that is over are remembered in Redis. They are exact: money that is given back is dated by the day
on which that happens, and what arrives late for a day that is over is found by when it was stored; such a day is
added up anew. While Redis is away all days are.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from django.core.cache import cache
from django.db import connection
from redis.exceptions import RedisError

from billing.models import UsageRecord
from billing.periods import local_day
from billing.selectors.balances import time_zone_of
from billing.selectors.usage import COLUMNS, OF_DAYS, SUMS, Dimension, Key, Sums, total_of, whole_numbers
from portal.lib.clock import database_now

REMEMBERED_S: Final = 7 * 24 * 3600
# A change of the time zone moves today's date by two days at most: those are never remembered.
OPEN_DAYS: Final = timedelta(days=2)
# Between the moment that a record bears and that at which others see it lies a transaction, and the difference of
# two hosts' clocks.
UNSEEN: Final = timedelta(minutes=2)
# What is grouped by within a day.
PARTS: Final[tuple[Dimension, ...]] = tuple(
    dimension for dimension in Dimension if dimension != Dimension.DAY
)

# For each of PARTS the key, or None, with the seven sums.
_Groups = dict[str, list[tuple[str | None, list[int]]]]


@dataclass(frozen=True)
class Usage:
    """The sums of one time by everything at once. Each of the parts adds up to `total`."""

    first_day: date
    last_day: date
    total: Sums
    by_day_and_device_class: dict[tuple[date, str], Sums]
    parts: dict[Dimension, dict[Key, Sums]]


def usage_of(workspace_id: uuid.UUID, first_day: date, last_day: date) -> Usage:
    """What the workspace used from `first_day` to `last_day`, both included, by each dimension."""
    moment = database_now()
    today = local_day(moment, time_zone_of(workspace_id))
    closed_until = min(last_day, today - OPEN_DAYS - timedelta(days=1))
    closed = [first_day + timedelta(days=n) for n in range((closed_until - first_day).days + 1)]
    known = _remembered(workspace_id, closed, moment)
    missing = [day for day in closed if day not in known]
    if missing:
        fresh = _read_days(workspace_id, missing[0], missing[-1])
        found = {day: fresh.get(day, {}) for day in missing}
        _remember(workspace_id, found)
        known.update(found)
    first_open = max(first_day, closed_until + timedelta(days=1))
    if first_open <= last_day:
        known.update(_read_days(workspace_id, first_open, last_day))
    return _added_up(known, first_day, last_day)


def _read_days(workspace_id: uuid.UUID, first_day: date, last_day: date) -> dict[date, _Groups]:
    """The sums of each of the days that have any. One query."""
    columns = [COLUMNS[part] for part in PARTS]
    sets = ", ".join(f"(day, {column})" for column in columns)
    listed = ", ".join(columns)
    query = f"SELECT GROUPING({listed}), day, {listed}, {SUMS} {OF_DAYS} GROUP BY GROUPING SETS ({sets})"
    # GROUPING() has a bit for each column that is *not* grouped by, the first column's the highest.
    every = 2 ** len(columns) - 1
    places = {every - 2 ** (len(columns) - 1 - place): place for place in range(len(columns))}
    days: dict[date, _Groups] = {}
    with connection.cursor() as cursor:
        cursor.execute(query, [workspace_id, first_day, last_day])
        for bits, day, *rest in cursor.fetchall():
            place = places[bits]
            key = rest[place]
            groups = days.setdefault(day, {})
            groups.setdefault(PARTS[place].value, []).append(
                (None if key is None else str(key), whole_numbers(rest[len(columns) :]))
            )
    return days


# -- What is remembered --------------------------------------------------------------------------------------


def _name(workspace_id: uuid.UUID, day: date) -> str:
    return f"usage-day:{workspace_id}:{day.isoformat()}"


def _remembered(workspace_id: uuid.UUID, days: list[date], moment: datetime) -> dict[date, _Groups]:
    """The sums that are remembered and still true."""
    if not days:
        return {}
    checked = f"usage-checked:{workspace_id}"
    names = {_name(workspace_id, day): day for day in days}
    try:
        since = cache.get(checked)
        if since is None:
            # Nobody knows what has arrived since they were added up.
            cache.set(checked, moment.isoformat(), REMEMBERED_S)
            return {}
        late = _arrived_late(workspace_id, datetime.fromisoformat(since) - UNSEEN, days[-1])
        cache.delete_many([_name(workspace_id, day) for day in late])
        cache.set(checked, moment.isoformat(), REMEMBERED_S)
        found: dict[str, _Groups] = cache.get_many(names)
    except RedisError:
        return {}
    return {names[name]: groups for name, groups in found.items()}


def _arrived_late(workspace_id: uuid.UUID, since: datetime, last_day: date) -> list[date]:
    """Days up to `last_day` of which something was stored since then."""
    rows = UsageRecord.objects.filter(workspace_id=workspace_id, created_at__gte=since, day__lte=last_day)
    return [day for day in rows.values_list("day", flat=True).distinct() if day is not None]


def _remember(workspace_id: uuid.UUID, days: dict[date, _Groups]) -> None:
    with suppress(RedisError):
        cache.set_many({_name(workspace_id, day): groups for day, groups in days.items()}, REMEMBERED_S)


# -- Adding up -----------------------------------------------------------------------------------------------


def _added_up(days: dict[date, _Groups], first_day: date, last_day: date) -> Usage:
    added: dict[Dimension, dict[str | None, list[int]]] = {part: defaultdict(_nothing) for part in PARTS}
    by_day_and_device_class = {}
    by_day: dict[Key, Sums] = {}
    for day, groups in sorted(days.items()):
        for part in PARTS:
            into = added[part]
            for key, numbers in groups.get(part.value, ()):
                sums = into[key]
                for place, number in enumerate(numbers):
                    sums[place] += number
        classes = groups.get(Dimension.DEVICE_CLASS.value, ())
        for name, numbers in classes:
            by_day_and_device_class[day, str(name)] = Sums(*numbers)
        if classes:
            by_day[day] = total_of(Sums(*numbers) for _name, numbers in classes)
    parts: dict[Dimension, dict[Key, Sums]] = {Dimension.DAY: by_day}
    for part, groups_of in added.items():
        is_id = part in (Dimension.VOICE, Dimension.MEMBER, Dimension.KEY)
        parts[part] = {
            uuid.UUID(key) if is_id and key is not None else key: Sums(*numbers)
            for key, numbers in groups_of.items()
        }
    return Usage(first_day, last_day, total_of(by_day.values()), by_day_and_device_class, parts)


def _nothing() -> list[int]:
    return [0] * 7
