"""Texts are counted by their length before they are looked through: by every way to a price, and to a job."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings
from django.urls import reverse

from accounts.models import User, Workspace
from billing.models import CreditAccount
from tests.api.problems import assert_problem
from tests.api.test_limits import no_redis
from tests.cast import Api, api_of, client_of
from tests.factories import finish_job, make_job
from tests.pool.conftest import make_device
from tts.models import Segment, SynthesisJob, Voice
from tts.text.limits import MAX_JOB_CHARACTERS

__all__ = ["no_redis"]
CODE = "too_many_characters_priced"
QUOTES, JOBS = "/api/v1/quotes", "/api/v1/jobs"
# As many characters as the limit of these tests.
LIMIT = 200
HALF = ("The rain had stopped. " * 10)[: LIMIT // 2]


@pytest.fixture(autouse=True)
def limit(settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "PRICED_CHARACTERS_PER_MINUTE": LIMIT}


@pytest.fixture
def body(alices_voice: Voice) -> dict[str, Any]:
    make_device()
    return {"voice_id": str(alices_voice.pk), "text": HALF}


@pytest.fixture
def done(
    alice: User, alice_workspace: Workspace, alices_voice: Voice, settings: LazySettings
) -> SynthesisJob:
    """A done job, which was priced before the tests' limit."""
    settings.VOICEPOOL = {**settings.VOICEPOOL, "PRICED_CHARACTERS_PER_MINUTE": 10**9}
    make_device()
    job = make_job(alice_workspace, alice, alices_voice, text="It begins. " * 60)
    finish_job(job)
    settings.VOICEPOOL = {**settings.VOICEPOOL, "PRICED_CHARACTERS_PER_MINUTE": LIMIT + job.characters}
    return job


def state_of(workspace: Workspace) -> tuple[Any, ...]:
    account = CreditAccount.objects.get(workspace_id=workspace.pk)
    return (
        account.available_micros,
        account.held_micros,
        SynthesisJob.objects.count(),
        Segment.objects.count(),
    )


def test_so_many_characters_a_minute_and_no_more(
    alice_api: Api, charlie: User, alice_workspace: Workspace, body: dict[str, Any]
) -> None:
    assert [alice_api.send("POST", QUOTES, body).status_code for _ in range(2)] == [200, 200]
    before = state_of(alice_workspace)
    refused = alice_api.send("POST", QUOTES, {**body, "text": "A"})
    assert str(LIMIT) in assert_problem(refused, 429, CODE)["detail"]
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert state_of(alice_workspace) == before
    in_chinese = alice_api.send("POST", QUOTES, body, **{"Accept-Language": "zh-hans"})
    assert "计过价" in assert_problem(in_chinese, 429, CODE)["detail"]
    assert_problem(api_of(charlie).send("POST", QUOTES, body), 404, "voice_not_found")


def test_what_has_no_room_takes_none(alice_api: Api, body: dict[str, Any]) -> None:
    assert alice_api.send("POST", QUOTES, body).status_code == 200
    for _ in range(3):
        assert_problem(alice_api.send("POST", QUOTES, {**body, "text": HALF + "One more."}), 429, CODE)
    assert alice_api.send("POST", QUOTES, body).status_code == 200


def test_the_longest_text_needs_the_whole_minute_and_passes(
    alice_api: Api, body: dict[str, Any], settings: LazySettings
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "PRICED_CHARACTERS_PER_MINUTE": len(HALF) // 2}
    assert alice_api.send("POST", QUOTES, body).status_code == 200
    assert_problem(alice_api.send("POST", QUOTES, {**body, "text": "A"}), 429, CODE)


def test_a_text_that_is_too_long_counts_as_the_longest_that_is_not(
    alice_api: Api, body: dict[str, Any], settings: LazySettings
) -> None:
    settings.VOICEPOOL = {
        **settings.VOICEPOOL,
        "PRICED_CHARACTERS_PER_MINUTE": 2 * MAX_JOB_CHARACTERS + len(HALF),
    }
    for _ in range(2):
        refused = alice_api.send("POST", QUOTES, {**body, "text": "A" * 100_000})
        assert_problem(refused, 400, "text_too_long")
    assert alice_api.send("POST", QUOTES, body).status_code == 200
    assert_problem(alice_api.send("POST", QUOTES, {**body, "text": "A"}), 429, CODE)


def test_a_text_that_is_refused_was_looked_at_and_counts(alice_api: Api, body: dict[str, Any]) -> None:
    for _ in range(2):
        refused = alice_api.send("POST", QUOTES, {**body, "text": "<strong>" + HALF[8:]})
        assert_problem(refused, 400, "annotation_invalid")
    assert_problem(alice_api.send("POST", QUOTES, {**body, "text": "A"}), 429, CODE)


def test_a_repeated_submission_is_looked_up_not_priced(
    alice_api: Api, alice_workspace: Workspace, body: dict[str, Any]
) -> None:
    for _ in range(4):
        assert alice_api.send("POST", JOBS, body, **{"Idempotency-Key": "one"}).status_code == 202
    assert alice_api.send("POST", JOBS, body).status_code == 202
    before = state_of(alice_workspace)
    assert_problem(alice_api.send("POST", JOBS, body), 429, CODE)
    assert alice_api.send("POST", JOBS, body, **{"Idempotency-Key": "one"}).status_code == 202
    assert state_of(alice_workspace) == before


Ask = Callable[[Api, SynthesisJob], Any]
BY_API: dict[str, Ask] = {
    "quote": lambda api, job: api.send("POST", QUOTES, {"voice_id": str(job.voice_id), "text": HALF}),
    "job": lambda api, job: api.send("POST", JOBS, {"voice_id": str(job.voice_id), "text": HALF}),
    "revision quote": lambda api, job: api.send(
        "POST", f"{JOBS}/{job.pk}/revisions/quote", {"segments": [{"index": 0, "text": HALF}]}
    ),
    "revision": lambda api, job: api.send(
        "POST", f"{JOBS}/{job.pk}/revisions", {"segments": [{"index": 0, "seed": 3}]}
    ),
}


@pytest.mark.parametrize("way", BY_API)
def test_every_way_of_the_api_is_counted_and_refused(
    way: str, alice_api: Api, alice_workspace: Workspace, done: SynthesisJob
) -> None:
    used_up = None
    for _ in range(20):
        before = state_of(alice_workspace)
        used_up = BY_API[way](alice_api, done)
        if used_up.status_code == 429:
            break
    assert used_up is not None
    assert_problem(used_up, 429, CODE)
    assert state_of(alice_workspace) == before
    body = {"voice_id": str(done.voice_id), "text": "It begins. " * 60}
    assert_problem(alice_api.send("POST", QUOTES, body), 429, CODE)


def test_pages_say_it_beside_what_was_typed(
    alice: User, alice_workspace: Workspace, done: SynthesisJob
) -> None:
    page, before = client_of(alice), state_of(alice_workspace)
    studio = {
        "text": "It begins. " * 60, "voice": str(done.voice_id), "job_class": "standard", "speed": "1.0",
        "response_format": "wav", "mode": "plain", "token": str(uuid.uuid4()),
    }  # fmt: skip
    edit = {"index": 0, "text": "It begins. " * 60, "token": str(uuid.uuid4())}
    words = b"characters priced in a minute"
    asked = [page.post(reverse("quote_page"), studio) for _ in range(2)]
    assert [words in answer.content for answer in asked] == [False, True]
    for answer in (
        page.post(reverse("studio"), studio),
        page.post(reverse("job_revise", args=[done.pk]), edit),
        page.post(reverse("job_revise", args=[done.pk]), edit, headers={"HX-Request": "true"}),
    ):
        assert words in answer.content
    assert state_of(alice_workspace) == before


@pytest.mark.usefixtures("no_redis")
def test_everybody_passes_while_nobody_can_count(alice_api: Api, body: dict[str, Any]) -> None:
    assert [alice_api.send("POST", QUOTES, body).status_code for _ in range(4)] == [200] * 4
