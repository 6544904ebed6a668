"""Which workspace a request acts for, and whose rows a selector gives out."""

from __future__ import annotations

import uuid

import pytest
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils import timezone

from accounts.errors import NoWorkspace, WorkspaceSuspended
from accounts.models import ApiKey, Membership, User, Workspace
from accounts.services.api_keys import create_api_key
from accounts.tenancy import (
    WorkspaceMiddleware,
    choose_workspace,
    memberships_of,
    one_of,
    owned_by,
    owned_by_or_shared,
    require_workspace,
    workspace_of,
)
from portal.lib.errors import NotFound
from tests.factories import make_team, make_voice
from tts.models import Voice


def request_of(user: User | AnonymousUser, session: SessionStore | None = None) -> HttpRequest:
    """A page's request as the middleware leaves it."""
    request = RequestFactory().get("/")
    request.user = user
    request.session = session or SessionStore()
    WorkspaceMiddleware(lambda _: HttpResponse())(request)
    return request


def test_pages_that_do_not_ask_for_the_workspace_cost_no_query(
    alice: User, django_assert_num_queries: pytest.FixtureRequest
) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]
        request = request_of(alice)
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert workspace_of(request) is not None
        assert workspace_of(request) is not None


def test_without_a_choice_it_is_the_personal_workspace(
    bob: User, bob_workspace: Workspace, team: Workspace
) -> None:
    assert workspace_of(request_of(bob)) == bob_workspace


def test_a_chosen_workspace_stays_chosen_in_this_session_only(
    bob: User, bob_workspace: Workspace, team: Workspace
) -> None:
    request = request_of(bob)
    assert choose_workspace(request, team.pk) == team
    assert workspace_of(request_of(bob, request.session)) == team  # type: ignore[arg-type]
    assert workspace_of(request_of(bob)) == bob_workspace


def test_a_workspace_of_others_cannot_be_chosen(charlie: User, team: Workspace) -> None:
    request = request_of(charlie)
    for workspace_id in (team.pk, uuid.uuid4()):
        with pytest.raises(NotFound):
            choose_workspace(request, workspace_id)
    assert dict(request.session.items()) == {}


def test_a_choice_ends_with_the_membership(bob: User, bob_workspace: Workspace, team: Workspace) -> None:
    request = request_of(bob)
    choose_workspace(request, team.pk)
    Membership.objects.filter(workspace=team, user=bob).delete()
    assert workspace_of(request_of(bob, request.session)) == bob_workspace  # type: ignore[arg-type]


@pytest.mark.parametrize("stored", ["nonsense", 7, None, pytest.param(str(uuid.uuid4()), id="of-nobody")])
def test_a_spoilt_choice_is_no_choice(bob: User, bob_workspace: Workspace, stored: object) -> None:
    session = SessionStore()
    session["workspace_id"] = stored
    assert workspace_of(request_of(bob, session)) == bob_workspace


def test_strangers_have_no_workspace(db: None) -> None:
    request = request_of(AnonymousUser())
    assert workspace_of(request) is None
    with pytest.raises(NoWorkspace):
        require_workspace(request)


def test_an_account_without_a_workspace_is_told_so(db: None) -> None:
    operator = User.objects.create_user("operator@example.com", is_staff=True)
    with pytest.raises(NoWorkspace):
        require_workspace(request_of(operator))


def test_a_suspended_workspace_is_seen_but_not_worked_in(alice: User, alice_workspace: Workspace) -> None:
    Workspace.objects.filter(pk=alice_workspace.pk).update(suspended_at=timezone.now())
    request = request_of(alice)
    assert workspace_of(request) == alice_workspace
    with pytest.raises(WorkspaceSuspended):
        require_workspace(request)


def test_memberships_are_listed_with_the_personal_workspace_first(
    bob: User, bob_workspace: Workspace, team: Workspace
) -> None:
    other = make_team(bob, name="Aardvarks")
    assert [row.workspace for row in memberships_of(bob)] == [bob_workspace, other, team]


def test_rows_of_one_workspace_do_not_appear_in_another(
    alice: User, alice_workspace: Workspace, charlie: User, charlie_workspace: Workspace
) -> None:
    mine, _ = create_api_key(workspace=alice_workspace, user=alice, name="mine")
    create_api_key(workspace=charlie_workspace, user=charlie, name="theirs")
    assert list(owned_by(ApiKey.objects.all(), alice_workspace)) == [mine]


def test_shared_rows_are_those_of_no_workspace(
    alice: User, alice_workspace: Workspace, charlie: User, charlie_workspace: Workspace
) -> None:
    mine = make_voice(alice_workspace, alice)
    make_voice(charlie_workspace, charlie)
    presets = Voice.objects.filter(workspace__isnull=True).count()
    assert presets > 0
    seen = owned_by_or_shared(Voice.objects.all(), alice_workspace)
    assert seen.count() == presets + 1
    assert mine in seen


def test_a_missing_a_foreign_and_a_malformed_id_are_the_same(
    alice: User, alice_workspace: Workspace, charlie_workspace: Workspace
) -> None:
    row, _ = create_api_key(workspace=alice_workspace, user=alice, name="x")
    assert one_of(owned_by(ApiKey.objects.all(), alice_workspace), str(row.pk)) == row
    for key_id in (row.pk, uuid.uuid4(), "not-a-uuid", "\x00"):
        with pytest.raises(NotFound) as caught:
            one_of(owned_by(ApiKey.objects.all(), charlie_workspace), key_id)
        assert caught.value.code == "not_found"
