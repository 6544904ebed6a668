"""What the ledger says of revenue: charged for speech, fees, and what was given back, by day of the server's zone."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from redis.exceptions import RedisError

from billing.periods import day_start, local_day
from portal.charts import Chart, Series, line_chart
from portal.lib.cache import remembered
from portal.lib.display import money_text
from portal.lib.money import MICROS_PER_UNIT

REVENUE_DAYS: Final = 30
REMEMBERED_SECONDS: Final = 30
CURRENCY: Final = "CNY"
# Micros by what moved them.
_Sums = dict[str, int]

# An hour's sums are never changed once it is over: a transaction bears the time at which it began, and none lasts as
# long as LATE. So hours that are over are remembered, and what is read is what has happened since.
LATE: Final = timedelta(minutes=15)
HOUR: Final = timedelta(hours=1)
HOURS_REMEMBERED_SECONDS: Final = 40 * 24 * 3600

# What stands on the account of revenue, by what moved it. What was given back is negative there. `OFFSET 0`: each
# transaction's own entries are looked up; the planner may not read all there ever were instead.
_BY_HOUR: Final = """
SELECT width_bucket(t.created_at, %(starts)s::timestamptz[]), t.kind, SUM(e.amount_micros)::bigint
FROM billing_ledgertransaction t CROSS JOIN LATERAL (
    SELECT amount_micros FROM billing_ledgerentry WHERE transaction_id = t.id AND account = 'revenue' OFFSET 0
) AS e
WHERE t.created_at >= %(since)s AND t.kind IN ('capture', 'fee', 'refund')
GROUP BY 1, 2
"""


@dataclass(frozen=True)
class RevenueDay:
    """Micros of one day: charged for speech, fees, and given back (positive)."""

    day: date
    speech_micros: int
    fee_micros: int
    refunded_micros: int

    @property
    def net_micros(self) -> int:
        return self.speech_micros + self.fee_micros - self.refunded_micros


def revenue_by_day(*, now: datetime, days: int = REVENUE_DAYS) -> list[RevenueDay]:
    """The last days, today's the last; a day without anything is zero. At most 30 seconds old.

    One query, or none, that reads what has happened since the last hour that is remembered; while Redis is away it
    reads all of those days.
    """
    zone = settings.TIME_ZONE
    today = local_day(now, zone)
    first = today - timedelta(days=days - 1)
    found = remembered(
        f"console-revenue-{first}-{days}",
        seconds=REMEMBERED_SECONDS,
        find=lambda: _by_day([first + timedelta(days=index) for index in range(days)], zone, now),
    )
    return [
        RevenueDay(
            day=first + timedelta(days=index),
            speech_micros=sums.get("capture", 0),
            fee_micros=sums.get("fee", 0),
            refunded_micros=-sums.get("refund", 0),
        )
        for index, sums in enumerate(found)
    ]


def _by_day(days: list[date], zone: str, now: datetime) -> list[_Sums]:
    """The sums of each of the days."""
    hours = {day: _hours_of(day, zone) for day in days}
    every = [start for starts in hours.values() for start in starts]
    known = _known([start for start in every if start + HOUR <= now - LATE])
    missing = [start for start in every if start not in known]
    if missing:
        fresh = _read([start for start in every if start >= missing[0]])
        over = {start: sums for start, sums in fresh.items() if start + HOUR <= now - LATE}
        with suppress(RedisError):
            cache.set_many({_name(start): sums for start, sums in over.items()}, HOURS_REMEMBERED_SECONDS)
        known.update(fresh)
    return [_total([known[start] for start in starts]) for starts in hours.values()]


def _hours_of(day: date, zone: str) -> list[datetime]:
    """When each hour of the day begins, the last of which may be shorter where clocks are moved by less than one."""
    start, end = day_start(day, zone), day_start(day + timedelta(days=1), zone)
    return [start + index * HOUR for index in range(-((start - end) // HOUR))]


def _read(starts: list[datetime]) -> dict[datetime, _Sums]:
    """The sums of the spans that begin then, one after the other, the last without an end."""
    found: dict[datetime, _Sums] = {start: {} for start in starts}
    with connection.cursor() as cursor:
        cursor.execute(_BY_HOUR, {"since": starts[0], "starts": starts})
        for index, kind, micros in cursor.fetchall():
            found[starts[index - 1]][kind] = micros
    return found


def _name(start: datetime) -> str:
    return f"console-revenue-hour:{start.astimezone(UTC):%Y-%m-%dT%H:%M}"


def _known(starts: list[datetime]) -> dict[datetime, _Sums]:
    names = {_name(start): start for start in starts}
    try:
        found: dict[str, _Sums] = cache.get_many(names)
    except RedisError:
        return {}
    return {names[name]: sums for name, sums in found.items()}


def _total(every: list[_Sums]) -> _Sums:
    total: Counter[str] = Counter()
    for sums in every:
        # Not `+`, which drops what is below zero: so is what was given back.
        total.update(sums)
    return dict(total)


def revenue_today(*, now: datetime) -> RevenueDay:
    """Today's, by the server's zone: the last of what the Money page shows."""
    return revenue_by_day(now=now)[-1]


def revenue_chart(days: list[RevenueDay]) -> Chart:
    """The days as lines, with a table and a file of the same numbers."""
    title = gettext("Revenue of the last %(days)d days: %(net)s, after %(refunded)s was given back") % {
        "days": len(days),
        "net": money_text(sum(day.net_micros for day in days), CURRENCY),
        "refunded": money_text(sum(day.refunded_micros for day in days), CURRENCY),
    }

    def units(micros: list[int]) -> list[float]:
        return [amount / MICROS_PER_UNIT for amount in micros]

    return line_chart(
        chart_id="revenue",
        title=title,
        unit=_("by day of the server’s time zone"),
        moments=[day.day for day in days],
        series=[
            Series(_("speech"), "accent", units([day.speech_micros for day in days])),
            Series(_("fees"), "live", units([day.fee_micros for day in days])),
            Series(_("given back"), "bad", units([day.refunded_micros for day in days])),
        ],
        value_text=lambda value: money_text(round(value * MICROS_PER_UNIT), CURRENCY),
        csv_address=f"{reverse('console_money')}?csv=revenue",
    )
