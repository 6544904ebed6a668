"""Days and billing periods in a workspace's own time zone, as instants. Pure.

A period is computed once, as two instants, and stored: nothing is ever derived again from a local time that occurs
twice or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Period:
    """[start, end) in UTC, and the local days from `first_day` to `last_day`, both included."""

    start: datetime
    end: datetime
    first_day: date
    last_day: date
    time_zone: str

    @property
    def days(self) -> int:
        return (self.last_day - self.first_day).days + 1


def day_start(day: date, time_zone: str) -> datetime:
    """The instant, in UTC, at which a local day begins: its first moment, also where midnight does not exist."""
    zone = ZoneInfo(time_zone)
    # The earlier of two midnights; of a midnight that is skipped, the offset before the gap gives its end.
    return datetime.combine(day, time(0), tzinfo=zone).astimezone(UTC)


def local_day(moment: datetime, time_zone: str) -> date:
    """The local day that an instant falls on."""
    return moment.astimezone(ZoneInfo(time_zone)).date()


def month_of(day: date, time_zone: str) -> Period:
    """The calendar month that a local day falls in."""
    first = day.replace(day=1)
    return _period(first, _next_month(first), time_zone)


def month_at(moment: datetime, time_zone: str) -> Period:
    """The calendar month, in that zone, that an instant falls in."""
    return month_of(local_day(moment, time_zone), time_zone)


def month_before(period: Period) -> Period:
    """The calendar month before this one."""
    return month_of(period.first_day - timedelta(days=1), period.time_zone)


def _next_month(first: date) -> date:
    return (first.replace(day=28) + timedelta(days=4)).replace(day=1)


def _period(first: date, after: date, time_zone: str) -> Period:
    return Period(
        start=day_start(first, time_zone),
        end=day_start(after, time_zone),
        first_day=first,
        last_day=after - timedelta(days=1),
        time_zone=time_zone,
    )
