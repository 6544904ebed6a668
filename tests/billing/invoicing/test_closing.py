"""Closing a month: what the invoice says, and what it takes from the wallet."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from billing.errors import InvoiceCurrencyDiffers, LaterPeriodInvoiced, PeriodNotOver
from billing.models import (
    BillingProfile,
    CreditAccount,
    CreditGrant,
    GrantKind,
    Invoice,
    InvoiceLine,
    InvoiceSeries,
    InvoiceState,
    LedgerAccount,
    LedgerTransaction,
    LineKind,
    TransactionKind,
)
from billing.services.invoice_run import close_due_periods
from billing.services.invoices import close_month, draft
from tests.billing.books import all_books, assert_books_agree, balance, total
from tests.billing.invoicing.months import (
    AFTER,
    LONG_AGO,
    NOVEMBER,
    OCTOBER,
    YUAN,
    closed,
    money,
    november,
)
from tests.billing.speech import plan, speak, subscribed


def lines(invoice: Invoice) -> list[tuple[str, date | None, str, int]]:
    return list(
        invoice.lines.order_by("position").values_list("kind", "day", "device_class", "amount_micros")
    )


def amounts(invoice: Invoice) -> dict[str, int]:
    names = ("fee", "usage", "discount", "net", "tax", "total", "prepaid", "due", "paid")
    return {name: getattr(invoice, f"{name}_micros") for name in names}


def test_a_month_of_fee_and_speech(customer: uuid.UUID) -> None:
    subscribed(customer, plan(30 * YUAN), LONG_AGO)
    money(customer, 2 * YUAN, GrantKind.PROMOTIONAL)
    speak(customer, 3 * YUAN, finished_at=november(3))
    speak(customer, 1_234_567, finished_at=november(3), device_class="t4")
    speak(customer, 4 * YUAN, finished_at=november(9))
    speak(customer, 9 * YUAN, finished_at=datetime(2025, 10, 31, 23, 59, tzinfo=UTC) - timedelta(days=62))
    speak(customer, 9 * YUAN, finished_at=datetime(2025, 12, 1, tzinfo=UTC))
    invoice = closed(customer)
    assert lines(invoice) == [
        (LineKind.FEE, None, "", 30 * YUAN),
        (LineKind.USAGE, date(2025, 11, 3), "h200", 3 * YUAN),
        (LineKind.USAGE, date(2025, 11, 3), "t4", 1_234_567),
        (LineKind.USAGE, date(2025, 11, 9), "h200", 4 * YUAN),
        (LineKind.DISCOUNT, date(2025, 11, 3), "", -2 * YUAN),
    ]
    # The tax on 36.234567 yuan is 2.17407402.
    assert amounts(invoice) == {
        "fee": 30 * YUAN,
        "usage": 8_234_567,
        "discount": 2 * YUAN,
        "net": 36_234_567,
        "tax": 2_170_000,
        "total": 38_404_567,
        "prepaid": 38_404_567,
        "due": 0,
        "paid": 0,
    }
    assert balance(customer) == (102 * YUAN - 26_234_567 - 30 * YUAN - 2_170_000, 0)
    assert total(customer, LedgerAccount.TAX) == 2_170_000
    assert_books_agree(customer)


def test_a_tax_that_prices_contain_is_not_taken_again(customer: uuid.UUID) -> None:
    BillingProfile.objects.filter(pk=customer).update(tax_inclusive=True)
    subscribed(customer, plan(106 * YUAN // 2), LONG_AGO)
    invoice = closed(customer)
    assert amounts(invoice) | {"paid": 0} == {
        "fee": 53 * YUAN,
        "usage": 0,
        "discount": 0,
        "net": 50 * YUAN,
        "tax": 3 * YUAN,
        "total": 53 * YUAN,
        "prepaid": 53 * YUAN,
        "due": 0,
        "paid": 0,
    }
    assert balance(customer) == (47 * YUAN, 0)
    assert total(customer, LedgerAccount.TAX) == 0


def test_what_was_given_pays_no_fee_and_what_is_not_covered_is_due(customer: uuid.UUID) -> None:
    money(customer, 500 * YUAN, GrantKind.PROMOTIONAL)
    subscribed(customer, plan(150 * YUAN), LONG_AGO)
    invoice = closed(customer)
    assert amounts(invoice)["total"] == 159 * YUAN
    assert (amounts(invoice)["prepaid"], amounts(invoice)["due"]) == (100 * YUAN, 59 * YUAN)
    assert invoice.due_at == AFTER + timedelta(days=14)
    account = CreditAccount.objects.get(pk=customer)
    assert (account.owed_micros, account.available_micros) == (59 * YUAN, 441 * YUAN)
    assert_books_agree(customer)


def test_money_that_comes_in_pays_the_oldest_invoice_first(customer: uuid.UUID) -> None:
    subscribed(customer, plan(100 * YUAN), LONG_AGO)
    first, second = closed(customer, OCTOBER), closed(customer, NOVEMBER)
    assert (first.due_micros, second.due_micros) == (6 * YUAN, 106 * YUAN)
    money(customer, 10 * YUAN, GrantKind.PAID)
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.paid_micros, second.paid_micros) == (6 * YUAN, 4 * YUAN)
    money(customer, 200 * YUAN, GrantKind.PAID)
    second.refresh_from_db()
    assert second.paid_micros == 106 * YUAN
    assert CreditAccount.objects.get(pk=customer).owed_micros == 0
    assert_books_agree(customer)


def test_what_is_owed_for_speech_after_the_month_is_not_due_on_its_invoice(customer: uuid.UUID) -> None:
    CreditAccount.objects.filter(pk=customer).update(credit_limit_micros=1000 * YUAN)
    speak(customer, 130 * YUAN, finished_at=november(3))
    speak(customer, 50 * YUAN, finished_at=AFTER - timedelta(hours=1))
    invoice = closed(customer)
    assert (invoice.total_micros, invoice.tax_micros) == (137_800_000, 7_800_000)
    assert (invoice.prepaid_micros, invoice.due_micros) == (100 * YUAN, 37_800_000)
    december = closed(customer, date(2025, 12, 1), datetime(2026, 1, 2, tzinfo=UTC))
    assert (december.total_micros, december.due_micros) == (53 * YUAN, 53 * YUAN)
    assert CreditAccount.objects.get(pk=customer).owed_micros == 90_800_000


def test_speech_that_was_settled_late_is_on_the_next_invoice_once(customer: uuid.UUID) -> None:
    money(customer, 1 * YUAN, GrantKind.VOUCHER)
    speak(customer, 2 * YUAN, finished_at=november(30))
    first = closed(customer)
    money(customer, 1 * YUAN, GrantKind.VOUCHER)
    speak(customer, 5 * YUAN, finished_at=november(30))
    speak(customer, 7 * YUAN, finished_at=datetime(2025, 12, 5, tzinfo=UTC))
    before = lines(first)
    second = closed(customer, date(2025, 12, 1), datetime(2026, 1, 1, 6, tzinfo=UTC))
    assert lines(second) == [
        (LineKind.USAGE, date(2025, 11, 30), "h200", 5 * YUAN),
        (LineKind.USAGE, date(2025, 12, 5), "h200", 7 * YUAN),
        (LineKind.DISCOUNT, date(2025, 11, 30), "", -1 * YUAN),
    ]
    assert lines(first) == before
    third = close_month(workspace_id=customer, month=date(2026, 1, 1), at=datetime(2026, 2, 2, tzinfo=UTC))
    assert third is None


def test_a_month_with_nothing_to_bill_has_no_invoice(customer: uuid.UUID) -> None:
    assert close_month(workspace_id=customer, month=NOVEMBER, at=AFTER) is None
    assert not Invoice.objects.exists()


def test_a_month_that_is_not_over_is_refused(customer: uuid.UUID) -> None:
    CreditAccount.objects.filter(pk=customer).update(time_zone="America/Santiago")
    speak(customer, YUAN, finished_at=november(3))
    before = all_books()
    with pytest.raises(PeriodNotOver) as refused:
        close_month(workspace_id=customer, month=NOVEMBER, at=datetime(2025, 12, 1, 2, 59, 59, tzinfo=UTC))
    assert (refused.value.code, refused.value.status) == ("period_not_over", 409)
    assert all_books() == before
    assert not Invoice.objects.exists()
    assert closed(customer, at=datetime(2025, 12, 1, 3, tzinfo=UTC)).period_end == datetime(
        2025, 12, 1, 3, tzinfo=UTC
    )


def test_a_month_before_one_that_was_invoiced_is_refused(customer: uuid.UUID) -> None:
    speak(customer, YUAN, finished_at=november(3))
    closed(customer)
    before = all_books()
    for make in (close_month, draft):
        with pytest.raises(LaterPeriodInvoiced) as refused:
            make(workspace_id=customer, month=OCTOBER)
        assert (refused.value.code, refused.value.status) == ("later_period_invoiced", 409)
    assert all_books() == before
    assert Invoice.objects.count() == 1


def test_a_fee_in_another_currency_is_refused_and_keeps_nobody_waiting(customer: uuid.UUID) -> None:
    other = uuid.uuid4()
    money(other, 10 * YUAN, GrantKind.PAID)
    speak(other, YUAN, finished_at=november(4))
    subscribed(customer, plan(YUAN, currency="USD"), LONG_AGO)
    before = all_books()
    with pytest.raises(InvoiceCurrencyDiffers) as refused:
        close_month(workspace_id=customer, month=NOVEMBER, at=AFTER)
    assert (refused.value.code, refused.value.status) == ("invoice_currency_differs", 409)
    assert all_books() == before
    assert not Invoice.objects.exists()
    assert close_due_periods(at=AFTER) == 1
    assert Invoice.objects.get().workspace_id == other


def test_a_draft_moves_no_money_and_is_written_anew(customer: uuid.UUID) -> None:
    subscribed(customer, plan(30 * YUAN), november(16, 0))
    speak(customer, YUAN, finished_at=november(3))
    before = all_books()
    first = draft(workspace_id=customer, month=NOVEMBER)
    assert first is not None
    assert (first.state, first.number, first.total_micros) == (InvoiceState.DRAFT, None, 16_960_000)
    assert all_books() == before
    speak(customer, 2 * YUAN, finished_at=november(4))
    second = draft(workspace_id=customer, month=date(2025, 11, 17))
    assert second is not None
    assert (second.pk, second.total_micros) == (first.pk, 19_080_000)
    invoice = closed(customer)
    assert (invoice.pk, invoice.total_micros) == (first.pk, 19_080_000)
    assert Invoice.objects.count() == 1


def test_numbers_have_no_gaps_and_a_number_that_is_given_up_is_given_again(db: None) -> None:
    customers = [uuid.uuid4() for _ in range(3)]
    for workspace_id in customers:
        money(workspace_id, 10 * YUAN, GrantKind.PAID)
        speak(workspace_id, YUAN, finished_at=november(3))
    assert closed(customers[0]).number == 1
    with transaction.atomic():
        assert closed(customers[1]).number == 2
        transaction.set_rollback(True)
    assert closed(customers[2]).number == 2
    assert closed(customers[1]).number == 3
    assert InvoiceSeries.objects.values_list("series", "last_number").get() == ("INV2025", 3)


def test_who_was_billed_stays_on_the_invoice(customer: uuid.UUID) -> None:
    speak(customer, YUAN, finished_at=november(3))
    invoice = closed(customer)
    BillingProfile.objects.filter(pk=customer).update(name="Another")
    again = closed(customer)
    assert again.parties == invoice.parties
    assert again.parties["buyer"]["name"] == "Acme"
    assert again.parties["seller"]["name"] == "VoicePool"


def test_final_invoices_and_their_lines_are_never_changed(customer: uuid.UUID) -> None:
    speak(customer, YUAN, finished_at=november(3))
    invoice = closed(customer)
    line = invoice.lines.get()
    other = uuid.uuid4()
    money(other, 10 * YUAN, GrantKind.PAID)
    speak(other, YUAN, finished_at=november(3))
    drafted = draft(workspace_id=other, month=NOVEMBER)
    changes = [
        lambda: Invoice.objects.filter(pk=invoice.pk).update(total_micros=1),
        lambda: Invoice.objects.filter(pk=invoice.pk).update(number=7),
        lambda: Invoice.objects.filter(pk=invoice.pk).update(state="draft", number=None),
        lambda: Invoice.objects.filter(pk=invoice.pk)._raw_delete("default"),
        lambda: InvoiceLine.objects.filter(pk=line.pk).update(amount_micros=1),
        lambda: InvoiceLine.objects.filter(pk=line.pk).update(invoice=drafted, position=7),
        lambda: InvoiceLine.objects.filter(invoice=drafted).update(invoice=invoice, position=5),
        lambda: InvoiceLine.objects.filter(pk=line.pk).delete(),
        lambda: InvoiceLine.objects.create(invoice=invoice, position=9, kind="fee", amount_micros=1),
    ]
    for change in changes:
        with pytest.raises(IntegrityError, match="final"), transaction.atomic():
            change()
    invoice.refresh_from_db()
    assert (invoice.total_micros, invoice.number) == (1_060_000, 1)
    assert lines(invoice) == [(LineKind.USAGE, date(2025, 11, 3), "h200", YUAN)]


def test_the_months_that_are_over_are_closed_once_the_oldest_first(customer: uuid.UUID) -> None:
    subscribed(customer, plan(10 * YUAN), datetime(2025, 9, 1, tzinfo=UTC))
    assert close_due_periods(at=datetime(2025, 11, 1, 0, 59, tzinfo=UTC)) == 1
    assert close_due_periods(at=datetime(2025, 12, 1, 1, 1, tzinfo=UTC)) == 2
    assert close_due_periods(at=datetime(2025, 12, 1, 1, 1, tzinfo=UTC)) == 0
    assert list(Invoice.objects.order_by("number").values_list("period_start", flat=True)) == [
        datetime(2025, 9, 1, tzinfo=UTC),
        datetime(2025, 10, 1, tzinfo=UTC),
        datetime(2025, 11, 1, tzinfo=UTC),
    ]
    fees = LedgerTransaction.objects.filter(kind=TransactionKind.FEE)
    assert fees.count() == 3


def test_without_a_price_nothing_is_included_and_months_are_closed_all_the_same(customer: uuid.UUID) -> None:
    subscribed(customer, plan(YUAN, included_gpu_seconds=30), datetime(2025, 11, 1, tzinfo=UTC))
    assert close_due_periods(at=AFTER) == 1
    assert not CreditGrant.objects.filter(kind=GrantKind.INCLUDED).exists()
