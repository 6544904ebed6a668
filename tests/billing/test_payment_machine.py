"""Any order of what can happen to payments at a provider, repeated, reordered and with answers lost, against a model.

The model knows no table of ours: what the customer paid, what went back, what the bank took, and what was spent.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from billing.errors import RefundExceedsPayment, VoucherUsed
from billing.models import Payment, PaymentState, Refund, TransactionKind
from billing.services import ledger
from billing.services.debits import debit
from billing.services.inbox import work_inbox
from billing.services.ledger import BalanceTooLow
from billing.services.payment_asking import ask_open_payments
from billing.services.payment_refunds import ask_open_refunds, refund_payment
from billing.services.vouchers import redeem
from tests.billing.books import assert_books_agree, balance
from tests.billing.fake_provider import Mishap
from tests.billing.fake_stripe_server import FakeStripe, signature
from tests.billing.payers import (
    YUAN,
    make_workspace,
    post_to_stripes_webhook,
    their_turn,
    top_up,
)
from tests.billing.test_vouchers import make_batch

WHICH = st.integers(min_value=0, max_value=9)
BROKEN = st.sampled_from([None, Mishap.DONE_BUT_BROKEN, Mishap.NOT_DONE_AND_BROKEN])


@dataclass
class Paid:
    """A payment as the model sees it: in yuan, as it stands at the provider."""

    payment: Payment
    session: str = ""
    intent: str = ""
    dispute: dict[str, Any] = field(default_factory=dict)
    is_won: bool = False


class Payments(RuleBasedStateMachine):
    fake: FakeStripe

    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.fake.reset()
        self.workspace_id = make_workspace()
        ledger.ensure_account(workspace_id=self.workspace_id)
        self.paid: list[Paid] = []
        self.spent = 0
        self.vouchers = 0
        self.messages: list[bytes] = []
        _batch, self.codes = make_batch(count=3)

    def teardown(self) -> None:
        try:
            self.everything_arrives_in_the_end()
        finally:
            self.undo()

    def undo(self) -> None:
        transaction.set_rollback(True)
        self.atomic.__exit__(None, None, None)

    def tell(self, kind: str, thing: dict[str, Any]) -> None:
        """The provider has something to say; when it arrives, and how often, others decide."""
        self.messages.append(self.fake.event(kind, thing))

    def chosen(self, which: int, fits: Any) -> Paid | None:
        fitting = [paid for paid in self.paid if fits(paid)]
        return fitting[which % len(fitting)] if fitting else None

    @rule(mishap=BROKEN, times=st.integers(1, 3))
    def begin(self, mishap: Mishap | None, times: int) -> None:
        if mishap:
            self.fake.mishap(mishap)
        key = str(uuid.uuid4())
        begun = {top_up(self.workspace_id, idempotency_key=key) for _ in range(times)}
        (payment,) = begun
        self.paid.append(Paid(payment))

    @rule(which=WHICH)
    def customer_pays(self, which: int) -> None:
        for paid in self.paid:
            paid.payment.refresh_from_db()
            paid.session = paid.session or paid.payment.provider_reference
        paid = self.chosen(which, lambda paid: paid.session and not paid.intent)
        if paid is not None:
            paid.intent = self.fake.customer_pays(paid.session)["id"]
            self.tell("checkout.session.completed", self.fake.things[paid.session])
            self.tell("payment_intent.succeeded", self.fake.things[paid.intent])

    # Begun with, so that from the first step on there is something that more can happen to.
    @initialize()
    def one_is_paid(self) -> None:
        self.all_goes_well()

    @rule()
    def all_goes_well(self) -> None:
        """The short way to a payment that is booked."""
        self.fake.forget_mishaps()
        payment = top_up(self.workspace_id)
        paid = Paid(payment, payment.provider_reference)
        paid.intent = self.fake.customer_pays(paid.session)["id"]
        self.paid.append(paid)
        self.tell("checkout.session.completed", self.fake.things[paid.session])
        post_to_stripes_webhook(self.messages[-1], signature(self.messages[-1]))
        work_inbox()

    @precondition(lambda self: self.messages)
    @rule(which=WHICH, times=st.integers(1, 3))
    def a_message_arrives(self, which: int, times: int) -> None:
        body = self.messages[which % len(self.messages)]
        for _ in range(times):
            assert post_to_stripes_webhook(body, signature(body)).status_code == 200

    @rule(mishap=BROKEN)
    def the_clock_works_on_messages(self, mishap: Mishap | None) -> None:
        if mishap:
            self.fake.mishap(mishap)
        their_turn()
        work_inbox()

    @rule(mishap=BROKEN)
    def the_clock_asks(self, mishap: Mishap | None) -> None:
        if mishap:
            self.fake.mishap(mishap)
        their_turn()
        ask_open_payments()
        ask_open_refunds()

    @rule(which=WHICH, yuan=st.integers(1, 30), mishap=BROKEN)
    def refund(self, which: int, yuan: int, mishap: Mishap | None) -> None:
        paid = self.chosen(which, lambda paid: self.is_booked(paid))
        if paid is None:
            return
        key, before = str(uuid.uuid4()), Refund.objects.count()
        if mishap:
            self.fake.mishap(mishap)
        for _ in range(2):
            try:
                refund_payment(
                    payment_id=paid.payment.pk,
                    amount_micros=yuan * YUAN,
                    reason="",
                    idempotency_key=key,
                    requested_by_id=None,
                )
            except RefundExceedsPayment:
                assert Refund.objects.count() == before
                self.fake.forget_mishaps()
                return

    @rule(which=WHICH)
    def the_bank_takes_it_back(self, which: int) -> None:
        paid = self.chosen(which, lambda paid: paid.intent and not paid.dispute)
        if paid is not None:
            paid.dispute = self.fake.dispute(paid.intent)
            self.tell("charge.dispute.funds_withdrawn", paid.dispute)

    @rule(which=WHICH)
    def a_dispute_is_won(self, which: int) -> None:
        paid = self.chosen(which, lambda paid: paid.dispute and not paid.is_won)
        if paid is not None:
            paid.is_won = True
            self.fake.win(paid.dispute)
            self.tell("charge.dispute.funds_reinstated", paid.dispute)

    @rule(yuan=st.integers(1, 30))
    def spend(self, yuan: int) -> None:
        try:
            debit(
                workspace_id=self.workspace_id,
                amount_micros=yuan * YUAN,
                kind=TransactionKind.FEE,
                idempotency_key=str(uuid.uuid4()),
                may_owe=False,
            )
        except BalanceTooLow:
            return
        self.spent += yuan

    @rule(which=st.integers(0, 2))
    def a_voucher_is_redeemed(self, which: int) -> None:
        try:
            redeem(workspace_id=self.workspace_id, user_id=uuid.uuid4(), code=self.codes[which])
        except VoucherUsed:
            return
        self.vouchers += 1

    def is_booked(self, paid: Paid) -> bool:
        paid.payment.refresh_from_db()
        return paid.payment.state == PaymentState.SUCCEEDED

    @invariant()
    def the_books_agree(self) -> None:
        assert_books_agree(self.workspace_id)

    @invariant()
    def nothing_is_booked_that_was_not_paid(self) -> None:
        for paid in self.paid:
            if self.is_booked(paid):
                assert paid.intent
                assert 0 <= paid.payment.refunded_micros <= paid.payment.amount_micros

    @invariant()
    def the_provider_never_did_anything_twice(self) -> None:
        sessions = [t for t in self.fake.things.values() if t["object"] == "checkout.session"]
        asked = [session["metadata"]["payment_id"] for session in sessions]
        assert len(asked) == len(set(asked))
        refunds = [t["metadata"]["refund_id"] for t in self.fake.things.values() if t["object"] == "refund"]
        assert len(refunds) == len(set(refunds))

    def everything_arrives_in_the_end(self) -> None:
        """What then stands here is what happened there."""
        self.fake.forget_mishaps()
        for body in reversed(self.messages):
            post_to_stripes_webhook(body, signature(body))
        for _ in range(3):
            their_turn()
            work_inbox()
            ask_open_payments()
            ask_open_refunds()
        came = sum(50 for paid in self.paid if paid.intent)
        refunds = [t for t in self.fake.things.values() if t["object"] == "refund"]
        went = sum(refund["amount"] // 100 for refund in refunds)
        taken = sum(50 for paid in self.paid if paid.dispute and not paid.is_won)
        expected = came - went - taken + 20 * self.vouchers - self.spent
        assert balance(self.workspace_id) == (expected * YUAN, 0)
        assert_books_agree(self.workspace_id)
        assert Refund.objects.filter(state=PaymentState.SUCCEEDED).count() == len(refunds)
        for paid in self.paid:
            assert self.is_booked(paid) == bool(paid.intent)
            back = sum(refund["amount"] for refund in refunds if refund["payment_intent"] == paid.intent)
            assert paid.payment.refunded_micros == back * YUAN // 100
            is_taken = bool(paid.dispute) and not paid.is_won
            assert paid.payment.disputed_micros == (50 * YUAN if is_taken else 0)


@pytest.mark.django_db
def test_whatever_happens_in_whatever_order_the_money_is_where_it_belongs(
    stripe: FakeStripe, settings: Any
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "VOUCHER_TRIES_PER_MINUTE": 1_000_000}
    settings.PAYMENTS = {**settings.PAYMENTS, "TIMEOUT_S": 20}
    Payments.fake = stripe
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Payments,
        settings=hypothesis_settings(
            max_examples=8,
            stateful_step_count=20,
            deadline=None,
            # Every step goes over HTTP: to make a failure smaller would take minutes.
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
