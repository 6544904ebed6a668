"""Top-ups: begun once, booked once, whatever is lost, repeated or late."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from accounts.models import Workspace
from billing.amounts import amount_from_text
from billing.errors import (
    AmountInvalid,
    AmountNotPositive,
    AmountOutOfRange,
    AmountTooPrecise,
    CurrencyNotAccepted,
    IdempotencyKeyReused,
    PaymentProviderUnknown,
)
from billing.models import CreditGrant, GrantKind, LedgerAccount, Payment, PaymentState
from billing.services.inbox import work_inbox
from billing.services.payment_asking import EXPIRES_AFTER, ask_open_payments, refresh_payment
from portal.lib.errors import DomainError, NotFound
from tests.billing.books import all_books, assert_books_agree, at_once, balance, total
from tests.billing.fake_provider import Mishap
from tests.billing.fake_stripe_server import FakeStripe, signature
from tests.billing.payers import (
    YUAN,
    deliver,
    make_older,
    make_workspace,
    paid_top_up,
    post_to_stripes_webhook,
    their_turn,
    top_up,
)


def test_a_top_up_is_paid_on_stripes_page_and_booked_as_paid_credit(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    assert payment.state == PaymentState.CREATED
    assert payment.pay_url == stripe.things[payment.provider_reference]["url"]
    assert balance(workspace_id) == (0, 0)
    intent = stripe.customer_pays(payment.provider_reference)
    assert (intent["amount"], intent["currency"]) == (5_000, "cny")
    deliver(stripe, "checkout.session.completed", stripe.things[payment.provider_reference])
    payment.refresh_from_db()
    assert (payment.state, payment.provider_reference) == (PaymentState.SUCCEEDED, intent["id"])
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert total(workspace_id, LedgerAccount.PAYMENTS) == -50 * YUAN
    grant = CreditGrant.objects.get(pk=payment.grant_id)
    assert (grant.kind, grant.amount_micros, grant.expires_at) == (GrantKind.PAID, 50 * YUAN, None)
    assert_books_agree(workspace_id)


def test_the_same_key_is_one_payment_and_one_page(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    first = top_up(workspace_id, idempotency_key="once")
    assert top_up(workspace_id, idempotency_key="once") == first
    assert Payment.objects.count() == 1
    assert stripe.calls["make_session"] == 1


def test_the_same_key_with_another_amount_is_refused(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    top_up(workspace_id, idempotency_key="once")
    with pytest.raises(IdempotencyKeyReused):
        top_up(workspace_id, idempotency_key="once", amount_micros=60 * YUAN)
    assert Payment.objects.get().amount_micros == 50 * YUAN


def test_two_workspaces_may_choose_the_same_key(db: None, stripe: FakeStripe) -> None:
    first, second = (
        top_up(make_workspace(), idempotency_key="k"),
        top_up(make_workspace(), idempotency_key="k"),
    )
    assert first.pk != second.pk
    assert first.provider_reference != second.provider_reference


@pytest.mark.parametrize(
    ("amount", "error"),
    [
        (0, AmountNotPositive),
        (-50 * YUAN, AmountNotPositive),
        (YUAN, AmountOutOfRange),
        (2**63, AmountOutOfRange),
        (10**40, AmountOutOfRange),
        (50 * YUAN + 1, AmountTooPrecise),
        (50.5 * YUAN, AmountInvalid),
        (True, AmountInvalid),
        ("50", AmountInvalid),
        (float("nan"), AmountInvalid),
    ],
)
def test_an_amount_that_cannot_be_paid_is_refused(
    db: None, stripe: FakeStripe, amount: Any, error: type[DomainError]
) -> None:
    workspace_id, before = make_workspace(), all_books()
    with pytest.raises(error):
        top_up(workspace_id, amount_micros=amount)
    assert all_books() == before
    assert Payment.objects.count() == 0
    assert not stripe.calls


def test_another_currency_is_refused(db: None, stripe: FakeStripe) -> None:
    with pytest.raises(CurrencyNotAccepted):
        top_up(make_workspace(), currency="USD")
    assert Payment.objects.count() == 0


@pytest.mark.parametrize("provider", ["alipay", "test", "bank_transfer", "cash", "paypal", ""])
def test_a_provider_that_is_not_offered_is_refused(db: None, stripe: FakeStripe, provider: str) -> None:
    with pytest.raises(PaymentProviderUnknown):
        top_up(make_workspace(), provider)
    assert Payment.objects.count() == 0


def test_a_deleted_workspace_begins_nothing(db: None, stripe: FakeStripe) -> None:
    with pytest.raises(NotFound):
        top_up(uuid.uuid4())
    assert Payment.objects.count() == 0


def test_a_payment_of_a_workspace_deleted_meanwhile_is_booked(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    Workspace.objects.all().delete()
    stripe.customer_pays(payment.provider_reference)
    deliver(stripe, "checkout.session.completed", stripe.things[payment.provider_reference])
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert_books_agree(workspace_id)


@pytest.mark.parametrize(
    ("text", "micros"), [("50", 50 * YUAN), (" 12.50 ", 12_500_000), ("0.01", 10_000), ("-3", -3 * YUAN)]
)
def test_an_amount_is_read_exactly(text: str, micros: int) -> None:
    assert amount_from_text(text, "CNY") == micros


@pytest.mark.parametrize("text", ["", "x", "1,5", "NaN", "Infinity", "1e999999", "１２", "9" * 30, "0x10"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(AmountInvalid):
        amount_from_text(text, "CNY")


@pytest.mark.parametrize(("text", "currency"), [("0.001", "CNY"), ("1.5", "JPY")])
def test_parts_of_the_smallest_coin_are_refused(text: str, currency: str) -> None:
    with pytest.raises(AmountTooPrecise):
        amount_from_text(text, currency)


@pytest.mark.parametrize("mishap", [Mishap.DONE_BUT_UNANSWERED, Mishap.DONE_BUT_BROKEN])
def test_a_page_whose_answer_was_lost_is_found_again_by_its_key(
    db: None, stripe: FakeStripe, mishap: Mishap
) -> None:
    stripe.mishap(mishap)
    payment = top_up(make_workspace())
    assert (payment.state, payment.pay_url) == (PaymentState.UNKNOWN, "")
    their_turn()
    assert ask_open_payments() == 1
    payment.refresh_from_db()
    assert payment.state == PaymentState.CREATED
    assert stripe.calls["make_session"] == 1
    assert payment.pay_url == stripe.things["cs_1"]["url"]


def test_a_provider_that_refuses_ends_the_payment(db: None, stripe: FakeStripe, settings: Any) -> None:
    workspace_id = make_workspace()
    settings.PAYMENTS = {**settings.PAYMENTS, "STRIPE_API_ADDRESS": stripe.address + "/elsewhere"}
    payment = top_up(workspace_id)
    assert (payment.state, payment.failure_code) == (PaymentState.FAILED, "resource_missing")
    assert balance(workspace_id) == (0, 0)


def test_a_page_that_was_never_there_is_given_up_without_an_answer(
    db: None, stripe: FakeStripe, settings: Any
) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "STRIPE_SECRET_KEY": "sk_revoked"}
    payment = top_up(make_workspace())
    assert (payment.state, payment.failure_code) == (PaymentState.UNKNOWN, "AuthenticationError")
    their_turn()
    assert ask_open_payments() == 1
    assert Payment.objects.get().state == PaymentState.UNKNOWN
    make_older(EXPIRES_AFTER)
    ask_open_payments()
    assert Payment.objects.get().state == PaymentState.EXPIRED


def test_a_page_that_was_there_is_not_given_up_without_an_answer(
    db: None, stripe: FakeStripe, settings: Any
) -> None:
    payment = top_up(make_workspace())
    stripe.customer_pays(payment.provider_reference)
    good, settings.PAYMENTS = settings.PAYMENTS, {**settings.PAYMENTS, "STRIPE_SECRET_KEY": "sk_revoked"}
    make_older(EXPIRES_AFTER)
    ask_open_payments()
    assert Payment.objects.get().state == PaymentState.UNKNOWN
    settings.PAYMENTS = good
    their_turn()
    ask_open_payments()
    assert Payment.objects.get().state == PaymentState.SUCCEEDED


def test_a_question_that_is_refused_concludes_nothing(db: None, stripe: FakeStripe) -> None:
    payment = top_up(make_workspace())
    stripe.customer_pays(payment.provider_reference)
    hidden = stripe.things.pop(payment.provider_reference)
    their_turn()
    ask_open_payments()
    assert Payment.objects.get().state == PaymentState.UNKNOWN
    stripe.things[payment.provider_reference] = hidden
    their_turn()
    ask_open_payments()
    assert Payment.objects.get().state == PaymentState.SUCCEEDED


def test_a_payment_that_breaks_something_does_not_keep_others_from_being_asked_about(
    db: None, stripe: FakeStripe, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        stripe.customer_pays(top_up(make_workspace()).provider_reference)
    their_turn()
    stripe.empty_answers = 1
    assert ask_open_payments() == 3
    assert Payment.objects.filter(state=PaymentState.SUCCEEDED).count() == 2
    broken = Payment.objects.get(state=PaymentState.CREATED)
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert vars(record)["payment"] == broken.pk
    their_turn()
    assert ask_open_payments() == 1
    assert Payment.objects.get(pk=broken.pk).state == PaymentState.SUCCEEDED


def test_a_lost_message_is_made_up_for_by_asking(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    stripe.customer_pays(payment.provider_reference)
    assert ask_open_payments() == 0
    make_older(timedelta(seconds=30))
    assert ask_open_payments() == 1
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert ask_open_payments() == 0


def test_a_customer_who_comes_back_sees_it_booked(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    make_older(timedelta(seconds=3))
    assert refresh_payment(payment_id=payment.pk).state == PaymentState.CREATED
    stripe.customer_pays(payment.provider_reference)
    assert refresh_payment(payment_id=payment.pk).state == PaymentState.CREATED  # asked a moment ago
    make_older(timedelta(seconds=3))
    assert refresh_payment(payment_id=payment.pk).state == PaymentState.SUCCEEDED
    assert balance(workspace_id) == (50 * YUAN, 0)


def test_a_page_that_nobody_pays_on_is_closed_there_and_here(db: None, stripe: FakeStripe) -> None:
    payment = top_up(make_workspace())
    make_older(EXPIRES_AFTER + timedelta(hours=1))
    ask_open_payments()
    payment.refresh_from_db()
    assert payment.state == PaymentState.EXPIRED
    assert stripe.things["cs_1"]["status"] == "expired"


def test_money_that_comes_after_the_end_is_booked(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    Payment.objects.filter(pk=payment.pk).update(state=PaymentState.EXPIRED)
    stripe.customer_pays(payment.provider_reference)
    deliver(stripe, "checkout.session.completed", stripe.things["cs_1"])
    payment.refresh_from_db()
    assert payment.state == PaymentState.SUCCEEDED
    assert balance(workspace_id) == (50 * YUAN, 0)


def test_another_amount_than_was_asked_for_is_not_booked(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    stripe.customer_pays(payment.provider_reference, amount=1)
    deliver(stripe, "checkout.session.completed", stripe.things["cs_1"])
    payment.refresh_from_db()
    assert (payment.state, payment.failure_code) == (PaymentState.UNKNOWN, "amount_mismatch")
    assert balance(workspace_id) == (0, 0)


def test_credit_that_is_owed_is_paid_first(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = paid_top_up(stripe, workspace_id)
    deliver(stripe, "charge.dispute.funds_withdrawn", stripe.dispute(payment.provider_reference))
    assert balance(workspace_id) == (0, 0)
    paid_top_up(stripe, workspace_id)
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert_books_agree(workspace_id)


@pytest.mark.django_db(transaction=True)
def test_many_who_book_the_same_payment_book_it_once(stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    stripe.customer_pays(payment.provider_reference)
    for number in range(8):
        # Stripe says it in eight messages, and eight clocks work on them at once.
        deliver_only(stripe, f"evt_race_{number}")
    outcomes = at_once(8, lambda _: work_inbox())
    assert sum(outcome for outcome in outcomes if isinstance(outcome, int)) == 8
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert CreditGrant.objects.filter(workspace_id=workspace_id).count() == 1
    assert_books_agree(workspace_id)


def deliver_only(fake: FakeStripe, event_id: str) -> None:
    body = fake.event("checkout.session.completed", fake.things["cs_1"], event_id)
    assert post_to_stripes_webhook(body, signature(body)).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_many_who_begin_with_one_key_begin_one_payment(stripe: FakeStripe, settings: Any) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "TIMEOUT_S": 20}
    workspace_id = make_workspace()
    outcomes = at_once(8, lambda _: top_up(workspace_id, idempotency_key="once"))
    assert {outcome.pk for outcome in outcomes if isinstance(outcome, Payment)} == {Payment.objects.get().pk}
    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
    assert stripe.calls["make_session"] == 1
