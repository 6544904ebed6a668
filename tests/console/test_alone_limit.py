"""What one operator may do alone is counted over a day: nothing large is done in small parts."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from accounts.models import AuditEntry, User, Workspace
from billing.errors import PaymentReferenceUsed, PendingActDecided, SecondOperatorNeeded
from billing.models import CreditAccount, Payment, PendingAct, Voucher, VoucherBatch
from billing.services import credit_limits, holds, vouchers
from portal.console import money_acts
from portal.console.money_acts import (
    CREDIT,
    CREDIT_LIMIT,
    DEBIT,
    RECORDED_PAYMENT,
    REFUND,
    MoneyAct,
    Outcome,
    TooLittleLeft,
)
from portal.console.voucher_page import confirm_vouchers
from tests.billing.books import assert_books_agree, at_once, grant
from tests.cast import client_of
from tests.console.money_rows import YUAN, asked, available, everything, money_act
from tests.console.rows import somebody
from tests.console.test_payments_and_vouchers import BATCHES, batch_values, codes_in, record
from tests.factories import finish_job, make_job
from tts.models import SynthesisJob, Voice

pytestmark = pytest.mark.django_db


@pytest.fixture
def second(db: None) -> User:
    return somebody("second@example.com", is_staff=True)


def done(act: str, workspace: Workspace, yuan: int, *, by: User) -> None:
    assert money_acts.do_or_ask(act=money_act(act, workspace, yuan), actor=by) is Outcome.DONE


def older(age: timedelta) -> None:
    """All that was done was done so much earlier."""
    PendingAct.objects.exclude(state="open").update(decided_at=F("decided_at") - age)


def of_payment(workspace: Workspace, yuan: int, reference: str) -> MoneyAct:
    return MoneyAct(
        id=uuid.uuid4(),
        act=RECORDED_PAYMENT,
        workspace_id=workspace.pk,
        amount_micros=yuan * YUAN,
        reason="On the statement",
        details={"provider": "bank_transfer", "reference": reference},
    )


def test_small_parts_of_a_large_amount_need_a_second_operator(
    operator: User, second: User, alice_workspace: Workspace, bob_workspace: Workspace
) -> None:
    for _ in range(3):
        done(CREDIT, alice_workspace, 30, by=operator)
    before = available(alice_workspace)
    asked(CREDIT, alice_workspace, 11, by=operator)
    assert available(alice_workspace) == before
    done(CREDIT, alice_workspace, 10, by=operator)
    asked(CREDIT, alice_workspace, 1, by=operator)
    # It is one operator with one customer.
    done(CREDIT, bob_workspace, 100, by=operator)
    done(CREDIT, alice_workspace, 100, by=second)
    assert_books_agree(alice_workspace.pk)


def test_what_another_confirmed_or_declined_does_not_count(
    operator: User, second: User, alice_workspace: Workspace
) -> None:
    money_acts.confirm(act_id=asked(CREDIT, alice_workspace, 500, by=operator), actor=second)
    money_acts.decline(act_id=asked(CREDIT, alice_workspace, 500, by=operator), actor=second, reason="No")
    asked(CREDIT, alice_workspace, 500, by=operator)
    done(CREDIT, alice_workspace, 100, by=operator)
    done(CREDIT, alice_workspace, 100, by=second)


def test_a_day_later_it_counts_no_more(operator: User, alice_workspace: Workspace, settings: Any) -> None:
    done(CREDIT, alice_workspace, 60, by=operator)
    older(timedelta(hours=12))
    done(CREDIT, alice_workspace, 40, by=operator)
    older(timedelta(hours=11, minutes=59))
    asked(CREDIT, alice_workspace, 1, by=operator)
    older(timedelta(minutes=1))
    done(CREDIT, alice_workspace, 60, by=operator)
    asked(CREDIT, alice_workspace, 1, by=operator)
    # As many hours as the setting says.
    settings.VOICEPOOL = {**settings.VOICEPOOL, "ADJUSTMENT_WINDOW_HOURS": 1}
    older(timedelta(hours=1))
    done(CREDIT, alice_workspace, 100, by=operator)


@pytest.fixture
def ended_job(alice: User, alice_workspace: Workspace, alices_voice: Voice) -> SynthesisJob:
    """A job that ended."""
    grant(alice_workspace.pk, 1000 * YUAN)
    job = make_job(alice_workspace, alice, alices_voice)
    finish_job(job)
    holds.release(job_id=job.pk)
    return job


def test_every_way_to_move_a_customers_money_counts(
    operator: User, alice_workspace: Workspace, ended_job: SynthesisJob
) -> None:
    done(CREDIT, alice_workspace, 20, by=operator)
    done(DEBIT, alice_workspace, 20, by=operator)
    done(CREDIT_LIMIT, alice_workspace, 20, by=operator)
    assert money_acts.do_or_ask(act=of_payment(alice_workspace, 30, "A-1"), actor=operator) is Outcome.DONE
    assert money_acts.left_alone_micros(actor=operator, workspace_id=alice_workspace.pk) == 10 * YUAN
    refund = MoneyAct(
        id=uuid.uuid4(),
        act=REFUND,
        workspace_id=alice_workspace.pk,
        amount_micros=11 * YUAN,
        reason="It stuttered",
        job_id=ended_job.pk,
    )
    assert money_acts.do_or_ask(act=refund, actor=operator) is Outcome.ASKED
    assert money_acts.do_or_ask(act=of_payment(alice_workspace, 11, "A-2"), actor=operator) is Outcome.ASKED
    assert Payment.objects.count() == 1


def test_a_large_payment_that_arrived_waits_for_a_second_operator(
    operator_client: Client, second: User, alice_workspace: Workspace
) -> None:
    before = available(alice_workspace)
    assert record(operator_client, alice_workspace, amount="5000", reference="ICBC-9") == 302
    assert not Payment.objects.exists()
    assert available(alice_workspace) == before
    pending = PendingAct.objects.get()
    page = client_of(second).get("/console/money/pending/").content.decode()
    assert "bank_transfer, ICBC-9" in page
    client_of(second).post(f"/console/money/pending/{pending.pk}/confirm/")
    payment = Payment.objects.get()
    assert (payment.amount_micros, payment.provider_reference, payment.state) == (
        5000 * YUAN,
        "ICBC-9",
        "succeeded",
    )
    assert available(alice_workspace) == before + 5000 * YUAN
    assert [entry.act for entry in AuditEntry.objects.order_by("pk")] == [
        "customer.payment.asked",
        "customer.payment",
    ]
    # The same transfer once more: also a large one is not asked for.
    state = everything()
    assert record(operator_client, alice_workspace, amount="5000", reference="ICBC-9") == 200
    assert everything() == state


def test_a_transfer_that_was_recorded_meanwhile_is_not_confirmed(
    operator: User, second: User, alice_workspace: Workspace
) -> None:
    large = of_payment(alice_workspace, 500, "B-1")
    assert money_acts.do_or_ask(act=large, actor=operator) is Outcome.ASKED
    assert money_acts.do_or_ask(act=of_payment(alice_workspace, 5, "B-1"), actor=operator) is Outcome.DONE
    state = everything()
    with pytest.raises(PaymentReferenceUsed):
        money_acts.confirm(act_id=large.id, actor=second)
    client_of(second).post(f"/console/money/pending/{large.id}/confirm/")
    assert everything() == state


def test_large_batches_of_vouchers_wait_and_who_confirms_is_shown_the_codes(
    operator: User, operator_client: Client, second: User, alice: User, alice_workspace: Workspace
) -> None:
    first = operator_client.post(f"{BATCHES}new/", batch_values(count="9"))
    assert len(set(codes_in(first.content.decode()))) == 9
    # Ten yuan are left, and these are twenty.
    asked_for = operator_client.post(f"{BATCHES}new/", batch_values(name="Many", count="2"), follow=True)
    assert codes_in(asked_for.content.decode()) == []
    assert VoucherBatch.objects.count() == 1
    pending = PendingAct.objects.get(state="open")
    assert (pending.amount_micros, pending.workspace_id) == (20 * YUAN, None)
    confirm = f"/console/money/pending/{pending.pk}/confirm/"
    state = everything()
    operator_client.post(confirm)
    assert everything() == state
    client = client_of(second)
    assert "Many: 2 × CN¥10.00" in client.get("/console/money/pending/").content.decode()
    shown = client.post(confirm)
    assert "no-store" in shown["Cache-Control"]
    codes = codes_in(shown.content.decode())
    assert len(set(codes)) == 2
    before = available(alice_workspace)
    vouchers.redeem(workspace_id=alice_workspace.pk, user_id=alice.pk, code=codes[0])
    assert available(alice_workspace) == before + 10 * YUAN
    # Once: it is decided, and nobody is shown them again.
    assert codes_in(client.post(confirm, follow=True).content.decode()) == []
    assert Voucher.objects.count() == 11
    # Vouchers are of no customer: what is left for customers is whole.
    done(CREDIT, alice_workspace, 100, by=operator)


def test_vouchers_that_would_have_expired_are_not_made(
    operator: User, operator_client: Client, second: User
) -> None:
    values = batch_values(count="11", expires_at="2099-01-01T00:00")
    operator_client.post(f"{BATCHES}new/", values)
    pending = PendingAct.objects.get()
    PendingAct.objects.update(arguments={**pending.arguments, "expires_at": "2020-01-01T00:00:00+00:00"})
    state = everything()
    page = client_of(second).post(f"/console/money/pending/{pending.pk}/confirm/", follow=True)
    assert codes_in(page.content.decode()) == []
    assert everything() == state
    assert not VoucherBatch.objects.exists()


def test_a_debit_never_makes_anybody_owe(operator: User, alice_workspace: Workspace) -> None:
    credit_limits.set_credit_limit(workspace_id=alice_workspace.pk, limit_micros=1000 * YUAN)
    have = available(alice_workspace)
    before = everything()
    more = MoneyAct(uuid.uuid4(), DEBIT, alice_workspace.pk, have + 1, "Too much")
    with pytest.raises(TooLittleLeft):
        money_acts.do_or_ask(act=more, actor=operator)
    assert everything() == before
    all_of_it = MoneyAct(uuid.uuid4(), DEBIT, alice_workspace.pk, have, "A mistake")
    assert money_acts.do_or_ask(act=all_of_it, actor=operator) is Outcome.DONE
    account = CreditAccount.objects.get(pk=alice_workspace.pk)
    assert (account.available_micros, account.owed_micros) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_of_many_small_acts_at_once_no_more_are_done_alone_than_one_may(
    operator: User, alice_workspace: Workspace
) -> None:
    before = available(alice_workspace)
    outcomes = at_once(
        8, lambda _n: money_acts.do_or_ask(act=money_act(CREDIT, alice_workspace, 30), actor=operator)
    )
    assert (outcomes.count(Outcome.DONE), outcomes.count(Outcome.ASKED)) == (3, 5)
    assert available(alice_workspace) == before + 90 * YUAN
    assert_books_agree(alice_workspace.pk)


@pytest.mark.django_db(transaction=True)
def test_of_many_batches_at_once_no_more_are_made_alone_than_one_may(operator: User) -> None:
    def make(_number: int) -> int:
        page = client_of(operator).post(f"{BATCHES}new/", batch_values(count="4"), follow=True)
        return len(codes_in(page.content.decode()))

    outcomes = [one for one in at_once(6, make) if isinstance(one, int)]
    assert sorted(outcomes) == [0, 0, 0, 0, 4, 4]
    assert VoucherBatch.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_of_many_who_confirm_vouchers_at_once_one_makes_them(operator: User) -> None:
    others = [somebody(f"other{number}@example.com", is_staff=True) for number in range(6)]
    client_of(operator).post(f"{BATCHES}new/", batch_values(count="50"))
    pending = PendingAct.objects.get()
    outcomes = at_once(6, lambda n: len(confirm_vouchers(act_id=pending.pk, actor=others[n])[1]))
    assert outcomes.count(50) == 1
    assert sum(isinstance(outcome, PendingActDecided) for outcome in outcomes) == 5
    assert Voucher.objects.count() == 50
    with pytest.raises(SecondOperatorNeeded):
        confirm_vouchers(act_id=pending.pk, actor=operator)
