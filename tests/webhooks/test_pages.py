"""The pages of webhooks: made, changed, tested and deleted by owners and administrators, seen by nobody else."""

from __future__ import annotations

import html
import re
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import (
    DeliveryState,
    Membership,
    Role,
    User,
    WebhookDelivery,
    WebhookEndpoint,
    Workspace,
)
from accounts.services.webhook_deliveries import claim_due, record_outcome
from portal.lib.outgoing.posting import PostResult
from tests.cast import client_of
from tests.webhooks.rows import happened, make_endpoint, only_delivery

pytestmark = pytest.mark.django_db
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+")


def text_of(response: Any) -> str:
    return html.unescape(response.content.decode())


def create(client: Client, **changes: Any) -> Any:
    fields = {
        "url": "https://hooks.example/voicepool",
        "description": "Our shop",
        "event_types": ["job.succeeded", "balance.low"],
        "form_id": str(uuid.uuid4()),
        **changes,
    }
    return client.post(reverse("webhooks"), fields)


def secrets_in(response: Any) -> set[str]:
    return {found for found in SECRET.findall(text_of(response)) if len(found) > 40}


def test_an_endpoint_is_made_and_its_secret_shown_once(alice_client: Client, alice: User) -> None:
    response = create(alice_client)
    assert (response.status_code, len(secrets_in(response))) == (200, 1)
    assert "no-store" in response["Cache-Control"]
    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.created_by, endpoint.event_types) == (alice, ["job.succeeded", "balance.low"])
    for address in (reverse("webhooks"), reverse("webhook", args=[endpoint.pk])):
        page = alice_client.get(address)
        assert secrets_in(page) == set()
        assert "https://hooks.example/voicepool" in text_of(page)


def test_sending_the_form_again_makes_no_second_endpoint(alice_client: Client) -> None:
    form_id = str(uuid.uuid4())
    create(alice_client, form_id=form_id)
    again = create(alice_client, form_id=form_id)
    assert (again.status_code, again["Location"]) == (302, reverse("webhooks"))
    assert WebhookEndpoint.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "https://10.0.0.1/"}, "not public"),
        ({"url": "http://example.com/"}, "must begin with https://"),
        ({"url": ""}, "required"),
        ({"event_types": []}, "at least one event"),
        ({"event_types": ["job.unknown"]}, "not one of the available choices"),
        ({"description": "left\u202eright"}, "all of them printable"),
    ],
)
def test_what_cannot_be_is_explained_beside_its_field(
    alice_client: Client, changes: dict[str, Any], said: str
) -> None:
    response = create(alice_client, **changes)
    assert response.status_code == 422
    assert "field__error" in text_of(response)
    assert said in text_of(response)
    assert WebhookEndpoint.objects.count() == 0


def test_an_endpoint_is_changed_switched_and_deleted(
    alice_client: Client, alice_workspace: Workspace
) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    page = reverse("webhook", args=[endpoint.pk])
    changed = alice_client.post(
        page, {"url": "https://new.example/", "description": "", "event_types": ["job.failed"]}
    )
    assert changed["Location"] == page
    endpoint.refresh_from_db()
    assert (endpoint.url, endpoint.event_types) == ("https://new.example/", ["job.failed"])
    wrong = alice_client.post(page, {"url": "https://[::1]/", "event_types": ["job.failed"]})
    assert (wrong.status_code, "not public" in text_of(wrong)) == (422, True)
    for is_on in ("0", "1"):
        alice_client.post(reverse("webhook_switch", args=[endpoint.pk]), {"is_on": is_on})
        endpoint.refresh_from_db()
        assert endpoint.is_on == (is_on == "1")
    answer = alice_client.post(reverse("webhook_delete", args=[endpoint.pk]))
    assert answer["Location"] == reverse("webhooks")
    assert alice_client.get(page).status_code == 404
    assert alice_client.post(reverse("webhook_switch", args=[endpoint.pk])).status_code == 404


def test_a_new_secret_is_shown_once_and_the_form_makes_one(
    alice_client: Client, alice_workspace: Workspace
) -> None:
    endpoint, first = make_endpoint(alice_workspace)
    address, form_id = reverse("webhook_rotate", args=[endpoint.pk]), str(uuid.uuid4())
    assert 'id="rotate"' in text_of(alice_client.get(reverse("webhook", args=[endpoint.pk])))
    (second,) = secrets_in(alice_client.post(address, {"form_id": form_id}))
    assert second != first
    assert alice_client.post(address, {"form_id": form_id}).status_code == 302
    endpoint.refresh_from_db()
    assert endpoint.previous_secret_until is not None


def test_a_delivery_shows_what_was_sent_and_each_try(
    alice_client: Client, alice_workspace: Workspace
) -> None:
    make_endpoint(alice_workspace)
    subject = happened(alice_workspace)
    (claimed,) = claim_due(at_most=1)
    refused = PostResult(duration_ms=1234, status=500, body=b"<b>broken</b>")
    record_outcome(claimed=claimed, result=refused, started_at=datetime.now(UTC))
    delivery = only_delivery()
    address = reverse("webhook_delivery", args=[delivery.pk])
    page = alice_client.get(address).content.decode()
    assert subject in page
    assert f"msg_{delivery.pk.hex}" in page
    assert "&lt;b&gt;broken&lt;/b&gt;" in page
    assert "<code>500</code>" in page
    assert "Send again" not in page  # it is tried again by itself
    WebhookDelivery.objects.update(state=DeliveryState.FAILED)
    assert "Send again" in text_of(alice_client.get(address))
    assert alice_client.post(reverse("webhook_redeliver", args=[delivery.pk]))["Location"] == address
    assert only_delivery().state == DeliveryState.PENDING
    again = alice_client.post(reverse("webhook_redeliver", args=[delivery.pk]))
    assert again.status_code == 409


def test_a_test_is_sent_from_the_page(alice_client: Client, alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    address = reverse("webhook_test", args=[endpoint.pk])
    response = alice_client.post(address)
    assert response["Location"] == reverse("webhook_delivery", args=[only_delivery().pk])
    for _number in range(5):
        response = alice_client.post(address)
    assert response["Location"] == reverse("webhook", args=[endpoint.pk])
    assert WebhookDelivery.objects.count() == 5


def test_an_endpoint_that_is_off_gets_nothing_by_hand(
    alice_client: Client, alice_workspace: Workspace
) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    happened(alice_workspace)
    alice_client.post(reverse("webhook_switch", args=[endpoint.pk]), {"is_on": "0"})
    alice_client.post(reverse("webhook_redeliver", args=[only_delivery().pk]))
    assert only_delivery().state == DeliveryState.FAILED


@pytest.mark.parametrize("role", [Role.MEMBER, Role.BILLING])
def test_other_members_do_not_manage_webhooks(alice: User, bob: User, team: Workspace, role: Role) -> None:
    Membership.objects.filter(user=bob).filter(workspace=team).update(role=role)
    endpoint, _secret = make_endpoint(team)
    before = WebhookEndpoint.objects.values().get()
    client = client_of(bob)
    client.post(reverse("choose_workspace"), {"workspace": str(team.pk)})
    assert reverse("webhooks") not in text_of(client.get(reverse("developers")))
    assert client.get(reverse("webhooks")).status_code == 403
    assert create(client).status_code == 403
    for name in ("webhook_rotate", "webhook_switch", "webhook_test", "webhook_delete"):
        assert client.post(reverse(name, args=[endpoint.pk])).status_code == 403
    assert WebhookEndpoint.objects.values().get() == before
    assert WebhookDelivery.objects.count() == 0
    Membership.objects.filter(user=bob, workspace=team).update(role=Role.ADMIN)
    assert client.get(reverse("webhook", args=[endpoint.pk])).status_code == 200
    assert reverse("webhooks") in text_of(client.get(reverse("developers")))


def test_the_pages_are_there_in_chinese(alice: User, alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    client = client_of(alice)
    client.cookies["django_language"] = "zh-hans"
    for address in (reverse("webhooks"), reverse("webhook", args=[endpoint.pk])):
        page = text_of(client.get(address))
        assert "任务已合成完毕" in page
