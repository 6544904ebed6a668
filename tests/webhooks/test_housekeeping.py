"""Old deliveries go, deleted endpoints go, and who runs the workspace is told that one was switched off."""

from __future__ import annotations

import smtplib
from datetime import timedelta

import pytest
from django.core import mail
from django.db.models.functions import Now

from accounts.models import (
    DeliveryState,
    Membership,
    Role,
    SwitchedOff,
    User,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    Workspace,
)
from accounts.services.webhook_endpoints import delete_endpoint, switch_off_failing
from accounts.services.webhook_housekeeping import (
    delete_old_deliveries,
    look_after_webhooks,
    remove_deleted_endpoints,
    tell_owners,
)
from tests.webhooks.rows import happened, make_endpoint

pytestmark = pytest.mark.django_db


def age(state: DeliveryState, *, days: float) -> WebhookDelivery:
    """Make the one new delivery so old and ended."""
    row = WebhookDelivery.objects.get(state=DeliveryState.PENDING)
    WebhookDelivery.objects.filter(pk=row.pk).update(
        state=state, created_at=Now() - timedelta(days=days), fact=f"old:{row.pk}"
    )
    WebhookAttempt.objects.create(delivery=row, number=1, started_at=row.created_at, duration_ms=1)
    return row


def test_deliveries_are_kept_for_thirty_days(alice_workspace: Workspace) -> None:
    make_endpoint(alice_workspace)
    kept = []
    for state, days in (
        (DeliveryState.DELIVERED, 31),
        (DeliveryState.FAILED, 31),
        (DeliveryState.DELIVERED, 29),
    ):
        happened(alice_workspace)
        kept.append(age(state, days=days))
    happened(alice_workspace)
    WebhookDelivery.objects.filter(state=DeliveryState.PENDING).update(created_at=Now() - timedelta(days=31))
    assert delete_old_deliveries() > 0
    left = set(WebhookDelivery.objects.exclude(state=DeliveryState.PENDING).values_list("pk", flat=True))
    assert left == {kept[2].pk}
    assert WebhookDelivery.objects.filter(state=DeliveryState.PENDING).count() == 1
    assert WebhookAttempt.objects.count() == 1


def test_a_deleted_endpoint_goes_with_its_deliveries_when_nobody_can_point_at_it(
    alice_workspace: Workspace,
) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    other, _secret = make_endpoint(alice_workspace)
    happened(alice_workspace)
    delete_endpoint(workspace=alice_workspace, endpoint_id=endpoint.pk)
    assert remove_deleted_endpoints() == 0
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(deleted_at=Now() - timedelta(hours=2))
    assert remove_deleted_endpoints() == 1
    assert set(WebhookDelivery.objects.values_list("endpoint_id", flat=True)) == {other.pk}


def test_all_goes_with_the_workspace(alice_workspace: Workspace, team: Workspace) -> None:
    make_endpoint(team)
    happened(team)
    team.delete()
    assert WebhookEndpoint.objects.count() == WebhookDelivery.objects.count() == 0


def test_owners_and_administrators_are_told_once_in_their_language(
    alice: User, bob: User, charlie: User, team: Workspace
) -> None:
    User.objects.filter(pk=alice.pk).update(locale="zh-hans")
    Membership.objects.filter(workspace=team, user=bob).update(role=Role.ADMIN)
    Membership.objects.create(workspace=team, user=charlie, role=Role.MEMBER)
    endpoint, _secret = make_endpoint(team, "https://hooks.example/a?b=1&c=2")
    assert switch_off_failing(workspace_id=team.pk, endpoint_id=endpoint.pk, reason=SwitchedOff.FAILING)
    assert not switch_off_failing(workspace_id=team.pk, endpoint_id=endpoint.pk, reason=SwitchedOff.GONE)
    look_after_webhooks()
    look_after_webhooks()
    told = {message.to[0]: message for message in mail.outbox}
    assert set(told) == {"alice@example.com", "bob@example.com"}
    assert len(mail.outbox) == 2
    assert told["bob@example.com"].subject == "A webhook endpoint was switched off"
    assert "https://hooks.example/a?b=1&c=2" in told["bob@example.com"].body
    assert f"/developers/webhooks/{endpoint.pk}/" in told["bob@example.com"].body
    assert told["alice@example.com"].subject == "一个 Webhook 端点已被停用"


def test_a_mail_server_that_is_away_is_tried_again(
    alice_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    switch_off_failing(workspace_id=alice_workspace.pk, endpoint_id=endpoint.pk, reason=SwitchedOff.GONE)

    def away(*_what: object, **_more: object) -> None:
        raise smtplib.SMTPServerDisconnected

    with monkeypatch.context() as patched:
        patched.setattr("accounts.services.webhook_housekeeping.send_mail", away)
        assert tell_owners() == 0
    assert tell_owners() == 1
    assert "410 Gone" in mail.outbox[0].body


def test_a_mail_that_the_server_will_not_carry_keeps_no_other_owner_waiting(
    alice_workspace: Workspace, charlie_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for workspace in (alice_workspace, charlie_workspace):
        endpoint, _secret = make_endpoint(workspace)
        switch_off_failing(workspace_id=workspace.pk, endpoint_id=endpoint.pk, reason=SwitchedOff.GONE)
    tried: list[str] = []

    def send(subject: str, body: str, sender: object, recipients: list[str]) -> None:
        tried.extend(recipients)
        if len(tried) == 1:
            raise smtplib.SMTPDataError(554, b"5.7.1 message refused")

    monkeypatch.setattr("accounts.services.webhook_housekeeping.send_mail", send)
    assert (tell_owners(), tell_owners()) == (2, 0)
    assert tried == ["alice@example.com", "charlie@example.com"]
