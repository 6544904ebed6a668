"""The cast: alice owns, bob is a member of her team, charlie has nothing to do with them.

Each has a personal workspace with credit; `*_client` is signed in on the pages, `*_api` holds a key.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import User, Workspace
from accounts.services.api_keys import create_api_key
from tests.api.contract import assert_described
from tests.factories import make_job, make_team, make_user, make_voice, personal_workspace
from tts.models import SynthesisJob, Voice


class Api(Client):
    """A program with a key. Every answer is held against openapi.yaml."""

    def __init__(self, key: str, **defaults: Any) -> None:
        super().__init__(headers={"Authorization": f"Bearer {key}"}, **defaults)
        self.key = key

    def generic(self, method: str, path: str, *args: Any, **extra: Any) -> Any:
        response = super().generic(method, path, *args, **extra)
        assert_described(method, path, response)
        return response

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """A request with `body` as JSON; bytes are sent as they are."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self.generic(method, path, data, "application/json", headers=headers)


def api_of(user: User, workspace: Workspace | None = None) -> Api:
    """A program that acts for the user's personal workspace, or for `workspace`."""
    _, key = create_api_key(workspace=workspace or personal_workspace(user), user=user, name="test")
    return Api(key)


def client_of(user: User) -> Client:
    """A browser in which the user is signed in."""
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice")


@pytest.fixture
def bob(db: None) -> User:
    return make_user("bob")


@pytest.fixture
def charlie(db: None) -> User:
    return make_user("charlie")


@pytest.fixture
def alice_workspace(alice: User) -> Workspace:
    return personal_workspace(alice)


@pytest.fixture
def bob_workspace(bob: User) -> Workspace:
    return personal_workspace(bob)


@pytest.fixture
def charlie_workspace(charlie: User) -> Workspace:
    return personal_workspace(charlie)


@pytest.fixture
def team(alice: User, bob: User) -> Workspace:
    """Alice's team workspace, of which bob is a member."""
    return make_team(alice, bob, name="Alice and Bob")


@pytest.fixture
def alice_api(alice: User) -> Api:
    return api_of(alice)


@pytest.fixture
def bob_api(bob: User) -> Api:
    return api_of(bob)


@pytest.fixture
def charlie_api(charlie: User) -> Api:
    return api_of(charlie)


@pytest.fixture
def alice_client(alice: User) -> Client:
    return client_of(alice)


@pytest.fixture
def bob_client(bob: User) -> Client:
    return client_of(bob)


@pytest.fixture
def charlie_client(charlie: User) -> Client:
    return client_of(charlie)


@pytest.fixture
def alices_voice(alice: User, alice_workspace: Workspace) -> Voice:
    return make_voice(alice_workspace, alice, name="Alice's voice", transcript="Alice's own words.")


@pytest.fixture
def alices_job(alice: User, alice_workspace: Workspace, alices_voice: Voice) -> SynthesisJob:
    """A job that waits."""
    return make_job(alice_workspace, alice, alices_voice, text="What only Alice may read.")
