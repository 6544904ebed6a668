"""Topping up on the pages: each form is one payment, states in words, vouchers once, and only for who pays."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, Role, User, Workspace
from billing.models import AutomaticTopUp, Payment, PaymentMethod, PaymentState, Voucher, VoucherState
from billing.services import vouchers
from billing.services.pretend_payments import save_test_method
from tests.billing.books import all_books, assert_books_agree, balance
from tests.cast import client_of
from tests.pages.reading import text_of

pytestmark = pytest.mark.django_db
WELCOME = 3_600_000


@pytest.fixture(autouse=True)
def _test_provider(settings: Any) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "PROVIDERS": ["test"], "TEST_PROVIDER": True}
    cache.clear()


def fields(**changes: str) -> dict[str, str]:
    return {"form_id": str(uuid.uuid4()), "amount": "100", "own_amount": "", "provider": "test", **changes}


def begin(client: Client, **changes: str) -> Payment:
    answer = client.post(reverse("top_up"), fields(**changes))
    assert answer.status_code == 302
    payment = Payment.objects.latest("created_at")
    assert answer["Location"] == reverse("payment", args=[payment.pk])
    return payment


def decide(client: Client, payment: Payment, outcome: str) -> Any:
    return client.post(reverse("test_payment", args=[payment.pk]), {"outcome": outcome})


def test_a_top_up_is_begun_confirmed_and_booked_once(
    alice_workspace: Workspace, alice_client: Client
) -> None:
    page = alice_client.get(reverse("top_up")).content.decode()
    assert "Test payment: no money moves" in page
    assert re.findall(r'name="amount" value="(\w+)"', page) == ["50", "100", "200", "500", "1000", "own"]
    payment = begin(alice_client)
    assert (payment.amount_micros, payment.currency, payment.state) == (
        100_000_000,
        "CNY",
        PaymentState.CREATED,
    )
    waiting = alice_client.get(reverse("payment", args=[payment.pk]))
    assert "Nothing is charged before" in text_of(waiting)
    assert f'href="{payment.pay_url}"' in waiting.content.decode()
    assert payment.pay_url.endswith(reverse("test_payment", args=[payment.pk]))
    assert "No money moves here" in text_of(alice_client.get(reverse("test_payment", args=[payment.pk])))
    assert balance(alice_workspace.pk) == (WELCOME, 0)
    for outcome in ("paid", "paid", "declined"):
        assert decide(alice_client, payment, outcome)["Location"] == reverse("payment", args=[payment.pk])
    assert balance(alice_workspace.pk) == (WELCOME + 100_000_000, 0)
    assert_books_agree(alice_workspace.pk)
    assert "It arrived" in text_of(alice_client.get(reverse("payment", args=[payment.pk])))
    assert "Paid" in text_of(alice_client.get(reverse("payments")))
    assert "Paid in – +CN¥100.00" in text_of(alice_client.get(reverse("ledger")))


def test_the_same_form_sent_again_is_the_same_payment(alice_client: Client) -> None:
    form_id = str(uuid.uuid4())
    first = begin(alice_client, form_id=form_id)
    assert begin(alice_client, form_id=form_id) == first
    assert alice_client.post(reverse("top_up"), fields(form_id=form_id, amount="50")).status_code == 409
    assert Payment.objects.count() == 1
    assert begin(alice_client) != first


def test_a_declined_payment_costs_nothing_and_says_so(
    alice_workspace: Workspace, alice_client: Client
) -> None:
    payment = begin(alice_client, amount="own", own_amount="12.50")
    books = all_books()
    decide(alice_client, payment, "declined")
    page = text_of(alice_client.get(reverse("payment", args=[payment.pk])))
    assert "Payment of CN¥12.50" in page
    assert "Nothing was charged" in page
    assert "declined" in page
    assert all_books() == books


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": "own", "own_amount": own}
        for own in ("", "-5", "0", "1e9", "12.345", "NaN", "ten", "9.99", "100001", "１２", "9" * 20)
    ]
    + [{"amount": "7"}, {"provider": "stripe"}, {"provider": "cash"}, {"form_id": "x"}, {"form_id": ""}],
)
def test_what_cannot_be_paid_is_explained_and_begins_nothing(
    alice_client: Client, changes: dict[str, str]
) -> None:
    books = all_books()
    answer = alice_client.post(reverse("top_up"), fields(**changes))
    assert answer.status_code == 422
    assert "form_id" in changes or "field__error" in answer.content.decode()
    assert Payment.objects.count() == 0
    assert all_books() == books


def test_without_a_provider_one_is_told_whom_to_ask(alice_client: Client, settings: Any) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "PROVIDERS": [], "TEST_PROVIDER": False}
    assert "No way to pay online is set up here" in text_of(alice_client.get(reverse("top_up")))
    assert alice_client.post(reverse("top_up"), fields()).status_code == 422
    assert alice_client.get(reverse("test_method")).status_code == 404
    assert alice_client.post(reverse("test_method")).status_code == 404
    assert PaymentMethod.objects.count() == 0


def test_a_voucher_brings_its_credit_once(
    alice: User, alice_workspace: Workspace, alice_client: Client
) -> None:
    _batch, codes = vouchers.create_batch(
        name="Fair",
        amount_micros=25_000_000,
        currency="CNY",
        count=2,
        expires_at=None,
        credit_days=30,
        created_by_id=alice.pk,
    )
    assert alice_client.post(reverse("voucher_redeem"), {"code": codes[0].lower()})["Location"] == reverse(
        "billing"
    )
    assert balance(alice_workspace.pk) == (WELCOME + 25_000_000, 0)
    books = all_books()
    again = alice_client.post(reverse("voucher_redeem"), {"code": codes[0]})
    assert (again.status_code, "redeemed before" in text_of(again)) == (422, True)
    for code in ("", "nonsense", codes[1][:-1]):
        assert alice_client.post(reverse("voucher_redeem"), {"code": code}).status_code == 422
    assert all_books() == books
    assert Voucher.objects.filter(state=VoucherState.NEW).count() == 1


def test_ways_to_pay_are_saved_chosen_and_removed(alice_workspace: Workspace, alice_client: Client) -> None:
    leaving = alice_client.post(reverse("method_save"), {"provider": "test"})
    assert reverse("test_method") in leaving.content.decode()
    for _ in range(2):
        assert alice_client.post(reverse("test_method"))["Location"] == reverse("methods")
    first, second = PaymentMethod.objects.order_by("created_at")
    assert (first.is_default, second.is_default) == (True, False)
    alice_client.post(reverse("method_default", args=[second.pk]))
    page = alice_client.get(reverse("methods")).content.decode()
    assert f'id="remove-{first.pk}"' in page
    alice_client.post(reverse("method_remove", args=[second.pk]))
    first.refresh_from_db()
    assert first.is_default
    assert alice_client.post(reverse("method_remove", args=[second.pk])).status_code == 404
    assert alice_client.post(reverse("method_default", args=[uuid.uuid4()])).status_code == 404


RULE = {"is_on": "on", "below": "10", "amount": "100", "monthly_cap": "300"}


def test_the_automatic_top_up_needs_a_way_to_pay_and_a_cap(
    alice_workspace: Workspace, alice_client: Client
) -> None:
    address = reverse("automatic_set")
    refused = alice_client.post(address, RULE)
    assert (refused.status_code, "No saved card" in text_of(refused)) == (422, True)
    save_test_method(workspace_id=alice_workspace.pk)
    for changes in (
        {"monthly_cap": "50"},
        {"amount": "0"},
        {"amount": "1"},
        {"below": "-1"},
        {"amount": "x"},
    ):
        assert alice_client.post(address, {**RULE, **changes}).status_code == 422
    assert not AutomaticTopUp.objects.exists()
    assert alice_client.post(address, RULE)["Location"] == reverse("methods")
    rule = AutomaticTopUp.objects.get()
    assert (rule.is_on, rule.below_micros, rule.amount_micros, rule.monthly_cap_micros) == (
        True,
        10_000_000,
        100_000_000,
        300_000_000,
    )
    assert 'name="is_on" id="id_is_on" checked' in alice_client.get(reverse("methods")).content.decode()
    alice_client.post(address, {name: value for name, value in RULE.items() if name != "is_on"})
    rule.refresh_from_db()
    assert not rule.is_on


@pytest.mark.parametrize(("role", "status"), [(Role.BILLING, 200), (Role.ADMIN, 403), (Role.MEMBER, 403)])
def test_payments_are_for_owners_and_the_billing_role(
    alice: User, charlie: User, team: Workspace, role: Role, status: int
) -> None:
    owner = client_of(alice)
    owner.post(reverse("choose_workspace"), {"workspace": str(team.pk)})
    payment = begin(owner)
    method = save_test_method(workspace_id=team.pk)
    Membership.objects.create(workspace=team, user=charlie, role=role)
    client = client_of(charlie)
    client.post(reverse("choose_workspace"), {"workspace": str(team.pk)})
    for address in (
        reverse("top_up"),
        reverse("payments"),
        reverse("payment", args=[payment.pk]),
        reverse("methods"),
        reverse("test_payment", args=[payment.pk]),
        reverse("test_method"),
    ):
        assert client.get(address).status_code == status, address
    if status == 200:
        return
    books = all_books()
    for address, sent in (
        (reverse("top_up"), fields()),
        (reverse("voucher_redeem"), {"code": "x"}),
        (reverse("method_save"), {"provider": "test"}),
        (reverse("method_default", args=[method.pk]), {}),
        (reverse("method_remove", args=[method.pk]), {}),
        (reverse("automatic_set"), RULE),
        (reverse("test_payment", args=[payment.pk]), {"outcome": "paid"}),
        (reverse("test_method"), {}),
    ):
        assert client.post(address, sent).status_code == 403, address
    assert all_books() == books
    assert (Payment.objects.count(), PaymentMethod.objects.get().removed_at) == (1, None)
    assert not AutomaticTopUp.objects.exists()


def test_a_payment_of_others_is_not_there(alice_client: Client, charlie_client: Client) -> None:
    payment = begin(alice_client)
    for name in ("payment", "test_payment"):
        assert charlie_client.get(reverse(name, args=[payment.pk])).status_code == 404
    assert decide(charlie_client, payment, "paid").status_code == 404
    payment.refresh_from_db()
    assert payment.state == PaymentState.CREATED


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("name", ["top_up", "payments", "methods", "test_method"])
def test_the_pages_are_whole(alice_client: Client, name: str, language: str) -> None:
    begin(alice_client)
    page = alice_client.get(reverse(name), headers={"Accept-Language": language}).content.decode()
    assert f'<html lang="{language}"' in page
    assert len(re.findall(r"<h1[\s>]", page)) == 1
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert sorted(ids) == sorted(set(ids))
