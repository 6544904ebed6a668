"""Each month is closed once: in any time zone, at a change of the clocks, and by many at once."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from billing.models import (
    CreditAccount,
    GrantKind,
    Invoice,
    InvoiceSeries,
    LedgerAccount,
    LedgerTransaction,
    TransactionKind,
)
from billing.periods import month_of
from billing.services.invoice_run import close_due_periods
from tests.billing.books import assert_books_agree, at_once, total
from tests.billing.invoicing.months import (
    LONG_AGO,
    NOVEMBER,
    OCTOBER,
    YUAN,
    closed,
    money,
    november,
)
from tests.billing.speech import plan, speak, subscribed


@pytest.mark.parametrize(
    ("time_zone", "month", "start", "end"),
    [
        ("Europe/Berlin", date(2026, 3, 1), "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"),
        ("Europe/Berlin", date(2026, 10, 1), "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"),
        # Midnight is skipped on the 6th of September, and on the 24th of April.
        ("America/Santiago", date(2026, 9, 1), "2026-09-01T04:00:00Z", "2026-10-01T03:00:00Z"),
        ("Africa/Cairo", date(2026, 4, 1), "2026-03-31T22:00:00Z", "2026-04-30T21:00:00Z"),
        ("Asia/Kolkata", date(2026, 2, 1), "2026-01-31T18:30:00Z", "2026-02-28T18:30:00Z"),
        # Here the month itself begins at one o'clock: midnight of the 1st of October was skipped.
        ("America/Asuncion", date(2017, 10, 1), "2017-10-01T04:00:00Z", "2017-11-01T03:00:00Z"),
    ],
)
def test_a_month_in_any_zone_has_one_invoice_with_all_that_was_spoken_in_it(
    customer: uuid.UUID, time_zone: str, month: date, start: str, end: str
) -> None:
    CreditAccount.objects.filter(pk=customer).update(time_zone=time_zone)
    first, last = datetime.fromisoformat(start), datetime.fromisoformat(end)
    assert (month_of(month, time_zone).start, month_of(month, time_zone).end) == (first, last)
    instant = timedelta(microseconds=1)
    inside = [first, first + timedelta(hours=1), last - timedelta(hours=1), last - instant]
    for moment in inside:
        speak(customer, YUAN, finished_at=moment)
    speak(customer, 5 * YUAN, finished_at=last)
    assert close_due_periods(at=last + timedelta(minutes=59)) == 0
    assert close_due_periods(at=last + timedelta(hours=1, minutes=1)) == 1
    assert close_due_periods(at=last + timedelta(hours=2)) == 0
    invoice = Invoice.objects.get()
    assert (invoice.period_start, invoice.period_end) == (first, last)
    assert invoice.usage_micros == len(inside) * YUAN
    assert closed(customer, month, last).pk == invoice.pk


def test_a_change_of_the_zone_leaves_no_gap_and_no_overlap(customer: uuid.UUID) -> None:
    CreditAccount.objects.filter(pk=customer).update(time_zone="Asia/Shanghai")
    subscribed(customer, plan(30 * YUAN), LONG_AGO)
    speak(customer, YUAN, finished_at=datetime(2025, 10, 31, 15, 59, tzinfo=UTC))
    october = closed(customer, OCTOBER)
    CreditAccount.objects.filter(pk=customer).update(time_zone="America/New_York")
    # Still October in New York, but after October's invoice.
    speak(customer, 2 * YUAN, finished_at=datetime(2025, 10, 31, 20, tzinfo=UTC))
    speak(customer, 4 * YUAN, finished_at=datetime(2025, 11, 2, 20, tzinfo=UTC))
    november_of = closed(customer, NOVEMBER)
    assert october.period_end == november_of.period_start == datetime(2025, 10, 31, 16, tzinfo=UTC)
    assert november_of.period_end == datetime(2025, 12, 1, 5, tzinfo=UTC)
    assert (october.usage_micros, november_of.usage_micros) == (YUAN, 6 * YUAN)
    assert (october.fee_micros, november_of.fee_micros) == (30 * YUAN, 30 * YUAN)


@pytest.mark.django_db(transaction=True)
def test_a_month_closed_by_ten_at_once_has_one_invoice() -> None:
    workspace_id = uuid.uuid4()
    money(workspace_id, 100 * YUAN, GrantKind.PAID)
    CreditAccount.objects.filter(pk=workspace_id).update(time_zone="Europe/Berlin")
    subscribed(workspace_id, plan(10 * YUAN), datetime(2025, 10, 5, tzinfo=UTC))
    speak(workspace_id, YUAN, finished_at=datetime(2025, 10, 26, 0, 30, tzinfo=ZoneInfo("Europe/Berlin")))
    at = datetime(2025, 11, 2, tzinfo=UTC)

    def close(number: int) -> uuid.UUID | int:
        if number % 2:
            return close_due_periods(at=at)
        return closed(workspace_id, OCTOBER, at).pk

    got = at_once(10, close)
    invoice = Invoice.objects.get()
    assert set(got[::2]) == {invoice.pk}
    made = [outcome for outcome in got[1::2] if isinstance(outcome, int)]
    assert len(made) == 5
    assert sum(made) in (0, 1)
    assert invoice.number == InvoiceSeries.objects.get().last_number == 1
    assert LedgerTransaction.objects.filter(kind=TransactionKind.FEE).count() == 1
    assert_books_agree(workspace_id)


@pytest.mark.django_db(transaction=True)
def test_speech_that_is_charged_while_the_month_is_closed_is_on_exactly_one_invoice() -> None:
    workspace_id = uuid.uuid4()
    money(workspace_id, 1000 * YUAN, GrantKind.PAID)
    speak(workspace_id, YUAN, finished_at=november(30, 23))

    def work(number: int) -> None:
        if number == 5:
            closed(workspace_id)
        else:
            speak(workspace_id, YUAN, finished_at=november(30, 23))

    assert at_once(12, work) == [None] * 12
    speak(workspace_id, YUAN, finished_at=datetime(2025, 12, 3, tzinfo=UTC))
    closed(workspace_id, date(2025, 12, 1), datetime(2026, 1, 2, tzinfo=UTC))
    first, second = Invoice.objects.order_by("period_start")
    assert first.usage_micros + second.usage_micros == 13 * YUAN
    assert total(workspace_id, LedgerAccount.REVENUE) == 13 * YUAN
