"""Alipay's page pay, over HTTP against its double."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from werkzeug import Response

from billing.errors import CurrencyNotAccepted, PaymentProviderUnknown
from billing.models import CreditAccount, Payment, PaymentState
from billing.services.payment_asking import EXPIRES_AFTER, ask_open_payments, refresh_payment
from tests.billing.books import assert_books_agree, balance
from tests.billing.fake_alipay_server import FakeAlipay, alipay_key
from tests.billing.fake_provider import Mishap
from tests.billing.payers import YUAN, make_older, make_workspace, their_turn, top_up


def ask(payment: Payment) -> Payment:
    their_turn()
    return refresh_payment(payment_id=payment.pk)


def test_the_page_says_what_is_paid_and_until_when(db: None, alipay: FakeAlipay) -> None:
    payment = top_up(make_workspace(), "alipay", amount_micros=12_340_000)
    fields = dict(parse_qsl(urlsplit(payment.pay_url).query))
    assert payment.pay_url.startswith(alipay.gateway)
    assert alipay.is_signed_by_shop(fields)
    content = json.loads(fields["biz_content"])
    assert (content["out_trade_no"], content["total_amount"]) == (str(payment.pk), "12.34")
    expires = payment.created_at + timedelta(hours=10)  # two hours, on Beijing's clock
    assert content["time_expire"] == expires.strftime("%Y-%m-%d %H:%M:%S")
    assert fields["notify_url"].endswith("/billing/webhooks/alipay")
    assert fields["return_url"].endswith(f"/billing/payments/{payment.pk}/")
    assert not alipay.calls


def test_a_payment_is_found_by_asking_when_its_message_is_lost(db: None, alipay: FakeAlipay) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id, "alipay")
    assert ask(payment).state == PaymentState.CREATED  # Alipay does not know it yet
    alipay.customer_opens(payment.pay_url)
    assert ask(payment).state == PaymentState.CREATED
    alipay.customer_pays(payment.pay_url)
    assert ask(payment).state == PaymentState.SUCCEEDED
    assert ask(payment).state == PaymentState.SUCCEEDED
    assert balance(workspace_id) == (50 * YUAN, 0)
    assert_books_agree(workspace_id)


@pytest.mark.parametrize("mishap", list(Mishap))
def test_without_an_answer_it_is_asked_again(db: None, alipay: FakeAlipay, mishap: Mishap) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id, "alipay")
    alipay.customer_pays(payment.pay_url)
    alipay.mishap(mishap)
    assert ask(payment).state == PaymentState.UNKNOWN
    assert balance(workspace_id) == (0, 0)
    assert ask(payment).state == PaymentState.SUCCEEDED
    assert balance(workspace_id) == (50 * YUAN, 0)


def test_an_answer_that_is_not_signed_by_alipay_is_not_believed(
    db: None, alipay: FakeAlipay, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id, "alipay")
    alipay.customer_pays(payment.pay_url)
    honest = alipay.answer
    forged: list[Any] = [
        lambda request: Response(honest(request).get_data(as_text=True).replace('"50.00"', '"5000.00"')),
        lambda request: Response('{"alipay_trade_query_response":{"code":"10000"}}'),
        lambda request: Response("<html>"),
        lambda request: Response("[]"),
        lambda request: Response(""),
    ]
    for answer in forged:
        monkeypatch.setattr(alipay, "answer", answer)
        assert ask(payment).state == PaymentState.UNKNOWN
    assert balance(workspace_id) == (0, 0)
    monkeypatch.setattr(alipay, "answer", honest)
    assert ask(payment).state == PaymentState.SUCCEEDED


def test_another_amount_is_not_booked(db: None, alipay: FakeAlipay) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id, "alipay")
    for amount in ("49.99", "5000.00", "-50.00", "fifty"):
        alipay.customer_pays(payment.pay_url)["total_amount"] = amount
        assert ask(payment).state == PaymentState.UNKNOWN
    assert balance(workspace_id) == (0, 0)


@pytest.mark.parametrize("opened", [True, False])
def test_a_page_that_nobody_pays_on_is_closed(db: None, alipay: FakeAlipay, opened: bool) -> None:
    payment = top_up(make_workspace(), "alipay")
    if opened:
        alipay.customer_opens(payment.pay_url)
    make_older(EXPIRES_AFTER)
    assert ask_open_payments() == 1
    payment.refresh_from_db()
    assert payment.state == PaymentState.EXPIRED
    assert [trade["trade_status"] for trade in alipay.trades.values()] == ["TRADE_CLOSED"] * opened


def test_a_customer_who_pays_while_it_is_closed_has_paid(
    db: None, alipay: FakeAlipay, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace_id = make_workspace()
    payment = top_up(workspace_id, "alipay")
    alipay.customer_opens(payment.pay_url)
    close = alipay._close

    def pay_just_before(content: dict[str, Any]) -> dict[str, Any]:
        alipay.customer_pays(payment.pay_url)
        return close(content)

    monkeypatch.setattr(alipay, "_close", pay_just_before)
    make_older(EXPIRES_AFTER)
    ask_open_payments()
    payment.refresh_from_db()
    assert payment.state == PaymentState.SUCCEEDED
    assert balance(workspace_id) == (50 * YUAN, 0)


def test_only_yuan_are_taken(db: None, alipay: FakeAlipay) -> None:
    workspace_id = make_workspace()
    CreditAccount.objects.create(workspace_id=workspace_id, currency="USD")
    with pytest.raises(CurrencyNotAccepted):
        top_up(workspace_id, "alipay", currency="USD")
    assert Payment.objects.count() == 0


def test_with_a_key_that_alipay_does_not_know_nothing_is_concluded(
    db: None, alipay: FakeAlipay, settings: Any
) -> None:
    payment = top_up(make_workspace(), "alipay")
    alipay.customer_pays(payment.pay_url)
    good = settings.PAYMENTS
    settings.PAYMENTS = {**good, "ALIPAY_PRIVATE_KEY": alipay_key().export_key().decode()}
    assert ask(payment).state == PaymentState.UNKNOWN
    settings.PAYMENTS = good
    assert ask(payment).state == PaymentState.SUCCEEDED


def test_without_its_keys_it_is_not_there(db: None, alipay: FakeAlipay, settings: Any) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "ALIPAY_PUBLIC_KEY": ""}
    with pytest.raises(PaymentProviderUnknown):
        top_up(make_workspace(), "alipay")
    assert Payment.objects.count() == 0
