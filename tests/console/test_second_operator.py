"""What one operator asks for and another confirms: never the same person, once, and exactly what was asked for."""

from __future__ import annotations

import uuid

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from accounts.models import AuditEntry, User, Workspace
from billing.errors import PendingActDecided, RefundTooHigh, SecondOperatorNeeded
from billing.models import CreditAccount, Hold, LedgerTransaction, PendingAct, TransactionKind
from billing.services import holds
from billing.services.debits import debit
from portal.console import money_acts
from portal.console.money_acts import CREDIT, CREDIT_LIMIT, DEBIT, REFUND, MoneyAct, Outcome, TooLittleLeft
from portal.lib.errors import NotFound
from tests.billing.books import assert_books_agree, at_once, grant
from tests.cast import client_of
from tests.console.money_rows import YUAN, asked, available, everything, money_act
from tests.console.rows import somebody
from tests.factories import finish_job, make_job
from tts.models import SynthesisJob, Voice

pytestmark = pytest.mark.django_db


@pytest.fixture
def second(db: None) -> User:
    return somebody("second@example.com", is_staff=True)


def test_what_is_above_the_limit_is_done_when_another_confirms_it(
    operator: User, operator_client: Client, second: User, alice_workspace: Workspace
) -> None:
    before = available(alice_workspace)
    operator_client.post(
        f"/console/customers/{alice_workspace.pk}/credit/",
        {"amount": "100.000001", "reason": "A prize", "key": str(uuid.uuid4())},
    )
    assert available(alice_workspace) == before
    pending = PendingAct.objects.get()
    assert (pending.state, pending.amount_micros, pending.requested_by_id) == (
        "open",
        100_000_001,
        operator.pk,
    )
    client = client_of(second)
    assert "A prize" in client.get("/console/money/pending/").content.decode()
    client.post(f"/console/money/pending/{pending.pk}/confirm/")
    assert available(alice_workspace) == before + 100_000_001
    pending.refresh_from_db()
    assert (pending.state, pending.decided_by_id) == ("confirmed", second.pk)
    assert_books_agree(alice_workspace.pk)
    assert [(entry.act, entry.actor) for entry in AuditEntry.objects.order_by("pk")] == [
        ("customer.credit.asked", operator),
        ("customer.credit", second),
    ]
    # Once more: it is decided.
    state = everything()
    client.post(f"/console/money/pending/{pending.pk}/confirm/")
    with pytest.raises(PendingActDecided):
        money_acts.confirm(act_id=pending.pk, actor=second)
    assert everything() == state


def test_the_limit_itself_is_within_it(operator: User, alice_workspace: Workspace) -> None:
    done = money_acts.do_or_ask(act=money_act(CREDIT, alice_workspace, 100), actor=operator)
    assert done is Outcome.DONE
    noted = PendingAct.objects.get()
    assert (noted.state, noted.counted_micros, noted.decided_by_id) == ("alone", 100 * YUAN, operator.pk)


def test_nobody_confirms_their_own(
    operator: User, operator_client: Client, alice_workspace: Workspace
) -> None:
    act_id = asked(CREDIT, alice_workspace, 500, by=operator)
    before = everything()
    operator_client.post(f"/console/money/pending/{act_id}/confirm/")
    with pytest.raises(SecondOperatorNeeded):
        money_acts.confirm(act_id=act_id, actor=operator)
    # Not even past the code: the database refuses it too.
    with pytest.raises(IntegrityError), transaction.atomic():
        PendingAct.objects.filter(pk=act_id).update(
            state="confirmed", decided_by_id=operator.pk, decided_at="2026-11-30T12:00Z"
        )
    assert everything() == before
    page = operator_client.get("/console/money/pending/").content.decode()
    assert f"confirm-{act_id}" not in page
    assert f"decline-{act_id}" in page


def test_a_form_that_is_sent_twice_asks_once(operator: User, alice_workspace: Workspace) -> None:
    key = uuid.uuid4()
    wanted = money_act(CREDIT, alice_workspace, 500, key=key)
    assert money_acts.do_or_ask(act=wanted, actor=operator) is Outcome.ASKED
    before = everything()
    assert money_acts.do_or_ask(act=wanted, actor=operator) is Outcome.BEFORE
    # Nor can the same form slip through below the limit afterwards.
    smaller = money_act(CREDIT, alice_workspace, 1, key=key)
    assert money_acts.do_or_ask(act=smaller, actor=operator) is Outcome.BEFORE
    assert everything() == before


def test_it_is_declined_with_a_reason_and_then_decided(
    operator: User, second: User, alice_workspace: Workspace
) -> None:
    act_id = asked(CREDIT, alice_workspace, 500, by=operator)
    client = client_of(second)
    before = everything()
    client.post(f"/console/money/pending/{act_id}/decline/", {"reason": " "})
    assert everything() == before
    money = before[0]
    client.post(f"/console/money/pending/{act_id}/decline/", {"reason": "Too much"})
    assert PendingAct.objects.get().state == "declined"
    assert AuditEntry.objects.latest("pk").reason == "Too much"
    with pytest.raises(PendingActDecided):
        money_acts.confirm(act_id=act_id, actor=second)
    assert everything()[0] == money


def test_what_cannot_be_done_any_more_stays_open(
    operator: User, second: User, alice_workspace: Workspace
) -> None:
    grant(alice_workspace.pk, 600 * YUAN)
    act_id = asked(DEBIT, alice_workspace, 500, by=operator)
    debit(
        workspace_id=alice_workspace.pk,
        amount_micros=400 * YUAN,
        kind=TransactionKind.FEE,
        idempotency_key="fee",
        may_owe=False,
    )
    before = everything()
    with pytest.raises(TooLittleLeft):
        money_acts.confirm(act_id=act_id, actor=second)
    client_of(second).post(f"/console/money/pending/{act_id}/confirm/")
    assert everything() == before


def test_a_credit_limit_counts_by_how_much_it_is_changed(
    operator: User, second: User, alice_workspace: Workspace
) -> None:
    act_id = asked(CREDIT_LIMIT, alice_workspace, 1000, by=operator)
    money_acts.confirm(act_id=act_id, actor=second)
    assert CreditAccount.objects.get(pk=alice_workspace.pk).credit_limit_micros == 1000 * YUAN
    # A little less, and a little more again: a hundred together.
    for yuan in (970, 1040):
        changed = money_act(CREDIT_LIMIT, alice_workspace, yuan)
        assert money_acts.do_or_ask(act=changed, actor=operator) is Outcome.DONE
        # The same form once more, also where the limit is another one by now.
        assert money_acts.do_or_ask(act=changed, actor=operator) is Outcome.BEFORE
    # Neither more nor less without a second one.
    for yuan in (1041, 1039, 0):
        asked(CREDIT_LIMIT, alice_workspace, yuan, by=operator)
    assert CreditAccount.objects.get(pk=alice_workspace.pk).credit_limit_micros == 1040 * YUAN
    # To what it is already is no change.
    same = money_act(CREDIT_LIMIT, alice_workspace, 1040)
    before = everything()
    assert money_acts.do_or_ask(act=same, actor=operator) is Outcome.BEFORE
    assert everything() == before


@pytest.fixture
def dear_job(alice: User, alice_workspace: Workspace, alices_voice: Voice) -> SynthesisJob:
    """A job that ended and cost 300 yuan."""
    grant(alice_workspace.pk, 1000 * YUAN)
    job = make_job(alice_workspace, alice, alices_voice, text="A whole library.")
    finish_job(job)
    holds.release(job_id=job.pk)
    # What a real job of that price leaves: its hold is made as large as that here.
    with transaction.atomic():
        other = uuid.uuid4()
        holds.place_hold(workspace_id=alice_workspace.pk, job_id=other, amount_micros=300 * YUAN)
        holds.capture(job_id=other, attempt_id=uuid.uuid4(), amount_micros=300 * YUAN)
        holds.release(job_id=other)
    SynthesisJob.objects.filter(pk=job.pk).update(charged_micros=300 * YUAN)
    Hold.objects.filter(job_id=job.pk).update(job_id=uuid.uuid4())
    Hold.objects.filter(job_id=other).update(job_id=job.pk)
    job.refresh_from_db()
    return job


def refund_of(job: SynthesisJob, yuan: int) -> MoneyAct:
    return MoneyAct(
        id=uuid.uuid4(),
        act=REFUND,
        workspace_id=job.workspace_id,
        amount_micros=yuan * YUAN,
        reason="It stuttered",
        job_id=job.pk,
    )


def test_a_refund_above_the_limit_needs_a_second_operator(
    operator: User,
    operator_client: Client,
    second: User,
    dear_job: SynthesisJob,
    alice_workspace: Workspace,
) -> None:
    before = available(alice_workspace)
    address = f"/console/jobs/{dear_job.pk}/refund/"
    # Nothing said: all of it.
    operator_client.post(address, {"reason": "It stuttered", "key": str(uuid.uuid4())})
    assert available(alice_workspace) == before
    pending = PendingAct.objects.get()
    assert (pending.act, pending.amount_micros) == ("job.refund", 300 * YUAN)
    # A part below the limit one may give back alone.
    operator_client.post(address, {"reason": "Half a minute", "amount": "50", "key": str(uuid.uuid4())})
    assert available(alice_workspace) == before + 50 * YUAN
    dear_job.refresh_from_db()
    assert dear_job.charged_micros == 250 * YUAN
    # Now 300 are more than is left, so that the first cannot be confirmed any more.
    state = everything()
    with pytest.raises(RefundTooHigh):
        money_acts.confirm(act_id=pending.pk, actor=second)
    assert everything() == state
    rest = refund_of(dear_job, 250)
    money_acts.do_or_ask(act=rest, actor=operator)
    money_acts.confirm(act_id=rest.id, actor=second)
    assert available(alice_workspace) == before + 300 * YUAN
    dear_job.refresh_from_db()
    assert dear_job.charged_micros == 0
    assert_books_agree(alice_workspace.pk)
    assert operator_client.post(address, {"reason": "More"}).status_code == 409


def test_another_customers_job_is_not_refunded_through_this_one(
    operator: User, dear_job: SynthesisJob, bob_workspace: Workspace
) -> None:
    before = everything()
    wrong = MoneyAct(
        id=uuid.uuid4(),
        act=REFUND,
        workspace_id=bob_workspace.pk,
        amount_micros=YUAN,
        reason="",
        job_id=dear_job.pk,
    )
    with pytest.raises(NotFound):
        money_acts.do_or_ask(act=wrong, actor=operator)
    assert everything() == before


def test_customers_see_and_decide_nothing(
    alice_client: Client, operator: User, alice_workspace: Workspace
) -> None:
    act_id = asked(CREDIT, alice_workspace, 500, by=operator)
    before = everything()
    assert alice_client.get("/console/money/pending/").status_code == 404
    for decision in ("confirm", "decline"):
        answer = alice_client.post(f"/console/money/pending/{act_id}/{decision}/", {"reason": "Yes"})
        assert answer.status_code == 404
    assert everything() == before


@pytest.mark.django_db(transaction=True)
def test_of_many_who_confirm_at_once_one_does_it(operator: User, alice_workspace: Workspace) -> None:
    others = [somebody(f"other{number}@example.com", is_staff=True) for number in range(8)]
    before = available(alice_workspace)
    act_id = asked(CREDIT, alice_workspace, 500, by=operator)

    def confirm(number: int) -> str:
        money_acts.confirm(act_id=act_id, actor=others[number])
        return "done"

    outcomes = at_once(8, confirm)
    assert outcomes.count("done") == 1
    assert sum(isinstance(outcome, PendingActDecided) for outcome in outcomes) == 7
    assert available(alice_workspace) == before + 500 * YUAN
    assert AuditEntry.objects.filter(act="customer.credit").count() == 1
    assert LedgerTransaction.objects.filter(kind="adjustment").count() == 1
    assert_books_agree(alice_workspace.pk)


@pytest.mark.django_db(transaction=True)
def test_confirmed_and_declined_at_once_it_is_one_of_them(operator: User, alice_workspace: Workspace) -> None:
    second = somebody("second@example.com", is_staff=True)
    before = available(alice_workspace)
    act_id = asked(CREDIT, alice_workspace, 500, by=operator)

    def decide(number: int) -> str:
        if number % 2:
            money_acts.decline(act_id=act_id, actor=operator, reason="No")
            return "declined"
        money_acts.confirm(act_id=act_id, actor=second)
        return "confirmed"

    (outcome,) = [one for one in at_once(6, decide) if isinstance(one, str)]
    assert PendingAct.objects.get().state == outcome
    assert available(alice_workspace) == before + (500 * YUAN if outcome == "confirmed" else 0)


@pytest.mark.django_db(transaction=True)
def test_the_same_form_from_many_tabs_acts_once(operator: User, alice_workspace: Workspace) -> None:
    before = available(alice_workspace)
    wanted = money_act(CREDIT, alice_workspace, 10)
    outcomes = at_once(8, lambda _number: money_acts.do_or_ask(act=wanted, actor=operator))
    assert outcomes.count(Outcome.DONE) == 1
    assert outcomes.count(Outcome.BEFORE) == 7
    assert available(alice_workspace) == before + 10 * YUAN
    assert AuditEntry.objects.count() == 1
