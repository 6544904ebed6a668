"""Messages of providers: signed, stored once, worked on in any order and any number of times."""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from billing.models import Dispute, DisputeState, Payment, PaymentState, ProviderEvent, TransactionKind
from billing.services.debits import debit
from billing.services.inbox import GIVEN_UP_AFTER, work_inbox
from tests.billing.books import all_books, assert_books_agree, at_once, balance
from tests.billing.fake_alipay_server import FakeAlipay, shop_key
from tests.billing.fake_provider import Mishap
from tests.billing.fake_stripe_server import WEBHOOK_SECRET, FakeStripe, signature
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


def post_to_alipays_webhook(body: bytes) -> Any:
    return Client().post("/billing/webhooks/alipay", body, "application/x-www-form-urlencoded")


def assert_refused(response: Any) -> None:
    assert response.status_code == 400
    assert response.json()["code"] == "webhook_refused"
    assert ProviderEvent.objects.count() == 0


def test_a_message_is_stored_and_answered_before_it_is_worked_on(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    stripe.customer_pays(payment.provider_reference)
    asked_before = sum(stripe.calls.values())
    body = stripe.event("checkout.session.completed", stripe.things["cs_1"], "evt_a")
    assert post_to_stripes_webhook(body, signature(body)).status_code == 200
    event = ProviderEvent.objects.get()
    assert (event.provider, event.event_id, event.subject) == ("stripe", "evt_a", "checkout.session:cs_1")
    assert event.processed_at is None
    assert sum(stripe.calls.values()) == asked_before
    assert balance(workspace_id) == (0, 0)
    assert work_inbox() == 1
    assert balance(workspace_id) == (50 * YUAN, 0)


def test_a_replay_is_answered_and_changes_nothing(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    paid_top_up(stripe, workspace_id)
    body = stripe.event("checkout.session.completed", stripe.things["cs_1"], "evt_again")
    signed = signature(body)
    assert post_to_stripes_webhook(body, signed).status_code == 200
    work_inbox()
    events = list(ProviderEvent.objects.order_by("pk").values_list())
    before = all_books()
    assert post_to_stripes_webhook(body, signed).status_code == 200
    assert work_inbox() == 0
    assert all_books() == before
    assert list(ProviderEvent.objects.order_by("pk").values_list()) == events


@pytest.mark.parametrize(
    "change",
    [
        lambda body: signature(body, secret="whsec_other"),
        lambda body: signature(body + b" "),
        lambda body: signature(body, sent_at=time.time() - 301),
        lambda body: "",
        lambda body: "t=now,v1=00",
        lambda body: "t=1",
        lambda body: f"t={int(time.time())},v1=" + "é",
    ],
    ids=["secret", "body", "old", "none", "no time", "no signature", "not ascii"],
)
def test_a_wrong_signature_stores_nothing(db: None, stripe: FakeStripe, change: Any) -> None:
    body = stripe.event("checkout.session.completed", {"object": "checkout.session", "id": "cs_1"})
    assert_refused(post_to_stripes_webhook(body, change(body)))


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff\xfe", b'{"id": 1, "object": "event"}', b"null"])
def test_a_signed_body_that_is_no_message_stores_nothing(db: None, stripe: FakeStripe, body: bytes) -> None:
    text = body.decode("latin-1").encode()
    assert_refused(post_to_stripes_webhook(body, signature(text if body[:1] == b"\xff" else body)))


def test_both_secrets_are_good_while_one_is_being_changed(
    db: None, stripe: FakeStripe, settings: Any
) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "STRIPE_WEBHOOK_SECRETS": ["whsec_new", WEBHOOK_SECRET]}
    for number, secret in enumerate(["whsec_new", WEBHOOK_SECRET]):
        body = stripe.event("ping", {"object": "balance"}, f"evt_secret_{number}")
        assert post_to_stripes_webhook(body, signature(body, secret=secret)).status_code == 200
    assert ProviderEvent.objects.count() == 2


def test_without_a_secret_nothing_is_taken(db: None, stripe: FakeStripe, settings: Any) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "STRIPE_WEBHOOK_SECRETS": []}
    body = stripe.event("ping", {"object": "balance"})
    assert_refused(post_to_stripes_webhook(body, signature(body, secret="")))


@pytest.mark.parametrize("provider", ["alipay", "test", "nobody"])
def test_who_is_not_set_up_has_no_webhook(db: None, stripe: FakeStripe, provider: str) -> None:
    response = Client().post(f"/billing/webhooks/{provider}", b"{}", "application/json")
    assert response.status_code == 404
    assert ProviderEvent.objects.count() == 0


@pytest.mark.parametrize("provider", ["bank_transfer", "cash"])
def test_who_is_recorded_by_hand_sends_no_messages(db: None, provider: str) -> None:
    assert_refused(Client().post(f"/billing/webhooks/{provider}", b"{}", "application/json"))


def test_only_post_is_taken_and_no_cookie_is_set(db: None, stripe: FakeStripe) -> None:
    assert Client().get("/billing/webhooks/stripe").status_code == 405
    body = stripe.event("ping", {"object": "balance"})
    response = Client(enforce_csrf_checks=True).post(
        "/billing/webhooks/stripe", body, "application/json", headers={"Stripe-Signature": signature(body)}
    )
    assert (response.status_code, len(response.cookies)) == (200, 0)


def test_what_is_about_nothing_of_ours_is_put_aside(db: None, stripe: FakeStripe) -> None:
    foreign = stripe._intent(1, "cny", metadata={})
    unknown = stripe._intent(1, "cny", metadata={"payment_id": "6f9619ff-8b86-4011-b42d-00c04fc964ff"})
    for thing in (foreign, unknown, {"object": "payout", "id": "po_1"}, {"object": "balance"}):
        deliver(stripe, "something", thing)
    assert set(ProviderEvent.objects.values_list("error_code", flat=True)) == {"not_ours"}
    assert not ProviderEvent.objects.filter(processed_at=None).exists()


def test_a_message_is_believed_only_as_far_as_the_provider_confirms_it(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    claimed = {**stripe.things["cs_1"], "status": "complete", "payment_status": "paid"}
    deliver(stripe, "checkout.session.completed", claimed)
    payment.refresh_from_db()
    assert payment.state == PaymentState.CREATED
    assert balance(workspace_id) == (0, 0)


def test_a_provider_that_is_away_is_asked_again(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    stripe.customer_pays(payment.provider_reference)
    stripe.mishap(Mishap.NOT_DONE_AND_BROKEN)
    deliver(stripe, "checkout.session.completed", stripe.things["cs_1"])
    event = ProviderEvent.objects.get()
    assert (event.processed_at, event.tries, event.error_code) == (None, 1, "APIError")
    assert work_inbox() == 0
    their_turn()
    assert work_inbox() == 1
    assert balance(workspace_id) == (50 * YUAN, 0)


def test_a_message_that_leads_nowhere_is_given_up_after_days(db: None, stripe: FakeStripe) -> None:
    deliver(stripe, "payment_intent.succeeded", {"object": "payment_intent", "id": "pi_none"})
    event = ProviderEvent.objects.get()
    assert (event.processed_at, event.error_code) == (None, "resource_missing")
    make_older(GIVEN_UP_AFTER)
    work_inbox()
    event.refresh_from_db()
    assert event.processed_at is not None
    assert event.error_code == "resource_missing"


def test_a_chargeback_after_the_credit_was_spent_is_owed(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = paid_top_up(stripe, workspace_id)
    debit(
        workspace_id=workspace_id,
        amount_micros=40 * YUAN,
        kind=TransactionKind.FEE,
        idempotency_key="spent",
        may_owe=False,
    )
    dispute = stripe.dispute(payment.provider_reference)
    for kind in ("charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.updated"):
        deliver(stripe, kind, dispute)
    assert balance(workspace_id) == (-40 * YUAN, 0)
    payment.refresh_from_db()
    assert payment.disputed_micros == 50 * YUAN
    assert_books_agree(workspace_id)
    stripe.win(dispute)
    for _ in range(2):
        deliver(stripe, "charge.dispute.funds_reinstated", dispute)
        deliver(stripe, "charge.dispute.closed", dispute)
    assert balance(workspace_id) == (10 * YUAN, 0)
    payment.refresh_from_db()
    assert payment.disputed_micros == 0
    assert Dispute.objects.get().state == DisputeState.WON
    assert_books_agree(workspace_id)


def test_a_dispute_that_is_only_announced_moves_nothing(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = paid_top_up(stripe, workspace_id)
    dispute = stripe.dispute(payment.provider_reference)
    dispute |= {"status": "warning_needs_response", "balance_transactions": []}
    deliver(stripe, "charge.dispute.created", dispute)
    assert balance(workspace_id) == (50 * YUAN, 0)
    dispute |= {"status": "lost", "balance_transactions": [{"amount": -5_000}]}
    deliver(stripe, "charge.dispute.closed", dispute)
    assert balance(workspace_id) == (0, 0)
    assert Dispute.objects.get().state == DisputeState.LOST


def test_a_dispute_that_comes_before_its_payment_is_booked_after_it(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    intent = stripe.customer_pays(payment.provider_reference)
    # A moment ago the customer's page was asked about, so it is not asked again now.
    Payment.objects.update(asked_at=datetime.now(UTC))
    dispute = stripe.dispute(intent["id"])
    deliver(stripe, "charge.dispute.funds_withdrawn", dispute)
    assert ProviderEvent.objects.get().error_code == "payment_not_booked"
    their_turn()
    assert work_inbox() == 1
    payment.refresh_from_db()
    assert (payment.state, payment.disputed_micros) == (PaymentState.SUCCEEDED, 50 * YUAN)
    assert balance(workspace_id) == (0, 0)
    assert_books_agree(workspace_id)


def test_won_before_it_was_withdrawn_ends_the_same(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = paid_top_up(stripe, workspace_id)
    dispute = stripe.dispute(payment.provider_reference)
    stripe.win(dispute)
    for kind in (
        "charge.dispute.funds_reinstated",
        "charge.dispute.funds_withdrawn",
        "charge.dispute.created",
    ):
        deliver(stripe, kind, dispute)
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert_books_agree(workspace_id)


@pytest.mark.django_db(transaction=True)
def test_a_dispute_that_many_hear_of_at_once_is_booked_once(stripe: FakeStripe, settings: Any) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "TIMEOUT_S": 20}
    workspace_id = make_workspace()
    payment = paid_top_up(stripe, workspace_id)
    dispute = stripe.dispute(payment.provider_reference)
    for number in range(8):
        body = stripe.event("charge.dispute.funds_withdrawn", dispute, f"evt_dispute_{number}")
        assert post_to_stripes_webhook(body, signature(body)).status_code == 200
    outcomes = at_once(8, lambda _: work_inbox())
    assert sum(outcome for outcome in outcomes if isinstance(outcome, int)) == 8
    assert not ProviderEvent.objects.filter(processed_at=None).exists()
    assert balance(workspace_id) == (0, 0)
    assert_books_agree(workspace_id)


@pytest.mark.django_db(transaction=True)
def test_one_message_that_comes_eight_times_at_once_is_stored_once(stripe: FakeStripe) -> None:
    body = stripe.event("ping", {"object": "balance"}, "evt_same")
    signed = signature(body)
    statuses = at_once(8, lambda _: post_to_stripes_webhook(body, signed).status_code)
    assert statuses == [200] * 8
    assert ProviderEvent.objects.count() == 1


def test_alipays_message_is_answered_with_success_and_booked(db: None, alipay: FakeAlipay) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id, "alipay")
    trade = alipay.customer_pays(payment.pay_url)
    assert trade["total_amount"] == "50.00"
    body = alipay.message(trade, notify_id="n1")
    for _ in range(3):
        response = post_to_alipays_webhook(body)
        assert (response.status_code, response.content) == (200, b"success")
        work_inbox()
    payment.refresh_from_db()
    assert payment.state == PaymentState.SUCCEEDED
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert alipay.calls["alipay.trade.query"] == 1
    assert_books_agree(workspace_id)


@pytest.mark.parametrize(
    "forged",
    [
        {"total_amount": "5000.00"},
        {"trade_status": "TRADE_FINISHED"},
        {"app_id": "another"},
        {"out_trade_no": "another"},
        {"notify_time": "yesterday"},
    ],
)
def test_alipays_message_that_was_changed_is_refused(
    db: None, alipay: FakeAlipay, forged: dict[str, str]
) -> None:
    trade = alipay.customer_pays(top_up(make_workspace(), "alipay").pay_url)
    assert_refused(post_to_alipays_webhook(alipay.message(trade, **forged)))


def test_alipays_message_with_another_key_twice_named_or_old_is_refused(db: None, alipay: FakeAlipay) -> None:
    trade = alipay.customer_pays(top_up(make_workspace(), "alipay").pay_url)
    assert_refused(post_to_alipays_webhook(alipay.message(trade, key=shop_key())))
    assert_refused(post_to_alipays_webhook(alipay.message(trade) + b"&total_amount=1.00"))
    old = datetime.now(UTC) - timedelta(hours=27)
    assert_refused(post_to_alipays_webhook(alipay.message(trade, sent_at=old)))
    for body in (b"", b"sign", b"sign=%%%", b"\xff=\xff", b"a=1&sign=AA&sign_type=RSA2"):
        assert_refused(post_to_alipays_webhook(body))


def test_no_log_line_holds_a_payload_or_a_secret(
    db: None, stripe: FakeStripe, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    payment = top_up(make_workspace())
    stripe.customer_pays(payment.provider_reference)
    stripe.mishap(Mishap.NOT_DONE_AND_BROKEN)
    deliver(stripe, "checkout.session.completed", {**stripe.things["cs_1"], "note": "customer-said-this"})
    post_to_stripes_webhook(b'{"note": "customer-said-this"}', "t=1,v1=0")
    said = json.dumps(
        [f"{r.getMessage()} {vars(r)}" for r in caplog.records if r.name != "werkzeug"], default=str
    )
    for secret in ("customer-said-this", WEBHOOK_SECRET, "sk_test_double"):
        assert secret not in said
