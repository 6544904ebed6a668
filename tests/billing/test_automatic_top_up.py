"""Saved cards, and the automatic top-up: one at a time, a cooldown, a monthly cap, off after three failures."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db.models import F

from accounts.models import Workspace
from billing.errors import AutomaticTopUpInvalid, NoPaymentMethod, ProviderUnavailable
from billing.models import (
    AlertKind,
    AutomaticTopUp,
    BillingAlert,
    CreditAccount,
    Payment,
    PaymentMethod,
    PaymentPurpose,
    PaymentState,
    TransactionKind,
)
from billing.periods import month_at
from billing.services import payment_methods
from billing.services.alerts import mail_alerts
from billing.services.automatic_top_up import set_up
from billing.services.debits import debit
from billing.services.payment_asking import ask_open_payments, run_automatic_top_ups
from portal.lib.clock import now
from tests.billing.books import assert_books_agree, at_once, balance
from tests.billing.fake_provider import Mishap
from tests.billing.fake_stripe_server import FakeStripe
from tests.billing.payers import YUAN, deliver, make_older, make_workspace, paid_top_up, their_turn
from tests.factories import make_user, personal_workspace


def make_rule(workspace_id: uuid.UUID, **changed: Any) -> AutomaticTopUp:
    """Below 10 yuan another 50, at most 150 a month."""
    rule = {
        "is_on": True,
        "below_micros": 10 * YUAN,
        "amount_micros": 50 * YUAN,
        "monthly_cap_micros": 150 * YUAN,
    }
    return set_up(workspace_id=workspace_id, **{**rule, **changed})


def save_card(fake: FakeStripe, workspace_id: uuid.UUID) -> PaymentMethod:
    """A card that its owner saved on Stripe's page."""
    url = payment_methods.begin_saving(
        workspace_id=workspace_id, provider_name="stripe", return_url="http://127.0.0.1/"
    )
    session_id = url.rsplit("/", 1)[1]
    card = fake.customer_saves_card(session_id)
    deliver(fake, "checkout.session.completed", fake.things[session_id])
    return PaymentMethod.objects.get(provider_reference=card["id"])


def cool_down(workspace_id: uuid.UUID) -> None:
    AutomaticTopUp.objects.filter(pk=workspace_id).update(cooldown_until=now())


def spend_all(workspace_id: uuid.UUID) -> None:
    debit(
        workspace_id=workspace_id,
        amount_micros=balance(workspace_id)[0],
        kind=TransactionKind.FEE,
        idempotency_key=str(uuid.uuid4()),
        may_owe=False,
    )


@pytest.fixture
def workspace_id(db: None, stripe: FakeStripe) -> uuid.UUID:
    """With a saved card and the automatic top-up."""
    workspace_id = make_workspace()
    save_card(stripe, workspace_id)
    make_rule(workspace_id)
    return workspace_id


def test_a_card_is_saved_on_stripes_page(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    first, second = save_card(stripe, workspace_id), save_card(stripe, workspace_id)
    assert (first.label, first.is_default) == ("Visa •••• 4242", True)
    assert (second.is_default, second.provider_customer) == (False, first.provider_customer)
    payment_methods.set_default(workspace_id=workspace_id, method_id=second.pk)
    assert [method.pk for method in payment_methods.saved_methods(workspace_id)] == [second.pk, first.pk]
    payment_methods.remove_method(workspace_id=workspace_id, method_id=second.pk)
    assert payment_methods.default_method(workspace_id) == first
    assert stripe.things[second.provider_reference]["customer"] is None


def test_a_card_is_saved_with_a_top_up(db: None, stripe: FakeStripe) -> None:
    workspace_id = make_workspace()
    paid_top_up(stripe, workspace_id, saves_method=True)
    assert payment_methods.saved_methods(workspace_id).get().provider_customer == "cus_1"
    paid_top_up(stripe, make_workspace())
    assert PaymentMethod.objects.count() == 1


def test_another_workspaces_card_is_not_there(workspace_id: uuid.UUID) -> None:
    method_id, stranger = PaymentMethod.objects.get().pk, make_workspace()
    for act in (payment_methods.set_default, payment_methods.remove_method):
        with pytest.raises(NoPaymentMethod):
            act(workspace_id=stranger, method_id=method_id)
    assert PaymentMethod.objects.get().removed_at is None


def test_without_an_answer_no_card_is_saved(db: None, stripe: FakeStripe) -> None:
    stripe.mishap(Mishap.NOT_DONE_AND_BROKEN)
    with pytest.raises(ProviderUnavailable):
        payment_methods.begin_saving(
            workspace_id=make_workspace(), provider_name="stripe", return_url="http://127.0.0.1/"
        )


def test_below_the_mark_the_card_is_charged_once(workspace_id: uuid.UUID, stripe: FakeStripe) -> None:
    assert run_automatic_top_ups() == 1
    payment = Payment.objects.get()
    assert (payment.state, payment.purpose) == (PaymentState.SUCCEEDED, PaymentPurpose.AUTOMATIC_TOP_UP)
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert run_automatic_top_ups() == 0
    cool_down(workspace_id)
    assert run_automatic_top_ups() == 0  # there is enough
    assert stripe.calls["make_intent"] == 1
    assert_books_agree(workspace_id)


def test_the_cooldown_is_kept_after_success_and_failure(workspace_id: uuid.UUID, stripe: FakeStripe) -> None:
    run_automatic_top_ups()
    spend_all(workspace_id)
    assert run_automatic_top_ups() == 0
    cool_down(workspace_id)
    stripe.declining.add(PaymentMethod.objects.get().provider_reference)
    assert run_automatic_top_ups() == 1
    assert Payment.objects.filter(state=PaymentState.FAILED).get().failure_code == "card_declined"
    assert AutomaticTopUp.objects.get().failures == 1
    assert run_automatic_top_ups() == 0
    assert stripe.calls["make_intent"] == 2


def test_three_failures_turn_it_off_and_say_so_by_mail(db: None, stripe: FakeStripe) -> None:
    workspace_id = personal_workspace(make_user("owner")).pk
    spend_all(workspace_id)
    stripe.declining.add(save_card(stripe, workspace_id).provider_reference)
    make_rule(workspace_id)
    for _ in range(3):
        assert run_automatic_top_ups() == 1
        cool_down(workspace_id)
    assert run_automatic_top_ups() == 0
    rule = AutomaticTopUp.objects.get()
    assert (rule.is_on, rule.failures) == (False, 3)
    assert BillingAlert.objects.get().kind == AlertKind.AUTOMATIC_TOP_UP_OFF
    assert mail_alerts() == 1
    (message,) = mail.outbox
    assert "automatic top-up" in message.body.lower() or "自动充值" in message.body
    assert "50" in message.body
    assert make_rule(workspace_id).failures == 0


def test_a_success_forgets_the_failures_before_it(workspace_id: uuid.UUID, stripe: FakeStripe) -> None:
    AutomaticTopUp.objects.update(failures=2)
    run_automatic_top_ups()
    rule = AutomaticTopUp.objects.get()
    assert (rule.is_on, rule.failures) == (True, 0)


def test_the_cap_holds_for_the_calendar_month_of_the_workspace(
    workspace_id: uuid.UUID, stripe: FakeStripe
) -> None:
    CreditAccount.objects.update(time_zone="Asia/Shanghai")
    for _ in range(3):
        assert run_automatic_top_ups() == 1
        spend_all(workspace_id)
        cool_down(workspace_id)
    assert run_automatic_top_ups() == 0
    cool_down(workspace_id)
    assert run_automatic_top_ups() == 0
    assert Payment.objects.count() == 3
    assert BillingAlert.objects.get().kind == AlertKind.AUTOMATIC_TOP_UP_CAP
    # A microsecond before this month began in Shanghai, it was another one's money.
    start = month_at(now(), "Asia/Shanghai").start
    Payment.objects.filter(pk=Payment.objects.latest("created_at").pk).update(
        created_at=start - timedelta(microseconds=1)
    )
    cool_down(workspace_id)
    assert run_automatic_top_ups() == 1
    assert Payment.objects.filter(created_at__gte=start).count() == 3


@pytest.mark.parametrize("mishap", [Mishap.DONE_BUT_UNANSWERED, Mishap.NOT_DONE_AND_UNANSWERED])
def test_a_charge_without_an_answer_is_asked_about_and_made_once(
    workspace_id: uuid.UUID, stripe: FakeStripe, mishap: Mishap
) -> None:
    stripe.mishap(mishap)
    run_automatic_top_ups()
    payment = Payment.objects.get()
    assert (payment.state, balance(workspace_id)) == (PaymentState.UNKNOWN, (0, 0))
    # Nothing else is charged while it is not known.
    cool_down(workspace_id)
    assert run_automatic_top_ups() == 0
    their_turn()
    assert ask_open_payments() == 1
    payment.refresh_from_db()
    assert payment.state == PaymentState.SUCCEEDED
    assert stripe.calls["make_intent"] == 1
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert_books_agree(workspace_id)


@pytest.mark.parametrize(
    ("mishap", "state"),
    [
        (Mishap.DONE_BUT_BROKEN, PaymentState.SUCCEEDED),
        (Mishap.NOT_DONE_AND_BROKEN, PaymentState.FAILED),
    ],
)
def test_days_later_a_charge_is_looked_for_and_not_made_again(
    workspace_id: uuid.UUID, stripe: FakeStripe, mishap: Mishap, state: PaymentState
) -> None:
    stripe.mishap(mishap)
    run_automatic_top_ups()
    stripe.forget_keys()
    make_older(timedelta(days=2))
    ask_open_payments()
    payment = Payment.objects.get()
    assert payment.state == state
    assert stripe.calls["make_intent"] == (1 if state == PaymentState.SUCCEEDED else 0)
    assert balance(workspace_id)[0] == (50 * YUAN if state == PaymentState.SUCCEEDED else 0)


@pytest.mark.parametrize("refused", ["search_intents", "read"])
def test_a_search_that_is_refused_concludes_nothing(
    workspace_id: uuid.UUID, stripe: FakeStripe, refused: str
) -> None:
    stripe.mishap(Mishap.DONE_BUT_BROKEN)
    run_automatic_top_ups()
    stripe.forget_keys()
    make_older(timedelta(days=2))
    stripe.refusing.add(refused)
    ask_open_payments()
    assert Payment.objects.get().state == PaymentState.UNKNOWN
    stripe.refusing.clear()
    their_turn()
    ask_open_payments()
    assert Payment.objects.get().state == PaymentState.SUCCEEDED
    assert balance(workspace_id) == (50 * YUAN, 0)


def test_a_workspace_that_breaks_something_does_not_keep_others_from_being_topped_up(
    workspace_id: uuid.UUID, stripe: FakeStripe
) -> None:
    other = make_workspace()
    save_card(stripe, other)
    make_rule(other)
    stripe.empty_answers = 1
    run_automatic_top_ups()
    assert sorted(Payment.objects.values_list("state", flat=True)) == ["created", "succeeded"]
    their_turn()
    assert ask_open_payments() == 1
    assert (balance(workspace_id), balance(other)) == ((50 * YUAN, 0), (50 * YUAN, 0))
    assert stripe.calls["make_intent"] == 2


def test_a_dispute_turns_it_off(workspace_id: uuid.UUID, stripe: FakeStripe) -> None:
    run_automatic_top_ups()
    deliver(
        stripe, "charge.dispute.funds_withdrawn", stripe.dispute(Payment.objects.get().provider_reference)
    )
    cool_down(workspace_id)
    assert run_automatic_top_ups() == 0
    assert not AutomaticTopUp.objects.get().is_on
    assert BillingAlert.objects.get().details["reason"] == "dispute"


def test_a_deleted_or_suspended_workspace_is_not_charged(workspace_id: uuid.UUID, stripe: FakeStripe) -> None:
    Workspace.objects.update(suspended_at=now())
    assert run_automatic_top_ups() == 0
    Workspace.objects.all().delete()
    assert run_automatic_top_ups() == 0
    assert stripe.calls["make_intent"] == 0


def test_without_its_last_card_it_is_off(workspace_id: uuid.UUID) -> None:
    payment_methods.remove_method(workspace_id=workspace_id, method_id=PaymentMethod.objects.get().pk)
    assert not AutomaticTopUp.objects.get().is_on
    with pytest.raises(NoPaymentMethod):
        make_rule(workspace_id)


@pytest.mark.parametrize(
    "wrong",
    [{"monthly_cap_micros": 49 * YUAN}, {"below_micros": -1}, {"below_micros": 2**63}, {"below_micros": 1.5}],
)
def test_a_rule_that_makes_no_sense_is_refused(workspace_id: uuid.UUID, wrong: dict[str, Any]) -> None:
    before = AutomaticTopUp.objects.values().get()
    with pytest.raises(AutomaticTopUpInvalid):
        make_rule(workspace_id, **wrong)
    assert AutomaticTopUp.objects.values().get() == before


@pytest.mark.django_db(transaction=True)
def test_many_clocks_at_once_charge_once(stripe: FakeStripe, settings: Any) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "TIMEOUT_S": 20}
    workspace_id = make_workspace()
    save_card(stripe, workspace_id)
    make_rule(workspace_id)
    outcomes = at_once(12, lambda _: run_automatic_top_ups())
    assert sorted(outcome for outcome in outcomes if isinstance(outcome, int)) == [0] * 11 + [1]
    assert stripe.calls["make_intent"] == 1
    assert balance(workspace_id) == (50 * YUAN, 0)
    AutomaticTopUp.objects.update(below_micros=F("amount_micros") * 2)
    assert run_automatic_top_ups() == 0
