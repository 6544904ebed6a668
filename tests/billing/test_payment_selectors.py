"""Who sees which payments, and what operators see of all of them."""

from __future__ import annotations

import uuid

import pytest

from accounts.models import Workspace
from billing.models import PaymentState
from billing.selectors.payments import (
    automatic_top_up_of,
    disputes,
    messages_in_trouble,
    methods_of,
    open_refunds,
    payment_of,
    payments_of,
    unknown_payments,
    voucher_batches,
)
from billing.services.payment_refunds import refund_payment
from billing.services.vouchers import redeem, void_voucher
from portal.lib.errors import NotFound
from tests.billing.fake_provider import Mishap
from tests.billing.fake_stripe_server import FakeStripe
from tests.billing.payers import YUAN, deliver, make_workspace, paid_top_up, top_up
from tests.billing.test_automatic_top_up import make_rule, save_card
from tests.billing.test_vouchers import make_batch


def test_a_workspace_sees_its_own_and_nobody_elses(db: None, stripe: FakeStripe) -> None:
    mine, theirs = (Workspace.objects.get(pk=make_workspace()) for _ in range(2))
    first, second = top_up(mine.pk), top_up(mine.pk)
    foreign = top_up(theirs.pk)
    card = save_card(stripe, mine.pk)
    rule = make_rule(mine.pk)
    assert list(payments_of(mine)) == [second, first]
    assert payment_of(mine, str(first.pk)) == first
    for hidden in (foreign.pk, uuid.uuid4(), "nonsense"):
        with pytest.raises(NotFound):
            payment_of(mine, hidden)
    assert (list(methods_of(mine)), list(methods_of(theirs))) == ([card], [])
    assert (automatic_top_up_of(mine), automatic_top_up_of(theirs)) == (rule, None)


def test_operators_see_what_needs_them(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    paid = paid_top_up(stripe, workspace_id)
    stripe.mishap(Mishap.DONE_BUT_BROKEN)
    unknown = top_up(workspace_id)
    stripe.mishap(Mishap.DONE_BUT_BROKEN)
    refund = refund_payment(
        payment_id=paid.pk, amount_micros=YUAN, reason="", idempotency_key="r", requested_by_id=None
    )
    deliver(stripe, "charge.dispute.funds_withdrawn", stripe.dispute(paid.provider_reference))
    deliver(stripe, "payment_intent.succeeded", {"object": "payment_intent", "id": "pi_none"}, "evt_trouble")
    assert (unknown.state, refund.state) == (PaymentState.UNKNOWN, PaymentState.UNKNOWN)
    assert list(unknown_payments()) == [unknown]
    assert list(open_refunds()) == [refund]
    assert [dispute.payment for dispute in disputes()] == [paid]
    assert [event.event_id for event in messages_in_trouble()] == ["evt_trouble"]


def test_a_batch_says_how_many_of_it_are_left(db: None) -> None:
    batch, codes = make_batch(count=4)
    redeem(workspace_id=make_workspace(), user_id=uuid.uuid4(), code=codes[0])
    void_voucher(voucher_id=batch.vouchers.filter(state="new").first().pk)
    (seen,) = voucher_batches()
    assert (seen.new, seen.redeemed, seen.voided) == (2, 1, 1)
