"""What the ledger says of revenue: charged for speech, fees, and what was given back, by day of the server's zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from billing.periods import day_start, local_day
from portal.charts import Chart, Series, line_chart
from portal.lib.cache import remembered
from portal.lib.display import money_text
from portal.lib.money import MICROS_PER_UNIT

REVENUE_DAYS: Final = 30
REMEMBERED_SECONDS: Final = 30
CURRENCY: Final = "CNY"

# What stands on the account of revenue, by what moved it. What was given back is negative there.
_BY_DAY: Final = """
SELECT (t.created_at AT TIME ZONE %(zone)s)::date, t.kind, SUM(e.amount_micros)::bigint
FROM billing_ledgertransaction t JOIN billing_ledgerentry e ON e.transaction_id = t.id
WHERE t.created_at >= %(since)s AND e.account = 'revenue'
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
    """The last days, today's the last; a day without anything is zero. One query, or none: at most 30 seconds old."""
    zone = settings.TIME_ZONE
    today = local_day(now, zone)
    first = today - timedelta(days=days - 1)
    found = remembered(
        f"console-revenue-{first}-{days}",
        seconds=REMEMBERED_SECONDS,
        find=lambda: _sums(day_start(first, zone), zone),
    )
    sums: dict[tuple[str, str], int] = {(day, kind): micros for day, kind, micros in found}
    return [
        RevenueDay(
            day=day,
            speech_micros=sums.get((day.isoformat(), "capture"), 0),
            fee_micros=sums.get((day.isoformat(), "fee"), 0),
            refunded_micros=-sums.get((day.isoformat(), "refund"), 0),
        )
        for day in (first + timedelta(days=index) for index in range(days))
    ]


def _sums(since: datetime, zone: str) -> list[list[Any]]:
    with connection.cursor() as cursor:
        cursor.execute(_BY_DAY, {"since": since, "zone": zone})
        return [[day.isoformat(), kind, micros] for day, kind, micros in cursor.fetchall()]


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
