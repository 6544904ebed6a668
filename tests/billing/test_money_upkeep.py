"""What the clock does about money, in its own thread; and the provider with which no money moves."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing import upkeep
from billing.errors import PaymentProviderUnknown
from billing.models import CreditGrant, GrantKind, PaymentState, ProviderEvent
from billing.payments import registry
from billing.services import grants, inbox_retention, payment_methods
from billing.services.automatic_top_up import set_up
from billing.services.payment_asking import run_automatic_top_ups
from billing.services.payment_refunds import refund_payment
from billing.services.pretend_payments import decide_test_payment, save_test_method
from billing.upkeep import MoneyUpkeep, run_steps
from portal.lib.clock import now
from portal.lib.errors import NotFound
from tests.billing.books import assert_books_agree, balance
from tests.billing.fake_provider import Mishap
from tests.billing.fake_stripe_server import FakeStripe, signature
from tests.billing.payers import YUAN, make_workspace, post_to_stripes_webhook, their_turn, top_up


@pytest.fixture
def pretend(settings: Any) -> None:
    """As in the embedded stack."""
    settings.PAYMENTS = {**settings.PAYMENTS, "PROVIDERS": ["test"], "TEST_PROVIDER": True}


def test_one_round_does_all_there_is_to_do(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    stripe.customer_pays(payment.provider_reference)
    lost = top_up(workspace_id)
    stripe.customer_pays(lost.provider_reference)
    their_turn()
    body = stripe.event("checkout.session.completed", stripe.things["cs_1"])
    post_to_stripes_webhook(body, signature(body))
    over = now() - timedelta(hours=1)
    grants.grant(workspace_id=workspace_id, amount_micros=7, idempotency_key="gone", expires_at=over)
    run_steps(0)
    assert balance(workspace_id) == (100 * YUAN, 0)
    assert CreditGrant.objects.get(kind=GrantKind.PROMOTIONAL).remaining_micros == 0
    assert_books_agree(workspace_id)


def test_a_step_that_fails_does_not_keep_the_others_from_their_turn(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def breaks() -> int:
        done.append("breaks")
        raise RuntimeError

    def works() -> int:
        done.append("works")
        return 1

    monkeypatch.setattr(upkeep, "STEPS", ((breaks, 1), (works, 2)))
    for tick in range(3):
        run_steps(tick)
    assert done == ["breaks", "works", "breaks", "breaks", "works"]


@pytest.mark.django_db(transaction=True)
def test_a_provider_that_does_not_answer_holds_nothing_up(stripe: FakeStripe, settings: Any) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id)
    stripe.customer_pays(payment.provider_reference)
    body = stripe.event("checkout.session.completed", stripe.things["cs_1"])
    post_to_stripes_webhook(body, signature(body))
    stripe.mishap(Mishap.NOT_DONE_AND_UNANSWERED)
    money = MoneyUpkeep()
    money.tick()
    assert money.thread.is_busy
    began = money.thread._running
    money.tick()
    # The second tick has come back while the first still waits for Stripe, and has begun nothing beside it.
    assert money.thread._running is began
    assert money.thread.wait(30)
    assert ProviderEvent.objects.get().processed_at is None
    their_turn()
    money.tick()
    assert money.thread.wait(30)
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert threading.active_count() < 50


def test_a_test_payment_is_decided_on_its_page(db: None, pretend: None) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id, "test")
    assert payment.pay_url.endswith(f"/billing/test-payment/{payment.pk}/")
    decided = decide_test_payment(workspace_id=workspace_id, payment_id=payment.pk, succeeds=True)
    assert decided.state == PaymentState.SUCCEEDED
    again = decide_test_payment(workspace_id=workspace_id, payment_id=payment.pk, succeeds=False)
    assert again.state == PaymentState.SUCCEEDED
    assert balance(workspace_id) == (50 * YUAN, 0)
    refund = refund_payment(
        payment_id=payment.pk,
        amount_micros=50 * YUAN,
        reason="",
        idempotency_key="r",
        requested_by_id=None,
    )
    assert refund.state == PaymentState.SUCCEEDED
    assert_books_agree(workspace_id)


def test_a_test_payment_fails_where_that_is_pressed(db: None, pretend: None) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id, "test")
    decided = decide_test_payment(workspace_id=workspace_id, payment_id=payment.pk, succeeds=False)
    assert (decided.state, decided.failure_code) == (PaymentState.FAILED, "declined")
    assert balance(workspace_id) == (0, 0)


def test_a_test_card_is_charged_automatically(db: None, pretend: None) -> None:
    workspace_id = make_workspace()
    paid = top_up(workspace_id, "test", saves_method=True)
    decide_test_payment(workspace_id=workspace_id, payment_id=paid.pk, succeeds=True)
    assert payment_methods.default_method(workspace_id) is not None
    save_test_method(workspace_id=workspace_id)
    assert payment_methods.saved_methods(workspace_id).count() == 2
    set_up(
        workspace_id=workspace_id,
        is_on=True,
        below_micros=60 * YUAN,
        amount_micros=20 * YUAN,
        monthly_cap_micros=20 * YUAN,
    )
    assert run_automatic_top_ups() == 1
    assert balance(workspace_id) == (70 * YUAN, 0)


def test_another_workspaces_test_payment_is_not_there(db: None, pretend: None) -> None:
    payment = top_up(make_workspace(), "test")
    for workspace_id, payment_id in ((make_workspace(), payment.pk), (payment.workspace_id, uuid.uuid4())):
        with pytest.raises(NotFound):
            decide_test_payment(workspace_id=workspace_id, payment_id=payment_id, succeeds=True)


def test_without_the_embedded_stack_there_are_no_test_payments(db: None, settings: Any) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "PROVIDERS": ["test", "bank_transfer", "nobody"]}
    assert registry.offered_names() == []
    with pytest.raises(PaymentProviderUnknown):
        top_up(make_workspace(), "test")
    with pytest.raises(PaymentProviderUnknown):
        decide_test_payment(workspace_id=make_workspace(), payment_id=uuid.uuid4(), succeeds=True)
    assert Client().post("/billing/webhooks/test").status_code == 404


def test_messages_that_were_worked_on_go_after_their_time_and_others_never(
    db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def came(event_id: str, *, days_ago: int, worked_on: bool) -> None:
        event = ProviderEvent.objects.create(provider="stripe", event_id=event_id, kind="x")
        moment = now() - timedelta(days=days_ago)
        ProviderEvent.objects.filter(pk=event.pk).update(
            received_at=moment,
            processed_at=moment if worked_on else None,
            next_try_at=None if worked_on else now() + timedelta(days=1),
        )

    def kept() -> list[str]:
        return list(ProviderEvent.objects.order_by("event_id").values_list("event_id", flat=True))

    for days_ago in (399, 401, 402):
        came(f"done-{days_ago}", days_ago=days_ago, worked_on=True)
        came(f"open-{days_ago}", days_ago=days_ago, worked_on=False)
    still_open = ["open-399", "open-401", "open-402"]
    monkeypatch.setattr(inbox_retention, "DELETED_AT_ONCE", 1)
    # The oldest first, some at a time, by the clock.
    assert inbox_retention.delete_old_events() == 1
    assert kept() == ["done-399", "done-401", *still_open]
    run_steps(0)
    assert kept() == ["done-399", *still_open]
    assert inbox_retention.delete_old_events() == 0
    settings.PAYMENTS = {**settings.PAYMENTS, "EVENTS_KEPT_DAYS": 1}
    run_steps(0)
    assert kept() == still_open
