"""Refunds of jobs and credit notes together never give back more than was charged."""

from __future__ import annotations

import uuid
from datetime import datetime

import pytest

from billing.errors import CreditNoteTooHigh, RefundTooHigh
from billing.models import BillingProfile, GrantKind, Hold, Invoice, InvoiceKind
from billing.services.credit_notes import credit, creditable
from billing.services.refunds import refund_job, refund_part
from tests.billing.books import all_books, assert_books_agree, at_once
from tests.billing.invoicing.months import LONG_AGO, YUAN, closed, money, november
from tests.billing.speech import plan, speak, subscribed

pytestmark = pytest.mark.django_db


def note(invoice: Invoice, micros: int | None, key: str = "1") -> Invoice:
    return credit(invoice_id=invoice.pk, reason="noise", idempotency_key=key, amount_micros=micros)


def refund(job_id: uuid.UUID, micros: int, key: str = "1") -> bool:
    return refund_part(job_id=job_id, amount_micros=micros, idempotency_key=key, reason="noise")


def test_what_a_note_gave_back_goes_back_to_no_job(customer: uuid.UUID) -> None:
    job_id = speak(customer, 10 * YUAN, finished_at=november(3))
    invoice = closed(customer)
    assert note(invoice, None).total_micros == 10_600_000
    before = all_books()
    with pytest.raises(RefundTooHigh):
        refund(job_id, 1)
    assert refund_job(job_id=job_id) == 0
    assert all_books() == before
    assert_books_agree(customer)


def test_a_note_over_a_part_leaves_the_rest_to_jobs(customer: uuid.UUID) -> None:
    subscribed(customer, plan(30 * YUAN), LONG_AGO)
    first = speak(customer, 4 * YUAN, finished_at=november(3))
    second = speak(customer, 6 * YUAN, finished_at=november(4))
    invoice = closed(customer)
    # 7 yuan and their tax: they count as speech, though there was a fee too.
    assert note(invoice, 7_420_000).net_micros == 7 * YUAN
    with pytest.raises(RefundTooHigh):
        refund(second, 3 * YUAN + 1)
    assert refund(second, 2 * YUAN)
    # Sent twice it is the same refund, also where no more would go.
    assert not refund(second, 2 * YUAN)
    assert refund_job(job_id=first) == YUAN
    with pytest.raises(RefundTooHigh):
        refund(second, 1, key="2")
    # The rest is for another note: 40 yuan were charged, and 10 are back.
    assert note(invoice, None, "2").net_micros == 30 * YUAN
    assert creditable(invoice) == 0


@pytest.mark.parametrize("tax_inclusive", [False, True])
def test_what_a_job_was_given_back_no_note_gives_back(customer: uuid.UUID, tax_inclusive: bool) -> None:
    BillingProfile.objects.filter(pk=customer).update(tax_inclusive=tax_inclusive)
    job_id = speak(customer, 10 * YUAN, finished_at=november(3))
    invoice = closed(customer)
    refund(job_id, 4 * YUAN)
    before = all_books()
    with pytest.raises(CreditNoteTooHigh):
        note(invoice, 6 * YUAN * (100 if tax_inclusive else 106) // 100 + 20_000)
    assert all_books() == before
    last = note(invoice, None)
    assert (last.total_micros if tax_inclusive else last.net_micros) == 6 * YUAN
    assert creditable(invoice) == 0


def test_a_note_says_nothing_of_the_jobs_of_another_month(customer: uuid.UUID) -> None:
    job_id = speak(customer, 10 * YUAN, finished_at=november(3))
    invoice = closed(customer)
    later = speak(customer, 5 * YUAN, finished_at=datetime.fromisoformat("2025-12-03T12:00Z"))
    note(invoice, None)
    assert refund_job(job_id=later) == 5 * YUAN
    with pytest.raises(RefundTooHigh):
        refund(job_id, 1)


def test_jobs_of_an_invoice_without_notes_are_refunded_whole(customer: uuid.UUID) -> None:
    job_id = speak(customer, 10 * YUAN, finished_at=november(3))
    closed(customer)
    assert refund_job(job_id=job_id) == 10 * YUAN


def test_what_given_credit_paid_goes_back_too(db: None) -> None:
    workspace_id = uuid.uuid4()
    money(workspace_id, 6 * YUAN, GrantKind.PROMOTIONAL)
    money(workspace_id, 50 * YUAN, GrantKind.PAID)
    job_id = speak(workspace_id, 10 * YUAN, finished_at=november(3))
    invoice = closed(workspace_id)
    assert invoice.total_micros == 4 * YUAN
    note(invoice, None)
    assert refund_job(job_id=job_id) == 6 * YUAN
    assert_books_agree(workspace_id)


@pytest.mark.django_db(transaction=True)
def test_notes_and_refunds_at_once_never_give_back_more_than_was_charged(customer: uuid.UUID) -> None:
    jobs = [speak(customer, 5 * YUAN, finished_at=november(3)) for _ in range(2)]
    invoice = closed(customer)

    def give_back(number: int) -> int:
        if number % 2:
            return note(invoice, 2_120_000, str(number)).net_micros
        refund(jobs[number // 2 % 2], 2 * YUAN, str(number))
        return 2 * YUAN

    outcomes = at_once(12, give_back)
    back = [outcome for outcome in outcomes if isinstance(outcome, int)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, RefundTooHigh | CreditNoteTooHigh)]
    assert len(back) + len(refused) == 12
    notes = Invoice.objects.filter(kind=InvoiceKind.CREDIT_NOTE)
    refunded = sum(Hold.objects.values_list("refunded_micros", flat=True))
    assert sum(back) == refunded + sum(notes.values_list("net_micros", flat=True))
    # Two of each ten yuan: five go through, whichever they are, unless what is left is too little for any.
    assert 8 * YUAN <= sum(back) <= 10 * YUAN
    assert_books_agree(customer)
