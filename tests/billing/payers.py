"""Doubles of providers for tests that ask for them, and short ways to pay."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from pytest_httpserver import HTTPServer

from accounts.models import Workspace
from billing.models import Payment, ProviderEvent, Refund
from billing.services.inbox import work_inbox
from billing.services.payments import begin_top_up
from tests.billing.fake_alipay_server import APP_ID, FakeAlipay, alipay_key, shop_key
from tests.billing.fake_stripe_server import SECRET_KEY, WEBHOOK_SECRET, FakeStripe, signature

YUAN = 1_000_000
# How long a client waits in tests; the doubles hold answers back for much longer.
TIMEOUT_S = 0.4


def make_workspace() -> uuid.UUID:
    return Workspace.objects.create(name="Payer").pk


def top_up(workspace_id: uuid.UUID, provider: str = "stripe", **changed: Any) -> Payment:
    """A top-up of 50 yuan that has begun."""
    asked = {
        "workspace_id": workspace_id,
        "provider_name": provider,
        "amount_micros": 50 * YUAN,
        "currency": "CNY",
        "idempotency_key": str(uuid.uuid4()),
    }
    return begin_top_up(**{**asked, **changed})


def deliver(fake: FakeStripe, kind: str, thing: dict[str, Any], event_id: str = "") -> None:
    """Stripe sends a message, and the clock works on it."""
    body = fake.event(kind, thing, event_id)
    response = post_to_stripes_webhook(body, signature(body))
    assert response.status_code == 200
    work_inbox()


def post_to_stripes_webhook(body: bytes, signed: str) -> Any:
    return Client().post(
        "/billing/webhooks/stripe", body, "application/json", headers={"Stripe-Signature": signed}
    )


def paid_top_up(fake: FakeStripe, workspace_id: uuid.UUID, **changed: Any) -> Payment:
    """A top-up that was paid with Stripe and is booked."""
    payment = top_up(workspace_id, **changed)
    fake.customer_pays(payment.provider_reference)
    deliver(fake, "checkout.session.completed", fake.things[payment.provider_reference])
    payment.refresh_from_db()
    return payment


def their_turn(age: timedelta = timedelta(hours=1)) -> None:
    """Everything was asked about so much earlier: its turn to be asked about comes."""
    for model, field in ((Payment, "asked_at"), (Refund, "asked_at"), (ProviderEvent, "next_try_at")):
        model.objects.update(**{field: F(field) - age})  # type: ignore[attr-defined]


def make_older(age: timedelta) -> None:
    """All payments, refunds and messages are so much older, and it is their turn."""
    Payment.objects.update(created_at=F("created_at") - age)
    Refund.objects.update(created_at=F("created_at") - age)
    ProviderEvent.objects.update(received_at=F("received_at") - age)
    their_turn(age)


@pytest.fixture(scope="session")
def provider_server() -> Iterator[HTTPServer]:
    """One server on loopback, for the double of each test in turn: to stop one takes half a second."""
    server = HTTPServer(host="127.0.0.1", port=0, threaded=True)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def stripe(settings: Any, provider_server: HTTPServer) -> Iterator[FakeStripe]:
    fake = FakeStripe(provider_server)
    settings.PAYMENTS = {
        **settings.PAYMENTS,
        "PROVIDERS": ["stripe"],
        "TIMEOUT_S": TIMEOUT_S,
        "STRIPE_SECRET_KEY": SECRET_KEY,
        "STRIPE_WEBHOOK_SECRETS": [WEBHOOK_SECRET],
        "STRIPE_API_ADDRESS": fake.address,
    }
    yield fake
    fake.stop()


@pytest.fixture
def alipay(settings: Any, provider_server: HTTPServer) -> Iterator[FakeAlipay]:
    fake = FakeAlipay(provider_server)
    settings.PAYMENTS = {
        **settings.PAYMENTS,
        "PROVIDERS": ["alipay"],
        "TIMEOUT_S": TIMEOUT_S,
        "ALIPAY_APP_ID": APP_ID,
        "ALIPAY_PRIVATE_KEY": shop_key().export_key().decode(),
        "ALIPAY_PUBLIC_KEY": alipay_key().public_key().export_key().decode(),
        "ALIPAY_GATEWAY": fake.gateway,
    }
    yield fake
    fake.stop()
