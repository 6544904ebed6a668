"""Real clocks and a web server beside the double of Stripe: a message comes by HTTP, and a clock is killed over it."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from billing.models import Payment, PaymentState, ProviderEvent
from tests.billing.books import assert_books_agree, balance
from tests.billing.fake_provider import Mishap
from tests.billing.fake_stripe_server import SECRET_KEY, FakeStripe, signature
from tests.billing.payers import YUAN, make_workspace, their_turn, top_up
from tests.pool.processes import Pool, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.stop()


def start_clock(pool: Pool, stripe: FakeStripe) -> Any:
    return pool.start_clock(
        PAYMENT_PROVIDERS="stripe",
        STRIPE_SECRET_KEY=SECRET_KEY,
        STRIPE_API_ADDRESS=stripe.address,
        PAYMENT_TIMEOUT_S="20",
    )


def send(address: str, body: bytes, signed: str) -> int:
    request = urllib.request.Request(
        f"{address}/billing/webhooks/stripe", body, {"Stripe-Signature": signed}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_clock_books_what_stripe_says_also_after_one_was_killed_over_it(
    stripe: FakeStripe, live_server: Any, pool: Pool
) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    stripe.customer_pays(payment.provider_reference)
    body = stripe.event("checkout.session.completed", stripe.things["cs_1"], "evt_1")
    assert send(live_server.url, body, signature(body, secret="whsec_forged")) == 400
    assert [send(live_server.url, body, signature(body)) for _ in range(3)] == [200] * 3
    assert ProviderEvent.objects.count() == 1
    # The first clock is killed while it waits for Stripe's answer.
    stripe.mishap(Mishap.DONE_BUT_UNANSWERED)
    first = start_clock(pool, stripe)
    wait_for(lambda: stripe.calls["read"] == 1, what="the clock has asked")
    first.kill()
    first.wait()
    assert balance(workspace_id) == (0, 0)
    assert ProviderEvent.objects.get().processed_at is None
    their_turn()
    start_clock(pool, stripe)
    wait_for(lambda: ProviderEvent.objects.get().processed_at, what="the message is worked on")
    assert Payment.objects.get().state == PaymentState.SUCCEEDED
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert_books_agree(workspace_id)
