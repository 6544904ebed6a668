"""Refunds: never more than was paid and is left of its credit, paid out once, put back when they fail."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from billing.errors import (
    AmountInvalid,
    AmountNotPositive,
    AmountTooPrecise,
    IdempotencyKeyReused,
    PaymentNotRefundable,
    RefundExceedsPayment,
)
from billing.models import CreditGrant, GrantKind, Payment, PaymentState, Refund, TransactionKind
from billing.services.debits import debit
from billing.services.payment_asking import refresh_payment
from billing.services.payment_refunds import ask_open_refunds, refund_payment, refundable_micros
from billing.services.payments import record_payment
from billing.services.refunds import refund_job
from portal.lib.errors import DomainError
from tests.billing.books import all_books, assert_books_agree, at_once, balance
from tests.billing.fake_alipay_server import FakeAlipay
from tests.billing.fake_provider import Mishap
from tests.billing.fake_stripe_server import FakeStripe
from tests.billing.payers import YUAN, deliver, make_older, make_workspace, paid_top_up, their_turn, top_up
from tests.billing.speech import speak


def refund(payment: Payment, amount_micros: Any, key: str = "") -> Refund:
    return refund_payment(
        payment_id=payment.pk,
        amount_micros=amount_micros,
        reason="asked for",
        idempotency_key=key or str(uuid.uuid4()),
        requested_by_id=None,
    )


def spend(workspace_id: uuid.UUID, amount_micros: int) -> None:
    debit(
        workspace_id=workspace_id,
        amount_micros=amount_micros,
        kind=TransactionKind.FEE,
        idempotency_key=str(uuid.uuid4()),
        may_owe=False,
    )


@pytest.fixture
def payment(db: None, stripe: FakeStripe) -> Payment:
    """50 yuan, paid and booked."""
    return paid_top_up(stripe, make_workspace())


def test_a_part_and_then_the_rest_go_back(payment: Payment, stripe: FakeStripe) -> None:
    first = refund(payment, 20 * YUAN)
    assert (first.state, stripe.things[first.provider_reference]["amount"]) == (PaymentState.SUCCEEDED, 2_000)
    second = refund(payment, 30 * YUAN)
    assert second.state == PaymentState.SUCCEEDED
    payment.refresh_from_db()
    assert payment.refunded_micros == 50 * YUAN
    assert balance(payment.workspace_id) == (0, 0)
    assert stripe.calls["make_refund"] == 2
    assert_books_agree(payment.workspace_id)


@pytest.mark.parametrize(
    ("amount", "error"),
    [
        (0, AmountNotPositive),
        (-YUAN, AmountNotPositive),
        (50 * YUAN + 10_000, RefundExceedsPayment),
        (10**30, RefundExceedsPayment),
        (YUAN + 1, AmountTooPrecise),
        (1.5, AmountInvalid),
        (True, AmountInvalid),
    ],
)
def test_an_amount_that_cannot_go_back_is_refused(
    payment: Payment, stripe: FakeStripe, amount: Any, error: type[DomainError]
) -> None:
    before = all_books()
    with pytest.raises(error):
        refund(payment, amount)
    assert all_books() == before
    assert Refund.objects.count() == 0
    assert stripe.calls["make_refund"] == 0


def test_what_was_spent_is_not_refunded(payment: Payment, stripe: FakeStripe) -> None:
    spend(payment.workspace_id, 45 * YUAN)
    before = all_books()
    assert refundable_micros(payment) == 5 * YUAN
    with pytest.raises(RefundExceedsPayment):
        refund(payment, 6 * YUAN)
    assert all_books() == before
    assert refund(payment, 5 * YUAN).state == PaymentState.SUCCEEDED


def test_another_payments_credit_is_not_refunded_with_it(payment: Payment, stripe: FakeStripe) -> None:
    spend(payment.workspace_id, 45 * YUAN)
    other = paid_top_up(stripe, payment.workspace_id)
    with pytest.raises(RefundExceedsPayment):
        refund(payment, 6 * YUAN)
    assert refund(other, 50 * YUAN).state == PaymentState.SUCCEEDED
    assert balance(payment.workspace_id) == (5 * YUAN, 0)
    assert_books_agree(payment.workspace_id)


def test_what_did_not_arrive_is_not_refunded(db: None, stripe: FakeStripe) -> None:
    payment = top_up(make_workspace())
    with pytest.raises(PaymentNotRefundable):
        refund(payment, YUAN)
    assert Refund.objects.count() == 0


def test_a_disputed_payment_is_not_refunded_as_well(payment: Payment, stripe: FakeStripe) -> None:
    deliver(stripe, "charge.dispute.funds_withdrawn", stripe.dispute(payment.provider_reference))
    paid_top_up(stripe, payment.workspace_id)
    with pytest.raises(RefundExceedsPayment):
        refund(payment, YUAN)


def test_the_same_key_is_one_refund(payment: Payment, stripe: FakeStripe) -> None:
    first = refund(payment, 10 * YUAN, "once")
    assert refund(payment, 10 * YUAN, "once") == first
    with pytest.raises(IdempotencyKeyReused):
        refund(payment, 11 * YUAN, "once")
    assert stripe.calls["make_refund"] == 1
    assert balance(payment.workspace_id) == (40 * YUAN, 0)


@pytest.mark.parametrize("mishap", list(Mishap))
def test_a_refund_without_an_answer_is_paid_out_once(
    payment: Payment, stripe: FakeStripe, mishap: Mishap
) -> None:
    stripe.mishap(mishap)
    unknown = refund(payment, 10 * YUAN)
    assert unknown.state == PaymentState.UNKNOWN
    # Nobody can spend it while it is not known where it is.
    assert balance(payment.workspace_id) == (40 * YUAN, 0)
    assert ask_open_refunds() == 0
    their_turn()
    assert ask_open_refunds() == 1
    unknown.refresh_from_db()
    assert unknown.state == PaymentState.SUCCEEDED
    assert stripe.calls["make_refund"] == 1
    assert balance(payment.workspace_id) == (40 * YUAN, 0)
    assert_books_agree(payment.workspace_id)


def test_days_later_it_is_looked_for_and_not_made_again(payment: Payment, stripe: FakeStripe) -> None:
    stripe.mishap(Mishap.DONE_BUT_BROKEN)
    unknown = refund(payment, 10 * YUAN)
    stripe.forget_keys()
    make_older(timedelta(days=2))
    ask_open_refunds()
    unknown.refresh_from_db()
    assert unknown.state == PaymentState.SUCCEEDED
    assert stripe.calls["make_refund"] == 1


def test_a_question_about_a_refund_that_is_refused_concludes_nothing(
    payment: Payment, stripe: FakeStripe
) -> None:
    stripe.mishap(Mishap.DONE_BUT_BROKEN)
    paid_out = refund(payment, 10 * YUAN)
    (thing,) = [thing for thing in stripe.things.values() if thing["object"] == "refund"]
    thing["status"] = "pending"
    stripe.forget_keys()
    make_older(timedelta(days=2))

    def ask(refusing: str = "") -> tuple[str, str]:
        stripe.refusing = {refusing}
        their_turn()
        assert ask_open_refunds() == 1
        paid_out.refresh_from_db()
        return paid_out.state, paid_out.failure_code

    assert ask("list_refunds") == (PaymentState.UNKNOWN, "resource_missing")
    assert ask()[0] == PaymentState.CREATED
    assert paid_out.provider_reference == thing["id"]
    assert ask("read") == (PaymentState.UNKNOWN, "resource_missing")
    assert balance(payment.workspace_id) == (40 * YUAN, 0)
    thing["status"] = "succeeded"
    assert ask() == (PaymentState.SUCCEEDED, "")
    assert balance(payment.workspace_id) == (40 * YUAN, 0)
    assert stripe.calls["make_refund"] == 1


def test_a_repeated_refund_that_another_account_refuses_concludes_nothing(
    payment: Payment, stripe: FakeStripe, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripe.mishap(Mishap.DONE_BUT_BROKEN)
    paid_out = refund(payment, 10 * YUAN)
    with monkeypatch.context() as patched:
        patched.setattr(stripe, "things", {})
        patched.setattr(stripe, "_answers", {})
        their_turn()
        assert ask_open_refunds() == 1
        # Nothing was sent of this one before.
        refused = refund(payment, 5 * YUAN)
    paid_out.refresh_from_db()
    assert (paid_out.state, paid_out.failure_code) == (PaymentState.UNKNOWN, "resource_missing")
    assert (refused.state, refused.failure_code) == (PaymentState.FAILED, "resource_missing")
    assert balance(payment.workspace_id) == (40 * YUAN, 0)
    their_turn()
    assert ask_open_refunds() == 1
    paid_out.refresh_from_db()
    assert paid_out.state == PaymentState.SUCCEEDED
    assert balance(payment.workspace_id) == (40 * YUAN, 0)
    assert_books_agree(payment.workspace_id)


def test_a_refund_that_breaks_something_does_not_keep_others_from_being_asked_about(
    payment: Payment, stripe: FakeStripe
) -> None:
    for _ in range(3):
        stripe.mishap(Mishap.NOT_DONE_AND_BROKEN)
        refund(payment, 10 * YUAN)
    their_turn()
    stripe.empty_answers = 1
    assert ask_open_refunds() == 3
    assert Refund.objects.filter(state=PaymentState.SUCCEEDED).count() == 2
    assert Refund.objects.filter(state=PaymentState.UNKNOWN).count() == 1
    their_turn()
    assert ask_open_refunds() == 1
    assert Refund.objects.filter(state=PaymentState.SUCCEEDED).count() == 3
    assert balance(payment.workspace_id) == (20 * YUAN, 0)


def test_a_refused_refund_puts_the_credit_back_where_it_was(payment: Payment, stripe: FakeStripe) -> None:
    # Somebody refunded all of it at Stripe, and the message is not here yet.
    made_there = stripe.refund(payment.provider_reference, 5_000)
    made_there["status"] = "pending"
    refused = refund(payment, 10 * YUAN)
    assert (refused.state, refused.failure_code) == (PaymentState.FAILED, "charge_already_refunded")
    payment.refresh_from_db()
    assert payment.refunded_micros == 0
    assert CreditGrant.objects.get(pk=payment.grant_id).remaining_micros == 50 * YUAN
    assert balance(payment.workspace_id) == (50 * YUAN, 0)
    assert_books_agree(payment.workspace_id)


def test_a_refund_that_bounces_later_puts_the_credit_back_once(payment: Payment, stripe: FakeStripe) -> None:
    done = refund(payment, 50 * YUAN)
    assert CreditGrant.objects.get(pk=payment.grant_id).is_spent
    thing = stripe.things[done.provider_reference]
    thing |= {"status": "failed", "failure_reason": "lost_or_stolen_card"}
    for _ in range(2):
        deliver(stripe, "refund.failed", thing)
    done.refresh_from_db()
    assert (done.state, done.failure_code) == (PaymentState.FAILED, "lost_or_stolen_card")
    assert balance(payment.workspace_id) == (50 * YUAN, 0)
    assert_books_agree(payment.workspace_id)
    assert refund(payment, 50 * YUAN).state == PaymentState.SUCCEEDED


def test_a_refund_made_at_stripe_is_booked_once_even_when_it_was_spent(
    payment: Payment, stripe: FakeStripe
) -> None:
    spend(payment.workspace_id, 45 * YUAN)
    made_there = stripe.refund(payment.provider_reference, 2_000)
    for _ in range(3):
        deliver(stripe, "refund.created", made_there)
    payment.refresh_from_db()
    assert payment.refunded_micros == 20 * YUAN
    assert balance(payment.workspace_id) == (-15 * YUAN, 0)
    assert Refund.objects.get().state == PaymentState.SUCCEEDED
    assert_books_agree(payment.workspace_id)


def test_a_refund_made_at_stripe_that_bounces_comes_back_once(payment: Payment, stripe: FakeStripe) -> None:
    made_there = stripe.refund(payment.provider_reference, 2_000)
    deliver(stripe, "refund.created", made_there)
    assert balance(payment.workspace_id) == (30 * YUAN, 0)
    made_there |= {"status": "failed", "failure_reason": "expired_or_canceled_card"}
    for _ in range(2):
        deliver(stripe, "refund.failed", made_there)
    bounced = Refund.objects.get()
    assert (bounced.state, bounced.failure_code) == (PaymentState.FAILED, "expired_or_canceled_card")
    payment.refresh_from_db()
    assert payment.refunded_micros == 0
    assert balance(payment.workspace_id) == (50 * YUAN, 0)
    assert_books_agree(payment.workspace_id)


def test_a_bounced_refund_that_its_grant_has_no_room_for_comes_back_beside_it(
    payment: Payment, stripe: FakeStripe
) -> None:
    job_id = speak(payment.workspace_id, 45 * YUAN, finished_at=datetime(2026, 11, 1, tzinfo=UTC))
    made_there = stripe.refund(payment.provider_reference, 5_000)
    deliver(stripe, "refund.created", made_there)
    # What is owed now is paid by another top-up, and what the job had cost goes back into the first.
    other = paid_top_up(stripe, payment.workspace_id)
    assert refund_job(job_id=job_id) == 45 * YUAN
    assert CreditGrant.objects.get(pk=payment.grant_id).remaining_micros == 45 * YUAN
    made_there |= {"status": "failed", "failure_reason": "expired_or_canceled_card"}
    for _ in range(2):
        deliver(stripe, "refund.failed", made_there)
    assert Refund.objects.get().state == PaymentState.FAILED
    assert balance(payment.workspace_id) == (100 * YUAN, 0)
    rest = CreditGrant.objects.exclude(pk__in=[payment.grant_id, other.grant_id]).get()
    assert (rest.kind, rest.priority, rest.remaining_micros) == (GrantKind.PAID, 40, 45 * YUAN)
    assert CreditGrant.objects.get(pk=payment.grant_id).remaining_micros == 50 * YUAN
    assert_books_agree(payment.workspace_id)


def test_our_own_refund_is_not_booked_again_by_its_message(payment: Payment, stripe: FakeStripe) -> None:
    done = refund(payment, 10 * YUAN)
    before = all_books()
    deliver(stripe, "refund.created", stripe.things[done.provider_reference])
    assert all_books() == before
    assert Refund.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_many_refunds_at_once_never_exceed_what_was_paid(stripe: FakeStripe, settings: Any) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "TIMEOUT_S": 20}
    payment = paid_top_up(stripe, make_workspace())
    outcomes = at_once(10, lambda number: refund(payment, 20 * YUAN, str(number)))
    assert sum(isinstance(outcome, Refund) for outcome in outcomes) == 2
    assert sum(isinstance(outcome, RefundExceedsPayment) for outcome in outcomes) == 8
    payment.refresh_from_db()
    assert payment.refunded_micros == 40 * YUAN
    assert balance(payment.workspace_id) == (10 * YUAN, 0)
    assert_books_agree(payment.workspace_id)


def test_a_transfer_is_paid_back_by_hand_and_written_down(db: None) -> None:
    payment = record_payment(
        workspace_id=make_workspace(),
        provider_name="bank_transfer",
        amount_micros=7 * YUAN,
        currency="CNY",
        reference="T-1",
        note="",
        recorded_by_id=uuid.uuid4(),
        idempotency_key="r",
    )
    assert refund(payment, 7 * YUAN).state == PaymentState.SUCCEEDED
    assert balance(payment.workspace_id) == (0, 0)


@pytest.mark.parametrize("mishap", list(Mishap))
def test_alipay_pays_a_refund_out_once(db: None, alipay: FakeAlipay, mishap: Mishap) -> None:
    payment = top_up(make_workspace(), "alipay")
    trade = alipay.customer_pays(payment.pay_url)
    their_turn()
    payment = refresh_payment(payment_id=payment.pk)
    assert payment.state == PaymentState.SUCCEEDED
    alipay.mishap(mishap)
    unknown = refund(payment, 12_340_000)
    assert unknown.state == PaymentState.UNKNOWN
    their_turn()
    ask_open_refunds()
    unknown.refresh_from_db()
    assert unknown.state == PaymentState.SUCCEEDED
    assert [str(r["amount"]) for r in alipay.refunds.values()] == ["12.34"]
    assert trade["out_trade_no"] == str(payment.pk)
    assert balance(payment.workspace_id) == (37_660_000, 0)
    assert_books_agree(payment.workspace_id)


def test_a_question_about_a_refund_that_alipay_refuses_concludes_nothing(
    db: None, alipay: FakeAlipay, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment = top_up(make_workspace(), "alipay")
    alipay.customer_pays(payment.pay_url)
    their_turn()
    payment = refresh_payment(payment_id=payment.pk)
    alipay.mishap(Mishap.DONE_BUT_BROKEN)
    paid_out = refund(payment, 10 * YUAN)
    refused = {"code": "40004", "sub_code": "ACQ.INVALID_PARAMETER"}
    with monkeypatch.context() as patched:
        patched.setattr(alipay, "_query_refund", lambda _content: refused)
        their_turn()
        assert ask_open_refunds() == 1
    paid_out.refresh_from_db()
    assert (paid_out.state, paid_out.failure_code) == (PaymentState.UNKNOWN, "ACQ.INVALID_PARAMETER")
    assert balance(payment.workspace_id) == (40 * YUAN, 0)
    their_turn()
    assert ask_open_refunds() == 1
    paid_out.refresh_from_db()
    assert paid_out.state == PaymentState.SUCCEEDED
    assert balance(payment.workspace_id) == (40 * YUAN, 0)
