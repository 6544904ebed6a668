"""Which days a page or a file is about, in the workspace's own time zone."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from billing.periods import local_day, month_before, month_of
from billing.selectors.balances import time_zone_of
from portal.lib.clock import now

# A year and a day more: the same day of last year may be looked at.
MOST_DAYS: Final = 367


@dataclass(frozen=True)
class Days:
    """`first` to `last`, both included. `today` is the workspace's."""

    first: date
    last: date
    today: date
    time_zone: str

    @property
    def shown(self) -> list[date]:
        """Each day up to today: what lies ahead has no usage yet."""
        last = min(self.last, max(self.today, self.first))
        return [self.first + timedelta(days=number) for number in range((last - self.first).days + 1)]


def this_month(workspace_id: uuid.UUID) -> Days:
    today, zone = _today(workspace_id)
    month = month_of(today, zone)
    return Days(month.first_day, month.last_day, today, zone)


def last_month(workspace_id: uuid.UUID) -> Days:
    today, zone = _today(workspace_id)
    month = month_before(month_of(today, zone))
    return Days(month.first_day, month.last_day, today, zone)


def days_between(workspace_id: uuid.UUID, first: date | None, last: date | None) -> Days | None:
    """Those days; None where they are in the wrong order or too many. What is not given is this month's."""
    today, zone = _today(workspace_id)
    month = month_of(today, zone)
    first, last = first or month.first_day, last or today
    if not timedelta(0) <= last - first < timedelta(days=MOST_DAYS):
        return None
    return Days(first, last, today, zone)


def _today(workspace_id: uuid.UUID) -> tuple[date, str]:
    zone = time_zone_of(workspace_id)
    return local_day(now(), zone), zone
