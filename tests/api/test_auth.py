"""Who gets into the API, and how others are turned away."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from accounts.keys import new_key
from accounts.models import ApiKey, User, Workspace
from accounts.services.api_keys import create_api_key
from tests.api.problems import assert_problem
from tests.cast import Api, api_of

ACCOUNT = "/api/v1/account"


def an_address() -> str:
    """An address of the documentation range that no other test uses: failed keys are counted by address."""
    number = uuid.uuid4().int
    return f"2001:db8:{number >> 16 & 0xFFFF:x}::{number & 0xFFFF:x}"


def test_a_key_gets_in_and_acts_for_its_workspace(alice_api: Api, alice_workspace: Workspace) -> None:
    response = alice_api.get(ACCOUNT)
    assert response.status_code == 200
    assert response.json()["workspace"]["id"] == str(alice_workspace.pk)


def test_a_members_key_for_the_team_acts_for_the_team(bob: User, team: Workspace) -> None:
    assert api_of(bob, team).get(ACCOUNT).json()["workspace"]["id"] == str(team.pk)


def test_the_word_bearer_may_be_written_in_any_case(alice_api: Api) -> None:
    response = Client().get(ACCOUNT, headers={"Authorization": f"bEARER  {alice_api.key} "})
    assert response.status_code == 200


def test_nobody_is_told_how_to_authenticate(db: None) -> None:
    response = Client().get(ACCOUNT)
    assert_problem(response, 401, "not_authenticated")
    assert response["WWW-Authenticate"] == 'Bearer realm="api"'


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Bearer " + "x" * 10_000,
        "Bearer vp_live_é",
        pytest.param(f"Bearer {new_key()}", id="unknown"),
    ],
)
def test_what_is_no_key_of_ours_is_refused(header: str, db: None) -> None:
    response = Api("x", REMOTE_ADDR=an_address()).get(ACCOUNT, headers={"Authorization": header})
    assert_problem(response, 401, "invalid_api_key")
    assert response["WWW-Authenticate"] == 'Bearer realm="api"'


def test_other_kinds_of_credentials_are_no_credentials(alice_api: Api) -> None:
    response = Client().get(ACCOUNT, headers={"Authorization": f"Basic {alice_api.key}"})
    assert_problem(response, 401, "not_authenticated")


def test_a_bad_key_is_not_saved_by_a_good_session(alice_client: Client) -> None:
    response = alice_client.get(
        ACCOUNT, headers={"Authorization": f"Bearer {new_key()}"}, REMOTE_ADDR=an_address()
    )
    assert_problem(response, 401, "invalid_api_key")


def test_a_revoked_an_expired_and_a_suspended_key_each_say_why(
    alice: User, alice_workspace: Workspace
) -> None:
    row, key = create_api_key(workspace=alice_workspace, user=alice, name="x")
    api = Api(key, REMOTE_ADDR=an_address())
    assert api.get(ACCOUNT).status_code == 200
    ApiKey.objects.filter(pk=row.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert_problem(api.get(ACCOUNT), 401, "api_key_expired")
    ApiKey.objects.filter(pk=row.pk).update(expires_at=None, revoked_at=timezone.now())
    assert_problem(api.get(ACCOUNT), 401, "api_key_revoked")
    ApiKey.objects.filter(pk=row.pk).update(revoked_at=None)
    Workspace.objects.filter(pk=alice_workspace.pk).update(suspended_at=timezone.now())
    assert_problem(api.get(ACCOUNT), 403, "workspace_suspended")


def test_a_suspended_workspace_is_closed_to_its_pages_requests_too(
    alice_client: Client, alice_workspace: Workspace
) -> None:
    Workspace.objects.filter(pk=alice_workspace.pk).update(suspended_at=timezone.now())
    assert_problem(alice_client.get(ACCOUNT), 403, "workspace_suspended")


def test_a_signed_in_person_without_a_workspace_is_told_so(db: None) -> None:
    client = Client()
    client.force_login(User.objects.create_user("operator@example.com", is_staff=True))
    assert_problem(client.get(ACCOUNT), 403, "no_workspace")


def test_our_own_pages_need_their_csrf_token(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.get(ACCOUNT).status_code == 200
    refused = client.post("/api/v1/keys", {"name": "x"}, "application/json")
    assert_problem(refused, 403, "csrf_failed")
    assert ApiKey.objects.count() == 0
    token = "a" * 32
    client.cookies["csrftoken"] = token
    made = client.post("/api/v1/keys", {"name": "x"}, "application/json", headers={"X-CSRFToken": token})
    assert made.status_code == 201


def test_a_program_needs_no_csrf_token(alice_api: Api) -> None:
    api = Api(alice_api.key, enforce_csrf_checks=True)
    assert api.send("POST", "/api/v1/keys", {"name": "x"}).status_code == 201


def test_an_inactive_person_is_out(alice: User, alice_client: Client) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert_problem(alice_client.get(ACCOUNT), 401, "not_authenticated")


def test_after_too_many_bad_keys_an_address_has_to_wait_and_others_do_not(
    alice_api: Api, settings: LazySettings
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "FAILED_KEYS_PER_MINUTE": 3}
    here, elsewhere = an_address(), an_address()
    guesser = Api(new_key(), REMOTE_ADDR=here)
    codes = [guesser.get(ACCOUNT).status_code for _ in range(5)]
    assert codes == [401, 401, 401, 429, 429]
    refused = guesser.get(ACCOUNT)
    assert_problem(refused, 429, "too_many_failed_keys")
    assert refused["Retry-After"] == "60"
    assert Api(new_key(), REMOTE_ADDR=elsewhere).get(ACCOUNT).status_code == 401
    # A working key behind the same address is nobody's guess.
    assert Api(alice_api.key, REMOTE_ADDR=here).get(ACCOUNT).status_code == 200


def test_a_request_with_a_key_costs_one_query_of_its_own(
    alice_api: Api, django_assert_num_queries: Any
) -> None:
    alice_api.get(ACCOUNT)  # notes the first use
    # The key with its workspace, its maker and the membership; then the balance and the price. No session.
    with django_assert_num_queries(3):
        assert alice_api.get(ACCOUNT).status_code == 200


def test_a_key_never_reaches_a_log(alice_api: Api, caplog: pytest.LogCaptureFixture) -> None:
    bad = new_key()
    with caplog.at_level(logging.DEBUG):
        alice_api.get(ACCOUNT)
        Api(bad, REMOTE_ADDR=an_address()).get(ACCOUNT)
        alice_api.send("POST", "/api/v1/keys", {"name": "x"})
    logged = "\n".join(str(vars(record)) for record in caplog.records)
    assert alice_api.key not in logged
    assert bad not in logged
    assert "vp_live_" not in logged
