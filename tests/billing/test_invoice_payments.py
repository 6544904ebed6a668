"""Paying invoices, and money that an operator saw arrive."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accounts.models import Workspace
from billing.errors import (
    AmountInvalid,
    AmountNotPositive,
    AmountTooPrecise,
    CurrencyNotAccepted,
    IdempotencyKeyReused,
    InvoiceNotPayable,
    NoPaymentMethod,
    PaymentProviderUnknown,
    PaymentReferenceMissing,
    PaymentReferenceUsed,
    RefundExceedsPayment,
)
from billing.models import (
    Invoice,
    InvoiceKind,
    InvoiceState,
    Payment,
    PaymentMethod,
    PaymentPurpose,
    PaymentState,
    TransactionKind,
)
from billing.payments.base import RefundReport, ReportState
from billing.services import payment_methods
from billing.services.debits import debit
from billing.services.payment_asking import ask_open_payments
from billing.services.payment_refunds import record_refund_made_there, refund_payment
from billing.services.payments import begin_invoice_payment, record_payment
from portal.lib.errors import DomainError, NotFound
from tests.billing.books import all_books, assert_books_agree, at_once, balance
from tests.billing.fake_provider import Mishap
from tests.billing.fake_stripe_server import FakeStripe
from tests.billing.payers import YUAN, deliver, make_older, make_workspace, their_turn
from tests.billing.test_automatic_top_up import save_card


def make_invoice(workspace_id: uuid.UUID, **changed: Any) -> Invoice:
    """A final invoice of which 50 yuan are due, and owed by the wallet."""
    fields = {
        "workspace_id": workspace_id,
        "state": InvoiceState.FINAL,
        "number": Invoice.objects.count() + 1,
        "series": "T",
        "period_start": datetime(2026, 10, 1, tzinfo=UTC),
        "period_end": datetime(2026, 11, 1, tzinfo=UTC),
        "time_zone": "UTC",
        "currency": "CNY",
        "total_micros": 50 * YUAN,
        "due_micros": 50 * YUAN,
    }
    invoice = Invoice.objects.create(**{**fields, **changed})
    if invoice.due_micros > invoice.paid_micros:
        debit(
            workspace_id=workspace_id,
            amount_micros=invoice.due_micros - invoice.paid_micros,
            kind=TransactionKind.FEE,
            idempotency_key=f"invoice-fee:{invoice.pk}",
            may_owe=True,
        )
    return invoice


def pay(invoice: Invoice, key: str = "pay", method: PaymentMethod | None = None) -> Payment:
    return begin_invoice_payment(invoice=invoice, provider_name="stripe", idempotency_key=key, method=method)


def paid_micros(invoice: Invoice) -> int:
    return Invoice.objects.values_list("paid_micros", flat=True).get(pk=invoice.pk)


@pytest.fixture
def invoice(db: None, stripe: FakeStripe) -> Invoice:
    return make_invoice(make_workspace())


def test_a_charge_that_takes_days_is_not_made_again_by_a_repeated_form(
    invoice: Invoice, stripe: FakeStripe
) -> None:
    card = save_card(stripe, invoice.workspace_id)
    stripe.mishap(Mishap.DONE_BUT_BROKEN)
    pay(invoice, method=card)
    (charge,) = [thing for thing in stripe.things.values() if thing["object"] == "payment_intent"]
    charge["status"] = "processing"
    stripe.forget_keys()
    make_older(timedelta(days=2))
    assert ask_open_payments() == 1
    begun = Payment.objects.get()
    assert (begun.state, begun.provider_reference) == (PaymentState.CREATED, charge["id"])
    assert pay(invoice, method=card).state == PaymentState.CREATED
    assert stripe.calls["make_intent"] == 1
    charge |= {"status": "succeeded", "amount_received": charge["amount"]}
    assert pay(invoice, method=card).state == PaymentState.SUCCEEDED
    assert stripe.calls["make_intent"] == 1
    assert paid_micros(invoice) == 50 * YUAN


def test_an_invoice_is_paid_on_stripes_page(invoice: Invoice, stripe: FakeStripe) -> None:
    payment = pay(invoice)
    assert (payment.amount_micros, payment.purpose) == (50 * YUAN, PaymentPurpose.INVOICE)
    stripe.customer_pays(payment.provider_reference)
    for _ in range(2):
        deliver(stripe, "checkout.session.completed", stripe.things["cs_1"])
    assert paid_micros(invoice) == 50 * YUAN
    assert balance(invoice.workspace_id) == (0, 0)
    with pytest.raises(InvoiceNotPayable):
        pay(invoice, "again")
    assert_books_agree(invoice.workspace_id)


def test_an_invoice_is_paid_with_the_saved_card(invoice: Invoice, stripe: FakeStripe) -> None:
    save_card(stripe, invoice.workspace_id)
    method = payment_methods.default_method(invoice.workspace_id)
    payment = pay(invoice, method=method)
    assert (payment.state, payment.method) == (PaymentState.SUCCEEDED, method)
    assert paid_micros(invoice) == 50 * YUAN


def test_a_saved_card_that_times_out_after_taking_the_money_pays_once(
    invoice: Invoice, stripe: FakeStripe
) -> None:
    method = save_card(stripe, invoice.workspace_id)
    stripe.mishap(Mishap.DONE_BUT_UNANSWERED)
    payment = pay(invoice, method=method)
    assert payment.state == PaymentState.UNKNOWN
    with pytest.raises(InvoiceNotPayable):
        pay(invoice, "again", method)
    assert pay(invoice, method=method) == payment
    their_turn()
    ask_open_payments()
    assert paid_micros(invoice) == 50 * YUAN
    assert stripe.calls["make_intent"] == 1


def test_a_declined_card_leaves_the_invoice_open(invoice: Invoice, stripe: FakeStripe) -> None:
    method = save_card(stripe, invoice.workspace_id)
    stripe.declining.add(method.provider_reference)
    assert pay(invoice, method=method).failure_code == "card_declined"
    assert (paid_micros(invoice), balance(invoice.workspace_id)) == (0, (-50 * YUAN, 0))
    stripe.declining.clear()
    assert pay(invoice, "another", method).state == PaymentState.SUCCEEDED


def test_two_payments_of_one_invoice_are_not_begun(invoice: Invoice, stripe: FakeStripe) -> None:
    first = pay(invoice)
    with pytest.raises(InvoiceNotPayable):
        pay(invoice, "second")
    assert pay(invoice) == first
    assert Payment.objects.count() == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"state": InvoiceState.DRAFT, "number": None},
        {"kind": InvoiceKind.CREDIT_NOTE},
        {"paid_micros": 50 * YUAN},
        {"due_micros": 0},
    ],
)
def test_what_is_not_due_is_not_paid(db: None, stripe: FakeStripe, changed: dict[str, Any]) -> None:
    with pytest.raises(InvoiceNotPayable):
        pay(make_invoice(make_workspace(), **changed))
    assert Payment.objects.count() == 0


def test_another_workspaces_card_pays_nothing(invoice: Invoice, stripe: FakeStripe) -> None:
    foreign = save_card(stripe, make_workspace())
    with pytest.raises(NoPaymentMethod):
        pay(invoice, method=foreign)
    assert Payment.objects.count() == 0


def test_a_refund_and_a_dispute_open_the_invoice_again(invoice: Invoice, stripe: FakeStripe) -> None:
    method = save_card(stripe, invoice.workspace_id)
    payment = pay(invoice, method=method)
    there = RefundReport(reference="re_there", state=ReportState.SUCCEEDED, amount_micros=10 * YUAN)
    assert record_refund_made_there(payment_id=payment.pk, report=there)
    assert paid_micros(invoice) == 40 * YUAN
    dispute = stripe.dispute(payment.provider_reference)
    dispute["amount"] = 4_000
    deliver(stripe, "charge.dispute.funds_withdrawn", dispute)
    assert paid_micros(invoice) == 0
    stripe.win(dispute)
    deliver(stripe, "charge.dispute.funds_reinstated", dispute)
    assert paid_micros(invoice) == 40 * YUAN
    assert balance(invoice.workspace_id) == (-10 * YUAN, 0)
    assert_books_agree(invoice.workspace_id)


def give_back(payment: Payment, amount_micros: int) -> None:
    refund_payment(
        payment_id=payment.pk,
        amount_micros=amount_micros,
        reason="",
        idempotency_key="r",
        requested_by_id=None,
    )


def test_part_of_a_cent_is_paid_by_a_whole_one(db: None, stripe: FakeStripe) -> None:
    invoice = make_invoice(make_workspace(), due_micros=50 * YUAN - 1)
    method = save_card(stripe, invoice.workspace_id)
    assert pay(invoice, method=method).amount_micros == 50 * YUAN
    assert (paid_micros(invoice), balance(invoice.workspace_id)) == (50 * YUAN - 1, (1, 0))


def test_money_without_an_invoice_pays_the_oldest_and_a_payment_its_own_first(
    invoice: Invoice, stripe: FakeStripe
) -> None:
    older = invoice
    newer = make_invoice(
        older.workspace_id,
        period_start=datetime(2026, 11, 1, tzinfo=UTC),
        period_end=datetime(2026, 12, 1, tzinfo=UTC),
    )
    record(older.workspace_id, reference="own", idempotency_key="own", amount_micros=20 * YUAN, invoice=newer)
    assert (paid_micros(older), paid_micros(newer)) == (0, 20 * YUAN)
    record(older.workspace_id, amount_micros=60 * YUAN)
    assert (paid_micros(older), paid_micros(newer)) == (50 * YUAN, 30 * YUAN)
    assert pay(newer).amount_micros == 20 * YUAN
    assert balance(older.workspace_id) == (-20 * YUAN, 0)


def test_what_is_paid_twice_is_credit(invoice: Invoice, stripe: FakeStripe) -> None:
    given_up = pay(invoice)
    Payment.objects.update(state=PaymentState.EXPIRED)
    transfer = record(invoice.workspace_id, amount_micros=60 * YUAN, invoice=invoice)
    assert paid_micros(invoice) == 50 * YUAN
    stripe.customer_pays(given_up.provider_reference)
    deliver(stripe, "checkout.session.completed", stripe.things["cs_1"])
    assert (paid_micros(invoice), balance(invoice.workspace_id)) == (50 * YUAN, (60 * YUAN, 0))
    # What paid the invoice was spent; what is left of both is credit, and can go back.
    with pytest.raises(RefundExceedsPayment):
        give_back(transfer, 60 * YUAN)
    give_back(transfer, 10 * YUAN)
    give_back(given_up, 50 * YUAN)
    assert (paid_micros(invoice), balance(invoice.workspace_id)) == (50 * YUAN, (0, 0))
    assert_books_agree(invoice.workspace_id)


@pytest.mark.django_db(transaction=True)
def test_many_who_pay_one_invoice_at_once_pay_it_once(stripe: FakeStripe, settings: Any) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "TIMEOUT_S": 20}
    invoice = make_invoice(make_workspace())
    method = save_card(stripe, invoice.workspace_id)
    outcomes = at_once(8, lambda number: pay(invoice, str(number), method))
    assert sum(isinstance(outcome, Payment) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, InvoiceNotPayable) for outcome in outcomes) == 7
    assert (paid_micros(invoice), stripe.calls["make_intent"]) == (50 * YUAN, 1)


def record(workspace_id: uuid.UUID, **changed: Any) -> Payment:
    asked = {
        "workspace_id": workspace_id,
        "provider_name": "bank_transfer",
        "amount_micros": 1_234_560_000,
        "currency": "CNY",
        "reference": "20261130-1",
        "note": "seen on the statement",
        "recorded_by_id": uuid.UUID(int=7),
        "idempotency_key": "form-1",
    }
    return record_payment(**{**asked, **changed})


def test_a_transfer_is_recorded_and_booked_at_once(db: None) -> None:
    workspace_id = make_workspace()
    payment = record(workspace_id)
    assert record(workspace_id) == payment
    assert (payment.state, payment.recorded_by_id) == (PaymentState.SUCCEEDED, uuid.UUID(int=7))
    assert balance(workspace_id) == (1_234_560_000, 0)
    assert_books_agree(workspace_id)


def test_cash_pays_an_invoice(db: None) -> None:
    invoice = make_invoice(make_workspace())
    record(invoice.workspace_id, provider_name="cash", amount_micros=50 * YUAN, invoice=invoice)
    assert paid_micros(invoice) == 50 * YUAN


def test_a_deleted_workspace_still_pays_what_it_owes(db: None) -> None:
    invoice = make_invoice(make_workspace())
    record(invoice.workspace_id, reference="first", amount_micros=YUAN, idempotency_key="first")
    Workspace.objects.all().delete()
    record(invoice.workspace_id, amount_micros=50 * YUAN, invoice=invoice)
    assert paid_micros(invoice) == 50 * YUAN
    assert_books_agree(invoice.workspace_id)
    with pytest.raises(NotFound):
        record(uuid.uuid4(), reference="nobody's")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"provider_name": "stripe"}, PaymentProviderUnknown),
        ({"provider_name": "test"}, PaymentProviderUnknown),
        ({"amount_micros": 0}, AmountNotPositive),
        ({"amount_micros": -1}, AmountNotPositive),
        ({"amount_micros": 1}, AmountTooPrecise),
        ({"amount_micros": 2**63}, AmountInvalid),
        ({"amount_micros": 0.5}, AmountInvalid),
        ({"currency": "USD"}, CurrencyNotAccepted),
        ({"reference": " "}, PaymentReferenceMissing),
        ({"reference": "20261130-0", "idempotency_key": "another"}, PaymentReferenceUsed),
        ({"idempotency_key": "first"}, IdempotencyKeyReused),
    ],
)
def test_what_cannot_be_recorded_changes_nothing(
    db: None, changed: dict[str, Any], error: type[DomainError]
) -> None:
    workspace_id = make_workspace()
    record(workspace_id, reference="20261130-0", amount_micros=YUAN, idempotency_key="first")
    before = all_books()
    with pytest.raises(error):
        record(workspace_id, **changed)
    assert all_books() == before
    assert Payment.objects.count() == 1


def test_another_workspaces_invoice_is_not_paid_by_a_transfer(db: None) -> None:
    invoice = make_invoice(make_workspace())
    with pytest.raises(InvoiceNotPayable):
        record(make_workspace(), invoice=invoice)
    assert Payment.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_transfer_that_two_operators_record_is_booked_once(db: None) -> None:
    workspace_id = make_workspace()
    outcomes = at_once(6, lambda number: record(workspace_id, idempotency_key=str(number)))
    assert sum(isinstance(outcome, Payment) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, PaymentReferenceUsed) for outcome in outcomes) == 5
    assert balance(workspace_id) == (1_234_560_000, 0)
