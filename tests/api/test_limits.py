"""How much a workspace may ask: told in every answer, and forgiven while nobody can count."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from accounts.models import User, Workspace
from tests.api.problems import assert_problem
from tests.cast import Api, api_of
from tests.redis_clients import forget_redis_clients
from tts.models import SynthesisJob, Voice

ACCOUNT = "/api/v1/account"


def remaining(header: str, name: str = "requests") -> int:
    found = re.search(rf'"{name}";r=(\d+);t=(\d+)', header)
    assert found, header
    assert 1 <= int(found[2]) <= 60
    return int(found[1])


def test_every_answer_says_how_many_requests_may_follow(alice_api: Api, settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "REQUESTS_PER_MINUTE": 10}
    first = alice_api.get(ACCOUNT)
    assert first["RateLimit-Policy"] == '"requests";q=10;w=60'
    assert remaining(first["RateLimit"]) == 9
    missing = alice_api.get("/api/v1/jobs/00000000-0000-0000-0000-000000000000")
    assert (missing.status_code, remaining(missing["RateLimit"])) == (404, 8)
    refused = alice_api.send("POST", "/api/v1/jobs", b"{")
    assert (refused.status_code, remaining(refused["RateLimit"])) == (400, 7)


def test_over_the_limit_the_answer_says_when_to_come_back(alice_api: Api, settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "REQUESTS_PER_MINUTE": 2}
    assert [alice_api.get(ACCOUNT).status_code for _ in range(2)] == [200, 200]
    refused = alice_api.get(ACCOUNT)
    assert_problem(refused, 429, "rate_limited")
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert remaining(refused["RateLimit"]) == 0


def test_the_keys_of_one_workspace_share_its_limit_and_other_workspaces_do_not(
    alice: User, alice_api: Api, charlie_api: Api, team: Workspace, settings: LazySettings
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "REQUESTS_PER_MINUTE": 1}
    assert alice_api.get(ACCOUNT).status_code == 200
    assert api_of(alice).get(ACCOUNT).status_code == 429
    assert api_of(alice, team).get(ACCOUNT).status_code == 200
    assert charlie_api.get(ACCOUNT).status_code == 200


def test_a_session_and_a_key_are_the_same_workspace(
    alice: User, alice_api: Api, alice_client: Api, settings: LazySettings
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "REQUESTS_PER_MINUTE": 1}
    assert alice_client.get(ACCOUNT).status_code == 200
    assert alice_api.get(ACCOUNT).status_code == 429


@pytest.fixture
def no_redis(settings: LazySettings) -> Iterator[None]:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and never listened on: every connection is refused
        settings.REDIS_URL = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"
        forget_redis_clients()
        yield
    forget_redis_clients()


def test_without_redis_reads_and_submissions_pass(alice_api: Api, no_redis: None) -> None:
    listed = alice_api.get("/api/v1/jobs")
    assert listed.status_code == 200
    assert "RateLimit" not in listed
    voice = Voice.objects.filter(kind="preset")[0]
    taken = alice_api.send("POST", "/api/v1/jobs", {"voice_id": str(voice.pk), "text": "Hello."})
    assert taken.status_code == 202
    assert SynthesisJob.objects.get().state == "queued"
    assert alice_api.get(f"/api/v1/jobs/{taken.json()['id']}").status_code == 200


def test_without_redis_a_bad_key_is_still_refused(no_redis: None, db: None) -> None:
    assert_problem(Api("vp_live_nonsense").get(ACCOUNT), 401, "invalid_api_key")
