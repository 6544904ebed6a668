"""Deliveries over real sockets: signed, at least once, none waiting for another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from accounts.models import (
    DeliveryState,
    SwitchedOff,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    Workspace,
)
from accounts.services.webhook_deliveries import send_test
from accounts.services.webhook_endpoints import rotate_secret
from accounts.services.webhook_sending import deliver_due
from accounts.webhook_upkeep import WebhookUpkeep
from tests.billing.books import at_once
from tests.webhooks.double_of_a_customer import Answer, CustomersServer
from tests.webhooks.rows import happened, let_leases_end, make_due, make_endpoint, only_delivery

pytestmark = pytest.mark.django_db(transaction=True)


def url_of(server: CustomersServer, path: str = "/hook") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def test_a_customer_can_verify_what_comes(alice_workspace: Workspace, secure_server: CustomersServer) -> None:
    # By its name, over TLS: the first of its addresses may be ::1, where nobody listens.
    _endpoint, secret = make_endpoint(alice_workspace, f"https://localhost:{secure_server.port}/hook?a=b")
    subject = happened(alice_workspace)
    assert deliver_due() == 1
    (received,) = secure_server.received
    assert received.path == "/hook?a=b"
    assert received.headers["content-type"] == "application/json"
    assert received.id == f"msg_{only_delivery().pk.hex}"
    message = Webhook(secret).verify(received.body, received.headers)
    assert message["type"] == "job.succeeded"
    assert message["data"] == {"id": subject, "workspace_id": str(alice_workspace.pk)}
    assert message["timestamp"].endswith("Z")
    assert only_delivery().state == DeliveryState.DELIVERED


def test_for_a_day_after_a_rotation_both_secrets_sign(
    alice_workspace: Workspace, customers_server: CustomersServer
) -> None:
    endpoint, old = make_endpoint(alice_workspace, url_of(customers_server))
    _endpoint, new = rotate_secret(workspace=alice_workspace, endpoint_id=endpoint.pk)
    happened(alice_workspace)
    deliver_due()
    (received,) = customers_server.received
    assert len(received.headers["webhook-signature"].split()) == 2
    for secret in (old, new):
        assert Webhook(secret).verify(received.body, received.headers)["type"] == "job.succeeded"
    WebhookEndpoint.objects.update(previous_secret_until=endpoint.created_at)
    happened(alice_workspace)
    deliver_due()
    assert len(customers_server.received[1].headers["webhook-signature"].split()) == 1


def test_every_try_says_the_same_under_the_same_id(
    alice_workspace: Workspace, customers_server: CustomersServer
) -> None:
    customers_server.answers = [Answer(status=503, body="bitte später".encode()), Answer()]
    make_endpoint(alice_workspace, url_of(customers_server))
    happened(alice_workspace)
    deliver_due()
    assert only_delivery().state == DeliveryState.PENDING
    make_due()
    deliver_due()
    assert only_delivery().state == DeliveryState.DELIVERED
    first, second = customers_server.received
    assert (first.id, first.body) == (second.id, second.body)
    tries = WebhookAttempt.objects.order_by("number").values_list("status_code", "response_start")
    assert list(tries) == [(503, "bitte später"), (204, "")]


def test_one_that_does_not_answer_delays_no_other(
    alice_workspace: Workspace, charlie_workspace: Workspace, customers_server: CustomersServer
) -> None:
    gate = threading.Event()
    slow = CustomersServer()
    slow.answers = [Answer(before=lambda: gate.wait(60))]
    make_endpoint(alice_workspace, url_of(slow))
    make_endpoint(charlie_workspace, url_of(customers_server))
    upkeep = WebhookUpkeep()
    for _number in range(10):
        happened(alice_workspace)
    upkeep.tick()
    slow.wait_for(1)
    # The round is still at work; what comes up meanwhile is taken into it.
    for _number in range(20):
        happened(charlie_workspace)
    customers_server.wait_for(20)
    assert upkeep.thread.is_busy
    gate.set()
    slow.wait_for(10)
    assert upkeep.thread.wait(60)
    slow.stop()
    assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {DeliveryState.DELIVERED}


def test_two_clocks_send_each_once(alice_workspace: Workspace, customers_server: CustomersServer) -> None:
    for _number in range(3):
        make_endpoint(alice_workspace, url_of(customers_server))
    for _number in range(10):
        happened(alice_workspace)
    counts = at_once(3, lambda _number: deliver_due())
    assert sum(count for count in counts if isinstance(count, int)) == 30, counts
    assert len({received.id for received in customers_server.received}) == 30
    assert len(customers_server.received) == 30


_DELIVER = """
import django
django.setup()
from django.conf import settings
settings.WEBHOOKS["LOOPBACK_HTTP"] = True
from accounts.services.webhook_sending import deliver_due
deliver_due()
"""


def test_a_clock_that_is_killed_between_sending_and_writing_sends_again_under_the_same_id(
    alice_workspace: Workspace, customers_server: CustomersServer, settings: Any
) -> None:
    gate = threading.Event()
    customers_server.answers = [Answer(before=lambda: gate.wait(120)), Answer()]
    make_endpoint(alice_workspace, url_of(customers_server))
    happened(alice_workspace)
    test_database = settings.DATABASES["default"]["NAME"]
    address, _slash, _name = os.environ["DATABASE_URL"].rpartition("/")
    clock = subprocess.Popen(
        [sys.executable, "-c", _DELIVER],
        env={**os.environ, "DATABASE_URL": f"{address}/{test_database}"},
    )
    try:
        customers_server.wait_for(1, timeout_s=120)
    finally:
        clock.send_signal(signal.SIGKILL)
        clock.wait(60)
    gate.set()
    assert (only_delivery().state, only_delivery().attempts) == (DeliveryState.SENDING, 1)
    assert deliver_due() == 0
    let_leases_end()
    assert deliver_due() == 1
    first, second = customers_server.wait_for(2)
    assert (first.id, first.body) == (second.id, second.body)
    assert (only_delivery().state, only_delivery().attempts) == (DeliveryState.DELIVERED, 2)


def test_a_test_is_sent_and_says_what_it_is(
    alice_workspace: Workspace, customers_server: CustomersServer
) -> None:
    endpoint, _secret = make_endpoint(alice_workspace, url_of(customers_server))
    send_test(workspace=alice_workspace, endpoint_id=endpoint.pk)
    deliver_due()
    message = json.loads(customers_server.received[0].body)
    assert (message["type"], message["data"]["endpoint_id"]) == ("ping", str(endpoint.pk))


def test_what_must_not_be_called_is_not(
    alice_workspace: Workspace, customers_server: CustomersServer
) -> None:
    """Also where the address was allowed when the endpoint was made."""
    _endpoint, _secret = make_endpoint(alice_workspace, url_of(customers_server))
    WebhookEndpoint.objects.update(url=f"https://169.254.169.254:{customers_server.port}/latest/meta-data")
    happened(alice_workspace)
    deliver_due()
    assert customers_server.received == []
    delivery = only_delivery()
    assert (delivery.state, delivery.status_code, delivery.error_code) == (
        DeliveryState.PENDING,
        None,
        "address_refused",
    )


def test_an_endpoint_that_was_switched_off_meanwhile_gets_nothing(
    alice_workspace: Workspace, customers_server: CustomersServer
) -> None:
    make_endpoint(alice_workspace, url_of(customers_server))
    happened(alice_workspace)
    WebhookEndpoint.objects.update(is_on=False, switched_off=SwitchedOff.BY_PEOPLE)
    deliver_due()
    assert customers_server.received == []
    delivery = only_delivery()
    assert (delivery.state, delivery.error_code, delivery.attempts) == (
        DeliveryState.FAILED,
        "endpoint_off",
        0,
    )


def test_logs_hold_neither_address_nor_secret_nor_body(
    alice_workspace: Workspace, customers_server: CustomersServer, caplog: pytest.LogCaptureFixture
) -> None:
    _endpoint, secret = make_endpoint(alice_workspace, url_of(customers_server, "/hook?token=private"))
    happened(alice_workspace)
    with caplog.at_level("DEBUG"):
        deliver_due()
    told = " ".join(str(vars(record)) for record in caplog.records)
    assert "webhook_sent" in told
    for hidden in ("token=private", secret, secret.removeprefix("whsec_"), "v1,"):
        assert hidden not in told
