"""Payments that operators record and refund, and vouchers that they make: once each, and nobody else does."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

import pytest
from django.test import Client

from accounts.models import AuditEntry, User, Workspace
from billing.models import CreditAccount, Payment, Refund, TransactionKind, Voucher, VoucherBatch
from billing.services import vouchers
from billing.services.debits import debit
from billing.services.payments import record_payment
from portal.console import money_acts
from portal.lib.clock import now
from portal.lib.errors import NotFound
from tests.billing.books import assert_books_agree, at_once
from tests.cast import client_of
from tests.console.money_rows import YUAN, available, everything
from tests.console.rows import somebody

pytestmark = pytest.mark.django_db
BATCHES = "/console/money/vouchers/"


def state() -> tuple[object, ...]:
    rows = [
        list(model.objects.order_by("pk").values_list()) for model in (Payment, Refund, VoucherBatch, Voucher)
    ]
    return (*everything(), *rows)


def record(client: Client, workspace: Workspace, **values: str) -> int:
    sent = {
        "provider": "bank_transfer",
        "amount": "88.00",
        "reference": "ICBC-1",
        "reason": "On today's statement",
        "key": str(uuid.uuid4()),
        **values,
    }
    return client.post(f"/console/customers/{workspace.pk}/payment/", sent).status_code


def paid(workspace: Workspace, operator: User, yuan: int, *, provider: str = "bank_transfer") -> Payment:
    return record_payment(
        workspace_id=workspace.pk,
        provider_name=provider,
        amount_micros=yuan * YUAN,
        currency="CNY",
        reference=uuid.uuid4().hex,
        note="",
        recorded_by_id=operator.pk,
        idempotency_key=uuid.uuid4().hex,
    )


def refund(client: Client, payment: Payment, **values: str) -> int:
    sent = {"reason": "A mistake", "key": str(uuid.uuid4()), **values}
    return client.post(f"/console/payments/{payment.pk}/refund/", sent).status_code


def test_money_that_arrived_is_booked_at_once(
    operator: User, operator_client: Client, alice_workspace: Workspace
) -> None:
    before = available(alice_workspace)
    assert record(operator_client, alice_workspace) == 302
    payment = Payment.objects.get()
    assert (payment.provider, payment.amount_micros, payment.provider_reference, payment.recorded_by_id) == (
        "bank_transfer",
        88 * YUAN,
        "ICBC-1",
        operator.pk,
    )
    assert (payment.state, payment.note) == ("succeeded", "On today's statement")
    assert available(alice_workspace) == before + 88 * YUAN
    assert_books_agree(alice_workspace.pk)
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.after) == (
        "customer.payment",
        {"amount_micros": 88 * YUAN, "provider": "bank_transfer"},
    )
    assert "ICBC-1" in operator_client.get(f"/console/customers/{alice_workspace.pk}/").content.decode()


def test_a_recorded_payment_is_recorded_once(operator_client: Client, alice_workspace: Workspace) -> None:
    key = str(uuid.uuid4())
    record(operator_client, alice_workspace, key=key)
    before = state()
    # The form once more, and the same transfer in another form.
    assert record(operator_client, alice_workspace, key=key) == 302
    assert record(operator_client, alice_workspace) == 200
    assert state() == before


@pytest.mark.parametrize(
    "values",
    [
        {"amount": "0"},
        {"amount": "-1"},
        {"amount": "0.001"},
        {"amount": "many"},
        {"reference": " "},
        {"provider": "stripe"},
        {"provider": "test"},
        {"reason": ""},
        {"key": "x"},
    ],
)
def test_what_did_not_arrive_is_not_booked(
    operator_client: Client, alice_workspace: Workspace, values: dict[str, str]
) -> None:
    before = state()
    assert record(operator_client, alice_workspace, **values) == 200
    assert state() == before


def test_a_payment_is_refunded_in_part_and_once(
    operator: User, operator_client: Client, alice_workspace: Workspace
) -> None:
    payment = paid(alice_workspace, operator, 80)
    before, key = available(alice_workspace), str(uuid.uuid4())
    assert refund(operator_client, payment, amount="30", key=key) == 302
    assert available(alice_workspace) == before - 30 * YUAN
    made = Refund.objects.get()
    assert (made.state, made.amount_micros, made.requested_by_id) == ("succeeded", 30 * YUAN, operator.pk)
    payment.refresh_from_db()
    assert payment.refunded_micros == 30 * YUAN
    assert_books_agree(alice_workspace.pk)
    assert AuditEntry.objects.get().act == "payment.refund"
    unchanged = state()
    assert refund(operator_client, payment, amount="30", key=key) == 302
    for amount in ("50.01", "0", "-5", "0.001", ""):
        assert refund(operator_client, payment, amount=amount) == 200
    assert state() == unchanged


def test_a_large_refund_of_a_payment_needs_a_second_operator(
    operator: User, operator_client: Client, alice_workspace: Workspace
) -> None:
    second = somebody("second@example.com", is_staff=True)
    payment = paid(alice_workspace, operator, 500)
    before = available(alice_workspace)
    refund(operator_client, payment, amount="400")
    assert available(alice_workspace) == before
    assert not Refund.objects.exists()
    (act_id,) = re.findall(
        r"decline-([0-9a-f-]{36})", operator_client.get("/console/money/pending/").content.decode()
    )
    client_of(second).post(f"/console/money/pending/{act_id}/confirm/")
    assert available(alice_workspace) == before - 400 * YUAN
    assert Refund.objects.get().state == "succeeded"
    assert_books_agree(alice_workspace.pk)


def test_what_was_spent_meanwhile_is_not_refunded(
    operator: User, operator_client: Client, alice_workspace: Workspace
) -> None:
    second = somebody("second@example.com", is_staff=True)
    payment = paid(alice_workspace, operator, 500)
    refund(operator_client, payment, amount="400")
    debit(
        workspace_id=alice_workspace.pk,
        amount_micros=200 * YUAN,
        kind=TransactionKind.FEE,
        idempotency_key="fee",
        may_owe=False,
    )
    (act_id,) = re.findall(
        r"decline-([0-9a-f-]{36})", operator_client.get("/console/money/pending/").content.decode()
    )
    before = state()
    client_of(second).post(f"/console/money/pending/{act_id}/confirm/")
    assert state() == before


def test_another_customers_payment_is_not_refunded_through_this_one(
    operator: User, alice_workspace: Workspace, bob_workspace: Workspace
) -> None:
    payment = paid(alice_workspace, operator, 50)
    before = state()
    wrong = money_acts.MoneyAct(
        id=uuid.uuid4(),
        act=money_acts.PAYMENT_REFUND,
        workspace_id=bob_workspace.pk,
        amount_micros=YUAN,
        reason="",
        payment_id=payment.pk,
    )
    with pytest.raises(NotFound):
        money_acts.do_or_ask(act=wrong, actor=operator)
    assert state() == before


def batch_values(**changes: str) -> dict[str, str]:
    return {
        "name": "Trade fair",
        "amount": "10",
        "count": "3",
        "expires_at": "",
        "credit_days": "",
        "reason": "For the booth",
        "key": str(uuid.uuid4()),
        **changes,
    }


def codes_in(page: str) -> list[str]:
    return re.findall(r"[2-9A-HJ-NP-Z]{4}(?:-[2-9A-HJ-NP-Z]{4}){3}", page)


def test_the_codes_of_a_batch_are_shown_once_and_can_be_redeemed(
    operator: User, operator_client: Client, alice: User, alice_workspace: Workspace
) -> None:
    values = batch_values(credit_days="30")
    answer = operator_client.post(f"{BATCHES}new/", values)
    assert "no-store" in answer["Cache-Control"]
    codes = codes_in(answer.content.decode())
    assert len(set(codes)) == 3
    before = available(alice_workspace)
    vouchers.redeem(workspace_id=alice_workspace.pk, user_id=alice.pk, code=codes[0])
    assert available(alice_workspace) == before + 10 * YUAN
    # The form once more: no other batch, and no codes.
    unchanged = state()
    again = operator_client.post(f"{BATCHES}new/", values, follow=True).content.decode()
    assert codes_in(again) == []
    assert "Trade fair" in again
    assert state() == unchanged
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.actor, entry.object_name, entry.after) == (
        "vouchers.add",
        operator,
        "Trade fair",
        {"amount_micros": 10 * YUAN, "vouchers": 3, "credit_days": 30},
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": "0"},
        {"amount": "-1"},
        {"amount": "0.001"},
        {"amount": "99999999"},
        {"count": "0"},
        {"count": "10001"},
        {"count": "1.5"},
        {"credit_days": "0"},
        {"expires_at": "2020-01-01T00:00"},
        {"name": " "},
        {"reason": ""},
        {"key": ""},
    ],
)
def test_a_batch_that_is_none_is_not_made(operator_client: Client, changes: dict[str, str]) -> None:
    before = state()
    answer = operator_client.post(f"{BATCHES}new/", batch_values(**changes))
    assert codes_in(answer.content.decode()) == []
    assert state() == before


def test_what_nobody_redeemed_is_withdrawn_and_the_rest_stays(
    operator_client: Client, alice: User, alice_workspace: Workspace
) -> None:
    page = operator_client.post(f"{BATCHES}new/", batch_values()).content.decode()
    vouchers.redeem(workspace_id=alice_workspace.pk, user_id=alice.pk, code=codes_in(page)[0])
    batch = VoucherBatch.objects.get()
    place = f"{BATCHES}{batch.pk}/void/"
    before = state()
    operator_client.post(place, {"reason": " "})
    assert state() == before
    operator_client.post(place, {"reason": "The fair is over"})
    assert sorted(Voucher.objects.values_list("state", flat=True)) == ["redeemed", "voided", "voided"]
    assert AuditEntry.objects.latest("pk").after == {"vouchers": 2}
    before = state()
    operator_client.post(place, {"reason": "Again"})
    assert state() == before
    assert operator_client.get(f"{BATCHES}{uuid.uuid4()}/void/").status_code == 404


def test_customers_record_refund_and_make_nothing(
    operator: User, alice_client: Client, alice_workspace: Workspace
) -> None:
    payment = paid(alice_workspace, operator, 50)
    batch, _codes = vouchers.create_batch(
        name="x",
        amount_micros=10 * YUAN,
        currency="CNY",
        count=1,
        expires_at=now() + timedelta(days=1),
        credit_days=None,
        created_by_id=operator.pk,
    )
    before = state()
    assert record(alice_client, alice_workspace) == 404
    assert refund(alice_client, payment, amount="50") == 404
    assert alice_client.get(BATCHES).status_code == 404
    assert alice_client.post(f"{BATCHES}new/", batch_values()).status_code == 404
    assert alice_client.post(f"{BATCHES}{batch.pk}/void/", {"reason": "Mine"}).status_code == 404
    assert state() == before


@pytest.mark.django_db(transaction=True)
def test_the_same_form_from_many_tabs_makes_one_batch(operator: User) -> None:
    values = batch_values()

    def make(_number: int) -> int:
        return len(codes_in(client_of(operator).post(f"{BATCHES}new/", values).content.decode()))

    assert sorted(one for one in at_once(6, make) if isinstance(one, int)) == [0, 0, 0, 0, 0, 3]
    assert VoucherBatch.objects.count() == AuditEntry.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_same_transfer_recorded_by_many_at_once_is_booked_once(
    operator: User, alice_workspace: Workspace
) -> None:
    before = available(alice_workspace)

    def send(_number: int) -> int:
        return record(client_of(operator), alice_workspace)

    outcomes = at_once(6, send)
    assert outcomes.count(302) == 1
    assert Payment.objects.count() == AuditEntry.objects.count() == 1
    assert available(alice_workspace) == before + 88 * YUAN
    assert CreditAccount.objects.get(pk=alice_workspace.pk).owed_micros == 0
