"""Webhooks over the API. Each answer is held against openapi.yaml by the client."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from accounts.models import Membership, Role, User, WebhookDelivery, WebhookEndpoint, Workspace
from accounts.services.webhook_deliveries import TESTS_PER_MINUTE, claim_due, record_outcome
from accounts.services.webhook_endpoints import MAX_ENDPOINTS
from portal.lib.outgoing.posting import PostResult
from tests.cast import Api, api_of
from tests.webhooks.rows import happened, make_endpoint, only_delivery

pytestmark = pytest.mark.django_db
NEW = {"url": "https://hooks.example/voicepool", "event_types": ["job.failed", "job.succeeded"]}


def test_an_endpoint_is_made_read_changed_and_deleted(alice_api: Api) -> None:
    made = alice_api.send("POST", "/api/v1/webhooks", NEW)
    assert made.status_code == 201
    body = made.json()
    assert body.pop("secret").startswith("whsec_")
    assert body["event_types"] == ["job.succeeded", "job.failed"]
    address = f"/api/v1/webhooks/{body['id']}"
    assert alice_api.get(address).json() == body
    assert alice_api.get("/api/v1/webhooks").json()["results"] == [body]
    changed = alice_api.send("PATCH", address, {"is_on": False, "description": "Shop"}).json()
    assert (changed["is_on"], changed["switched_off"], changed["description"]) == (False, "by_people", "Shop")
    assert changed["url"] == NEW["url"]
    rotated = alice_api.send("POST", f"{address}/rotate").json()
    assert rotated["secret"].startswith("whsec_")
    assert rotated["previous_secret_until"] is not None
    assert alice_api.delete(address).status_code == 204
    assert alice_api.get(address).status_code == 404
    assert alice_api.get("/api/v1/webhooks").json()["results"] == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"url": "https://192.168.0.1/"}, "webhook_url_refused"),
        ({"url": "http://example.com/"}, "webhook_url_refused"),
        ({"url": 7}, "invalid_input"),
        ({"event_types": []}, "invalid_input"),
        ({"event_types": ["ping"]}, "invalid_input"),
        ({"event_types": "job.failed"}, "invalid_input"),
        ({"secret": "whsec_mine"}, "invalid_input"),
        ({"description": "x" * 101}, "invalid_input"),
    ],
)
def test_what_cannot_be_is_refused(alice_api: Api, changes: dict[str, Any], code: str) -> None:
    response = alice_api.send("POST", "/api/v1/webhooks", {**NEW, **changes})
    assert (response.status_code, response.json()["code"]) == (400, code)
    assert WebhookEndpoint.objects.count() == 0


def test_is_on_is_true_or_false_and_nothing_like_it(alice_api: Api, alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    response = alice_api.send("PATCH", f"/api/v1/webhooks/{endpoint.pk}", {"is_on": "no"})
    assert (response.status_code, response.json()["code"]) == (400, "invalid_input")
    endpoint.refresh_from_db()
    assert endpoint.is_on


def test_a_full_list_takes_no_more(alice_api: Api, alice_workspace: Workspace) -> None:
    for _number in range(MAX_ENDPOINTS):
        make_endpoint(alice_workspace)
    response = alice_api.send("POST", "/api/v1/webhooks", NEW)
    assert (response.status_code, response.json()["code"]) == (409, "too_many_webhook_endpoints")


def test_deliveries_are_listed_and_read_with_their_tries(alice_api: Api, alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    subject = happened(alice_workspace)
    (claimed,) = claim_due(at_most=1)
    result = PostResult(duration_ms=12, status=200, body=b"ok")
    record_outcome(claimed=claimed, result=result, started_at=datetime.now(UTC))
    (listed,) = alice_api.get(f"/api/v1/webhooks/{endpoint.pk}/deliveries").json()["results"]
    assert (listed["state"], listed["attempts"], listed["status_code"]) == ("delivered", 1, 200)
    assert listed["webhook_id"] == f"msg_{claimed.delivery_id.hex}"
    address = f"/api/v1/webhooks/deliveries/{claimed.delivery_id}"
    whole = alice_api.get(address).json()
    assert whole["data"] == {"id": subject, "workspace_id": str(alice_workspace.pk)}
    assert [(one["number"], one["response_start"]) for one in whole["tries"]] == [(1, "ok")]
    again = alice_api.send("POST", f"{address}/redeliver")
    assert (again.status_code, again.json()["state"]) == (202, "pending")
    assert alice_api.send("POST", f"{address}/redeliver").json()["code"] == "webhook_delivery_open"


def test_tests_over_the_api_are_few(alice_api: Api, alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    address = f"/api/v1/webhooks/{endpoint.pk}/test"
    for _number in range(TESTS_PER_MINUTE):
        assert alice_api.send("POST", address).json()["event_type"] == "ping"
    refused = alice_api.send("POST", address)
    assert (refused.status_code, refused.json()["code"]) == (429, "webhook_test_too_soon")
    assert refused["Retry-After"] == "60"
    assert WebhookDelivery.objects.count() == TESTS_PER_MINUTE


def test_an_endpoint_that_is_off_gets_nothing_again(alice_api: Api, alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    happened(alice_workspace)
    alice_api.send("PATCH", f"/api/v1/webhooks/{endpoint.pk}", {"is_on": False})
    response = alice_api.send("POST", f"/api/v1/webhooks/deliveries/{only_delivery().pk}/redeliver")
    assert (response.status_code, response.json()["code"]) == (409, "webhook_endpoint_off")


def test_a_key_of_a_member_manages_no_webhooks(bob: User, team: Workspace) -> None:
    endpoint, _secret = make_endpoint(team)
    api = api_of(bob, team)
    requests = [
        ("GET", "/api/v1/webhooks", None),
        ("POST", "/api/v1/webhooks", NEW),
        ("GET", f"/api/v1/webhooks/{endpoint.pk}", None),
        ("PATCH", f"/api/v1/webhooks/{endpoint.pk}", {"is_on": False}),
        ("POST", f"/api/v1/webhooks/{endpoint.pk}/rotate", None),
        ("POST", f"/api/v1/webhooks/{endpoint.pk}/test", None),
        ("DELETE", f"/api/v1/webhooks/{endpoint.pk}", None),
    ]
    before = WebhookEndpoint.objects.values().get()
    for method, path, body in requests:
        response = api.send(method, path, body)
        assert (response.status_code, response.json()["code"]) == (403, "admin_role_needed"), (method, path)
    assert WebhookEndpoint.objects.values().get() == before
    Membership.objects.filter(user=bob, workspace=team).update(role=Role.ADMIN)
    assert api.get("/api/v1/webhooks").status_code == 200


def test_what_is_not_there_is_not_found(alice_api: Api) -> None:
    for path in ("/api/v1/webhooks/{}", "/api/v1/webhooks/deliveries/{}", "/api/v1/webhooks/{}/deliveries"):
        assert alice_api.get(path.format(uuid.uuid4())).status_code == 404
