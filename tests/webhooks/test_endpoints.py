"""A workspace's endpoints: what may be set, what is refused, and what the workspace's row says of them."""

from __future__ import annotations

import base64
import uuid
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connection
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from accounts.errors import (
    TooManyWebhookEndpoints,
    WebhookDescriptionInvalid,
    WebhookEventsInvalid,
    WebhookUrlRefused,
)
from accounts.models import DeliveryState, WebhookDelivery, WebhookEndpoint, Workspace
from accounts.services.webhook_endpoints import (
    MAX_ENDPOINTS,
    change_endpoint,
    create_endpoint,
    delete_endpoint,
    rotate_secret,
)
from accounts.webhooks.secrets import secret_of, signed_headers
from portal.lib.errors import NotFound
from tests.webhooks.rows import happened, make_endpoint, only_delivery

pytestmark = pytest.mark.django_db


def wanted(workspace: Workspace) -> list[str]:
    return Workspace.objects.get(pk=workspace.pk).webhook_events


def test_an_endpoint_wants_what_was_chosen_and_the_workspace_says_so(alice_workspace: Workspace) -> None:
    first, _secret = make_endpoint(alice_workspace, events=["payment.failed", "job.failed"])
    assert first.event_types == ["job.failed", "payment.failed"]
    make_endpoint(alice_workspace, events=["job.succeeded", "job.failed"])
    assert wanted(alice_workspace) == ["job.failed", "job.succeeded", "payment.failed"]
    change_endpoint(workspace=alice_workspace, endpoint_id=first.pk, is_on=False)
    assert wanted(alice_workspace) == ["job.failed", "job.succeeded"]
    change_endpoint(workspace=alice_workspace, endpoint_id=first.pk, is_on=True, event_types=["balance.low"])
    assert wanted(alice_workspace) == ["balance.low", "job.failed", "job.succeeded"]
    for endpoint in WebhookEndpoint.objects.all():
        delete_endpoint(workspace=alice_workspace, endpoint_id=endpoint.pk)
    assert wanted(alice_workspace) == []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"url": "http://example.com/"}, WebhookUrlRefused),
        ({"url": "https://127.0.0.1/"}, WebhookUrlRefused),
        ({"url": "https://2130706433/"}, WebhookUrlRefused),
        ({"url": ""}, WebhookUrlRefused),
        ({"event_types": []}, WebhookEventsInvalid),
        ({"event_types": ["job.succeeded", "job.unknown"]}, WebhookEventsInvalid),
        ({"event_types": ["ping"]}, WebhookEventsInvalid),
        ({"description": "x" * 101}, WebhookDescriptionInvalid),
        ({"description": "left\u202eright"}, WebhookDescriptionInvalid),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    alice_workspace: Workspace, fields: dict[str, Any], error: type[Exception]
) -> None:
    valid: dict[str, Any] = {
        "url": "https://hooks.example/",
        "event_types": ["job.failed"],
        "description": "",
    }
    with pytest.raises(error):
        create_endpoint(workspace=alice_workspace, user=None, **{**valid, **fields})
    assert WebhookEndpoint.objects.count() == 0
    endpoint, _secret = create_endpoint(workspace=alice_workspace, user=None, **valid)
    before = WebhookEndpoint.objects.values().get()
    with pytest.raises(error):
        change_endpoint(workspace=alice_workspace, endpoint_id=endpoint.pk, **fields)
    assert WebhookEndpoint.objects.values().get() == before
    assert wanted(alice_workspace) == ["job.failed"]


def test_a_workspace_has_so_many_endpoints_and_no_more(alice_workspace: Workspace) -> None:
    for _number in range(MAX_ENDPOINTS):
        make_endpoint(alice_workspace)
    with pytest.raises(TooManyWebhookEndpoints):
        make_endpoint(alice_workspace)
    assert WebhookEndpoint.objects.count() == MAX_ENDPOINTS


def test_another_workspaces_endpoint_is_not_there(
    alice_workspace: Workspace, charlie_workspace: Workspace
) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    before = WebhookEndpoint.objects.values().get()
    for act in (change_endpoint, rotate_secret, delete_endpoint):
        with pytest.raises(NotFound):
            act(workspace=charlie_workspace, endpoint_id=endpoint.pk)  # type: ignore[operator]
    assert WebhookEndpoint.objects.values().get() == before


def test_switching_off_closes_what_waits(alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    happened(alice_workspace)
    change_endpoint(workspace=alice_workspace, endpoint_id=endpoint.pk, is_on=False)
    delivery = only_delivery()
    assert (delivery.state, delivery.error_code) == (DeliveryState.FAILED, "endpoint_off")
    happened(alice_workspace)
    assert WebhookDelivery.objects.count() == 1


# -- Secrets ---------------------------------------------------------------------------------------------------


def test_the_database_alone_does_not_hold_a_secret(alice_workspace: Workspace, settings: Any) -> None:
    endpoint, secret = make_endpoint(alice_workspace)
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(e)::text FROM accounts_webhookendpoint e")
        row = cursor.fetchone()[0]
    raw = base64.b64decode(secret.removeprefix("whsec_"))
    for form in (secret, secret.removeprefix("whsec_"), raw.hex()):
        assert form not in row
    # The same rows under another key are other secrets.
    other = secret_of(key="another key", endpoint_id=endpoint.pk, secret_id=endpoint.secret_id)
    assert other != secret
    assert secret == secret_of(key=settings.SECRET_KEY, endpoint_id=endpoint.pk, secret_id=endpoint.secret_id)


def test_each_endpoint_has_a_secret_of_its_own(alice_workspace: Workspace) -> None:
    secrets = {make_endpoint(alice_workspace)[1] for _number in range(3)}
    assert len(secrets) == 3


def test_a_rotated_secret_is_new_and_the_one_before_ends_in_a_day(alice_workspace: Workspace) -> None:
    endpoint, first = make_endpoint(alice_workspace)
    changed, second = rotate_secret(workspace=alice_workspace, endpoint_id=endpoint.pk)
    assert second != first
    assert changed.previous_secret_id == endpoint.secret_id
    assert changed.previous_secret_until is not None
    left = changed.previous_secret_until - datetime.now(UTC)
    assert timedelta(hours=23) < left <= timedelta(hours=24, minutes=1)
    again, _third = rotate_secret(workspace=alice_workspace, endpoint_id=endpoint.pk)
    assert again.previous_secret_id == changed.secret_id


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=8)), timezone(timedelta(hours=-5))])
def test_each_signature_is_valid_by_the_standards_own_library(zone: timezone) -> None:
    endpoint_id = uuid.uuid4()
    old, new = (secret_of(key="key", endpoint_id=endpoint_id, secret_id=uuid.uuid4()) for _ in range(2))
    body = '{"type":"ping","data":{"text":"你好"}}'
    headers = signed_headers(delivery_id=uuid.uuid4(), at=datetime.now(zone), body=body, secrets=[new, old])
    for secret in (old, new):
        assert Webhook(secret).verify(body, headers) == {"type": "ping", "data": {"text": "你好"}}
    with pytest.raises(WebhookVerificationError):
        Webhook(secret_of(key="key", endpoint_id=endpoint_id, secret_id=uuid.uuid4())).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new).verify(body + " ", headers)
