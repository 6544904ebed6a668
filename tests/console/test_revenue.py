"""Revenue by hour is read once: what it costs to look again does not grow with the ledger."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from redis.exceptions import RedisError

from portal.console.money_page import _refunds
from portal.console.revenue import REVENUE_DAYS, RevenueDay, _hours_of, revenue_by_day
from portal.lib.clock import database_now
from tests.large_tables import rows_read

pytestmark = pytest.mark.django_db
YUAN = 1_000_000
# Of these many transactions each, two entries.
OLD, LATELY = 4_000, 2_000

# In one statement for each table, so that sums are checked once.
_FILL = """
WITH moved AS (
    INSERT INTO billing_ledgertransaction (id, workspace_id, kind, idempotency_key, created_at)
    SELECT gen_random_uuid(), %(workspace)s, %(kind)s, gen_random_uuid()::text,
        %(last)s::timestamptz - number * %(apart)s FROM generate_series(1, %(count)s) AS number
    RETURNING id
)
INSERT INTO billing_ledgerentry (transaction_id, account, amount_micros)
SELECT moved.id, e.account, e.amount FROM moved
CROSS JOIN (VALUES ('held', -%(amount)s), ('revenue', %(amount)s)) AS e (account, amount)
"""


def happened(kind: str, count: int, *, last: datetime, apart: timedelta, amount: int = YUAN) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            _FILL,
            {
                "workspace": uuid.uuid4(),
                "kind": kind,
                "count": count,
                "last": last,
                "apart": apart,
                "amount": amount,
            },
        )


def analysed() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE billing_ledgertransaction")
        cursor.execute("ANALYZE billing_ledgerentry")


def ledger_rows_read(look: Callable[[], Any]) -> tuple[int, int]:
    """How many transactions and entries were read for it."""
    with CaptureQueriesContext(connection) as captured:
        look()
    asked = [query["sql"] for query in captured if "billing_ledgertransaction" in query["sql"]]
    assert len(asked) <= 1
    read = rows_read(asked[0]) if asked else {}
    return read.get("billing_ledgertransaction", 0), read.get("billing_ledgerentry", 0)


@pytest.fixture
def moment(db: None) -> datetime:
    """Of whose day twelve hours are over."""
    cache.clear()
    return database_now().replace(hour=12, minute=30)


def look_again(moment: datetime) -> list[RevenueDay]:
    """What the page says once the half minute is over for which it says the same."""
    cache.delete(f"console-revenue-{moment.date() - timedelta(days=REVENUE_DAYS - 1)}-{REVENUE_DAYS}")
    return revenue_by_day(now=moment)


def test_a_look_reads_what_has_happened_since_the_last_hour_alone(moment: datetime) -> None:
    second = timedelta(seconds=1)
    happened("capture", OLD, last=moment - timedelta(days=REVENUE_DAYS + 1), apart=second)
    happened("capture", LATELY, last=moment - timedelta(hours=2), apart=20 * second)
    # Moves money, and earns nothing.
    happened("hold", LATELY, last=moment, apart=second)
    happened("fee", 3, last=moment, apart=second)
    analysed()
    first = ledger_rows_read(lambda: look_again(moment))
    days = look_again(moment)
    assert sum(day.speech_micros for day in days) == LATELY * YUAN
    assert days[-1].fee_micros == 3 * YUAN
    # At first the entries of all these days, but of nothing that is older.
    assert first[1] == 2 * (LATELY + 3)
    # Then what is not over yet. The one of two entries is thrown away.
    assert ledger_rows_read(lambda: look_again(moment)) == (3, 6)
    # However much more there was.
    happened("capture", OLD, last=moment - timedelta(days=REVENUE_DAYS + 1), apart=second)
    analysed()
    assert ledger_rows_read(lambda: look_again(moment)) == (3, 6)
    assert look_again(moment) == days


def test_what_comes_while_an_hour_is_fresh_is_counted_and_after_it_kept(moment: datetime) -> None:
    minute = timedelta(minutes=1)
    over = moment.replace(minute=0)
    happened("capture", 1, last=over, apart=minute)  # a minute before the hour was over
    assert look_again(over + 14 * minute)[-1].speech_micros == YUAN
    happened("refund", 1, last=over, apart=minute, amount=-1)
    assert look_again(over + 14 * minute)[-1].refunded_micros == 1
    # A quarter of an hour after its end it is remembered.
    assert look_again(over + 15 * minute)[-1].net_micros == YUAN - 1
    assert ledger_rows_read(lambda: look_again(over + 16 * minute)) == (0, 0)
    assert look_again(over + 16 * minute)[-1] == RevenueDay(moment.date(), YUAN, 0, 1)


def test_without_redis_all_is_read(moment: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    happened("capture", 7, last=moment, apart=timedelta(days=1))
    wanted = look_again(moment)

    def away(*_arguments: object, **_keywords: object) -> None:
        raise RedisError

    for name in ("get", "get_many", "set", "set_many"):
        monkeypatch.setattr(cache, name, away)
    assert revenue_by_day(now=moment) == wanted
    assert sum(day.speech_micros for day in wanted) == 7 * YUAN


@pytest.mark.parametrize(
    ("day", "zone", "hours"),
    [
        (date(2031, 3, 30), "Europe/Berlin", 23),
        (date(2031, 10, 26), "Europe/Berlin", 25),
        (date(2031, 3, 30), "Asia/Shanghai", 24),
        # Half an hour there and back.
        (date(2031, 4, 6), "Australia/Lord_Howe", 25),
        (date(2031, 10, 5), "Australia/Lord_Howe", 24),
    ],
)
def test_days_with_a_change_of_clocks_have_all_of_their_hours(day: date, zone: str, hours: int) -> None:
    starts = _hours_of(day, zone)
    assert len(starts) == hours
    following = _hours_of(day + timedelta(days=1), zone)
    assert timedelta(0) < following[0] - starts[-1] <= timedelta(hours=1)


def test_the_newest_refunds_are_found_without_reading_the_rest(moment: datetime) -> None:
    happened("capture", OLD, last=moment, apart=timedelta(seconds=1))
    happened("refund", 100, last=moment - timedelta(days=3), apart=timedelta(seconds=1), amount=-YUAN)
    analysed()
    with CaptureQueriesContext(connection) as captured:
        assert len(_refunds()) == 20
    (newest,) = (query["sql"] for query in captured if '"kind" = ' in query["sql"])
    assert rows_read(newest)["billing_ledgertransaction"] == 20
