"""A month in which more was given back than charged: a credit note, never an invoice below zero."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta

import pytest
from django.conf import LazySettings
from django.db import IntegrityError, transaction

from accounts.models import Workspace
from billing.errors import InvoiceNotPayable, NotAnInvoice
from billing.invoice_document import has_chinese_font, invoice_pdf
from billing.models import BillingProfile, Invoice, InvoiceKind, InvoiceState, LedgerAccount, LineKind
from billing.services.credit_notes import credit, creditable
from billing.services.invoice_run import close_due_periods
from billing.services.invoices import close_month, draft
from billing.services.payments import begin_invoice_payment
from billing.services.refunds import refund_part
from portal.lib.clock import database_now
from tests.billing.books import all_books, assert_books_agree, at_once, balance, total
from tests.billing.invoicing.months import YUAN, closed
from tests.billing.invoicing.test_documents import text_of
from tests.billing.speech import plan, speak, subscribed


def this_month() -> date:
    return database_now().date().replace(day=1)


def next_month(months: int = 1) -> date:
    month = this_month()
    for _ in range(months):
        month = (month + timedelta(days=32)).replace(day=1)
    return month


def after(month: date) -> datetime:
    """When that month is over."""
    return datetime.combine(month + timedelta(days=40), datetime.min.time(), UTC)


def charged_and_given_back(workspace_id: uuid.UUID, micros: int = 10 * YUAN) -> Invoice:
    """10 yuan of speech that are invoiced for this month, and then given back, dated by today; returns the invoice."""
    job_id = speak(workspace_id, 10 * YUAN, finished_at=database_now())
    invoice = closed(workspace_id, this_month(), after(this_month()))
    refund_part(job_id=job_id, amount_micros=micros, idempotency_key=str(job_id), reason="noise")
    return invoice


def note_of(workspace_id: uuid.UUID) -> Invoice:
    return closed(workspace_id, next_month(), after(next_month()))


def test_a_month_of_refunds_alone_is_a_credit_note_with_its_tax(customer: uuid.UUID) -> None:
    first = charged_and_given_back(customer)
    assert (first.total_micros, balance(customer)) == (10_600_000, (99_400_000, 0))
    note = note_of(customer)
    assert (note.kind, note.state, note.corrects, note.due_at) == (
        InvoiceKind.CREDIT_NOTE,
        InvoiceState.FINAL,
        None,
        None,
    )
    assert (note.series, note.number) == (f"CN{after(next_month()).year}", 1)
    assert (note.net_micros, note.tax_micros, note.total_micros) == (10 * YUAN, 600_000, 10_600_000)
    assert (note.usage_micros, note.prepaid_micros, note.due_micros) == (-10 * YUAN, 10_600_000, 0)
    assert list(note.lines.values_list("kind", "amount_micros")) == [(LineKind.REFUND, -10 * YUAN)]
    assert balance(customer) == (100 * YUAN, 0)
    assert total(customer, LedgerAccount.TAX) == total(customer, LedgerAccount.REVENUE) == 0
    assert_books_agree(customer)


def test_a_tax_in_the_prices_was_given_back_with_them(customer: uuid.UUID) -> None:
    BillingProfile.objects.filter(pk=customer).update(tax_inclusive=True)
    charged_and_given_back(customer)
    before = balance(customer)
    note = note_of(customer)
    # 6 % within 10 yuan.
    assert (note.net_micros, note.tax_micros, note.total_micros) == (9_430_000, 570_000, 10 * YUAN)
    assert balance(customer) == before == (100 * YUAN, 0)


@pytest.mark.parametrize(
    ("fee", "kind", "net"),
    [(4, InvoiceKind.CREDIT_NOTE, 6), (10, InvoiceKind.INVOICE, 0), (11, InvoiceKind.INVOICE, 1)],
)
def test_a_fee_of_the_month_is_taken_and_set_off(
    customer: uuid.UUID, fee: int, kind: InvoiceKind, net: int
) -> None:
    charged_and_given_back(customer)
    begins = datetime.combine(next_month(), datetime.min.time(), UTC)
    subscribed(customer, plan(fee * YUAN), begins)
    note = note_of(customer)
    assert (note.kind, note.fee_micros, note.net_micros) == (kind, fee * YUAN, net * YUAN)
    assert total(customer, LedgerAccount.REVENUE) == fee * YUAN
    assert total(customer, LedgerAccount.TAX) == fee * 60_000
    assert balance(customer) == (100 * YUAN - fee * 1_060_000, 0)


def test_the_month_is_closed_by_it_and_the_next_says_nothing_of_it(customer: uuid.UUID) -> None:
    charged_and_given_back(customer)
    note = note_of(customer)
    before = (all_books(), list(Invoice.objects.order_by("pk").values_list()))
    assert note_of(customer) == note
    assert draft(workspace_id=customer, month=next_month()) == note
    assert close_due_periods(at=after(next_month())) == 0
    assert (all_books(), list(Invoice.objects.order_by("pk").values_list())) == before
    assert close_month(workspace_id=customer, month=next_month(2), at=after(next_month(2))) is None
    begins = datetime.combine(next_month(2), datetime.min.time(), UTC)
    speak(customer, 3 * YUAN, finished_at=begins)
    third = closed(customer, next_month(2), after(next_month(2)))
    assert (third.kind, third.usage_micros) == (InvoiceKind.INVOICE, 3 * YUAN)
    assert third.period_start == note.period_end


def test_nobody_pays_it_or_corrects_it(customer: uuid.UUID, settings: LazySettings) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "PROVIDERS": ["test"], "TEST_PROVIDER": True}
    Workspace.objects.create(pk=customer, name="w")
    first = charged_and_given_back(customer)
    note = note_of(customer)
    before = all_books()
    with pytest.raises(InvoiceNotPayable):
        begin_invoice_payment(invoice=note, provider_name="test", idempotency_key="1")
    with pytest.raises(NotAnInvoice):
        credit(invoice_id=note.pk, reason="noise", idempotency_key="1")
    assert all_books() == before
    # All of it went back for its job, and goes back no second time.
    assert creditable(first) == 0


def test_no_final_document_has_a_total_below_zero(customer: uuid.UUID) -> None:
    charged_and_given_back(customer)
    draft(workspace_id=customer, month=next_month())
    with pytest.raises(IntegrityError, match="final_total_not_negative"), transaction.atomic():
        Invoice.objects.filter(state=InvoiceState.DRAFT).update(
            total_micros=-1, state=InvoiceState.FINAL, number=9, series="CN"
        )
    assert Invoice.objects.filter(state=InvoiceState.FINAL).count() == 1


def test_on_paper_it_says_what_goes_back(customer: uuid.UUID) -> None:
    if not has_chinese_font():
        BillingProfile.objects.filter(pk=customer).update(name="Acme")
    charged_and_given_back(customer)
    text = text_of(invoice_pdf(note_of(customer), language="en"))
    for expected in [
        "Credit note",
        "More was given back in this period than was charged.",
        "Given back · h200 CN¥10.00",
        "Given back, less speech CN¥10.00",
        "Tax at 6 % CN¥0.60",
        "Total CN¥10.60",
        "Given back to the balance CN¥10.60",
    ]:
        assert expected in text
    assert "Corrects the invoice" not in text
    assert "To be paid" not in text


@pytest.mark.django_db(transaction=True)
def test_ten_clocks_at_once_make_one_note(customer: uuid.UUID) -> None:
    charged_and_given_back(customer)
    outcomes = at_once(10, lambda _: note_of(customer).pk)
    assert len(set(outcomes)) == 1
    assert Invoice.objects.filter(kind=InvoiceKind.CREDIT_NOTE).count() == 1
    assert balance(customer) == (100 * YUAN, 0)
    assert_books_agree(customer)
