"""API keys on the page, the quick start, and the settings of the account."""

from __future__ import annotations

import ast
import html
import json
import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import ApiKey, User, Workspace
from accounts.quick_start import examples
from accounts.services.api_keys import MAX_KEYS_PER_WORKSPACE, create_api_key
from tests.cast import Api

pytestmark = pytest.mark.django_db

KEY = re.compile(r"vp_live_[0-9A-Za-z]{36}")


def create(client: Client, **changes: str) -> Any:
    fields = {"name": "My program", "lifetime_days": "never", "form_id": str(uuid.uuid4()), **changes}
    return client.post(reverse("developers"), fields)


def test_a_new_key_is_shown_once_and_works(alice_client: Client, alice: User) -> None:
    response = create(alice_client)
    page = response.content.decode()
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    shown = set(KEY.findall(page))
    assert len(shown) == 1
    key = shown.pop()
    assert f"VOICEPOOL_API_KEY={key}" in page
    row = ApiKey.objects.get()
    assert (row.created_by, row.name, row.expires_at) == (alice, "My program", None)
    assert Api(key).get("/api/v1/account").status_code == 200

    later = alice_client.get(reverse("developers")).content.decode()
    assert KEY.findall(later) == []
    assert row.prefix in later


def test_sending_the_same_form_again_makes_no_second_key(alice_client: Client) -> None:
    form_id = str(uuid.uuid4())
    create(alice_client, form_id=form_id)
    again = create(alice_client, form_id=form_id)
    assert (again.status_code, again["Location"]) == (302, reverse("developers"))
    assert ApiKey.objects.count() == 1
    assert "cannot be shown again" in alice_client.get(reverse("developers")).content.decode()


@pytest.mark.parametrize(("lifetime_days", "days"), [("30", 30), ("365", 365)])
def test_a_key_ends_when_it_was_told_to(alice_client: Client, lifetime_days: str, days: int) -> None:
    before = timezone.now()
    create(alice_client, lifetime_days=lifetime_days)
    expires_at = ApiKey.objects.get().expires_at
    assert expires_at is not None
    assert before <= expires_at - timedelta(days=days) <= timezone.now()


@pytest.mark.parametrize(
    "changes",
    [{"name": ""}, {"name": "  "}, {"name": "x" * 61}, {"name": "a\x00b"}, {"lifetime_days": "7000"}],
)
def test_a_key_that_cannot_be_made_is_explained_beside_its_field(
    alice_client: Client, changes: dict[str, str]
) -> None:
    response = create(alice_client, **changes)
    page = response.content.decode()
    assert response.status_code == 200
    assert "field__error" in page
    assert ApiKey.objects.count() == 0


def test_an_unprintable_name_is_refused(alice_client: Client) -> None:
    assert create(alice_client, name="left\u202eright").status_code == 400
    assert ApiKey.objects.count() == 0


def test_a_full_list_offers_no_form(alice: User, alice_workspace: Workspace, alice_client: Client) -> None:
    for number in range(MAX_KEYS_PER_WORKSPACE):
        create_api_key(workspace=alice_workspace, user=alice, name=f"Key {number}")
    assert 'name="form_id"' not in alice_client.get(reverse("developers")).content.decode()
    assert create(alice_client).status_code == 409
    assert ApiKey.objects.count() == MAX_KEYS_PER_WORKSPACE


def test_revoking_asks_first_and_then_refuses_the_key(
    alice: User, alice_workspace: Workspace, alice_client: Client
) -> None:
    row, key = create_api_key(workspace=alice_workspace, user=alice, name="Old <one>")
    page = alice_client.get(reverse("developers")).content.decode()
    assert f'<dialog class="dialog" id="revoke-{row.pk}"' in page
    assert "Revoke “Old &lt;one&gt;”?" in page
    address = reverse("key_revoke", args=[row.pk])
    assert alice_client.get(address).status_code == 405
    assert alice_client.post(address)["Location"] == reverse("developers")
    answer = Api(key).get("/api/v1/account")
    assert (answer.status_code, answer.json()["code"]) == (401, "api_key_revoked")
    assert alice_client.post(address).status_code == 404


def test_a_stranger_cannot_revoke(alice: User, alice_workspace: Workspace, charlie_client: Client) -> None:
    row, key = create_api_key(workspace=alice_workspace, user=alice, name="Alice's")
    assert charlie_client.post(reverse("key_revoke", args=[row.pk])).status_code == 404
    row.refresh_from_db()
    assert row.revoked_at is None
    assert Api(key).get("/api/v1/account").status_code == 200


def test_a_strangers_keys_are_not_listed(
    alice: User, alice_workspace: Workspace, charlie_client: Client
) -> None:
    create_api_key(workspace=alice_workspace, user=alice, name="Alice's")
    assert "Alice&#x27;s" not in charlie_client.get(reverse("developers")).content.decode()


def test_an_expired_key_says_so(alice: User, alice_workspace: Workspace, alice_client: Client) -> None:
    row, _key = create_api_key(workspace=alice_workspace, user=alice, name="Old")
    ApiKey.objects.filter(pk=row.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert re.search(
        r'badge--bad">.*?</svg>Expired<', alice_client.get(reverse("developers")).content.decode()
    )


@pytest.mark.parametrize("name", ["developers", "account_settings"])
def test_visitors_are_asked_to_sign_in(client: Client, name: str) -> None:
    response = client.get(reverse(name))
    assert response["Location"] == f"{reverse('account_login')}?next={reverse(name)}"


def test_examples_name_this_installation_and_can_be_read_by_their_languages(
    alice_client: Client, settings: Any
) -> None:
    page = html.unescape(alice_client.get(reverse("developers")).content.decode())
    by_key = {example.key: example for example in examples(base_url=settings.BASE_URL)}
    assert set(by_key) == {"curl", "python", "node"}
    for example in by_key.values():
        assert example.code in page
        assert f"{settings.BASE_URL}/api/v1" in example.code
    ast.parse(by_key["python"].code)
    body = re.search(r"--data '(.*)'", by_key["curl"].code)
    assert body
    assert set(json.loads(body.group(1))) == {"voice_id", "text"}


def test_settings_change_the_name_and_the_language(alice: User, alice_client: Client) -> None:
    address = reverse("account_settings")
    response = alice_client.post(address, {"display_name": "爱丽丝", "locale": "zh-hans"})
    assert response["Location"] == address
    alice.refresh_from_db()
    assert (alice.display_name, alice.locale) == ("爱丽丝", "zh-hans")
    page = alice_client.get(address).content.decode()
    assert '<html lang="zh-hans"' in page
    assert 'value="爱丽丝"' in page


@pytest.mark.parametrize("changes", [{"locale": "tlh"}, {"locale": ""}, {"display_name": "x" * 101}])
def test_settings_that_cannot_be_are_refused(
    alice: User, alice_client: Client, changes: dict[str, str]
) -> None:
    fields = {"display_name": "Alice", "locale": "en", **changes}
    response = alice_client.post(reverse("account_settings"), fields)
    assert response.status_code == 200
    assert "field__error" in response.content.decode()
    alice.refresh_from_db()
    assert (alice.display_name, alice.locale) == ("", "")


def test_settings_change_nothing_else(alice: User, alice_client: Client) -> None:
    fields = {"display_name": "Alice", "locale": "en", "is_staff": "on", "email": "root@example.com"}
    alice_client.post(reverse("account_settings"), fields)
    alice.refresh_from_db()
    assert (alice.display_name, alice.is_staff, alice.email) == ("Alice", False, "alice@example.com")
