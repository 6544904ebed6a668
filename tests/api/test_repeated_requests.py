"""A request that is sent again under its Idempotency-Key gets its first answer, whatever has gone since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from accounts.models import User, Workspace
from billing.models import CreditAccount, Hold
from tests.api.contract import openapi
from tests.api.problems import assert_problem
from tests.cast import Api
from tests.factories import finish_job, make_job, make_voice
from tests.pool.conftest import make_device
from tts.models import Segment, SynthesisJob, Voice
from tts.services.jobs import delete_job
from tts.services.voices import delete_voice

KEY = {"Idempotency-Key": "order-1"}


@dataclass
class Keyed:
    """A request that makes a job, another one that does not, and how what it was made from goes away."""

    path: str
    body: dict[str, Any]
    other: dict[str, Any]
    lose: Callable[[], None]


def new_job(user: User, workspace: Workspace, voice: Voice) -> Keyed:
    body = {"voice_id": str(voice.pk), "text": "Speak this."}
    return Keyed(
        "/api/v1/jobs",
        body,
        {**body, "text": "Speak that."},
        lambda: delete_voice(workspace=workspace, user=user, voice_id=voice.pk),
    )


def new_revision(user: User, workspace: Workspace, voice: Voice) -> Keyed:
    source = make_job(workspace, user, voice, text="This was spoken.")
    finish_job(source)
    return Keyed(
        f"/api/v1/jobs/{source.pk}/revisions",
        {"segments": [{"index": 0, "text": "This is spoken now."}]},
        {"segments": [{"index": 0, "text": "And this."}]},
        lambda: delete_job(workspace=workspace, job_id=source.pk),
    )


KEYED = {"jobs_create": new_job, "jobs_revise": new_revision}


@pytest.fixture(params=KEYED)
def keyed(request: Any, alice: User, alice_workspace: Workspace) -> Keyed:
    make_device()
    voice = make_voice(alice_workspace, alice, name="The one that speaks")
    return KEYED[request.param](alice, alice_workspace, voice)


def state_of(workspace: Workspace) -> tuple[Any, ...]:
    account = CreditAccount.objects.get(workspace_id=workspace.pk)
    return (
        account.available_micros,
        account.held_micros,
        SynthesisJob.objects.count(),
        Segment.objects.count(),
        Hold.objects.count(),
    )


def test_every_request_with_a_key_is_tried_here() -> None:
    described = {
        operation["operationId"]
        for operations in openapi()["paths"].values()
        for operation in operations.values()
        if any(parameter.get("name") == "Idempotency-Key" for parameter in operation.get("parameters", []))
    }
    assert described == KEYED.keys()


def test_what_it_was_made_from_may_be_gone(keyed: Keyed, alice_api: Api, alice_workspace: Workspace) -> None:
    first = alice_api.send("POST", keyed.path, keyed.body, **KEY)
    assert first.status_code == 202
    keyed.lose()
    before = state_of(alice_workspace)
    again = alice_api.send("POST", keyed.path, keyed.body, **KEY)
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
    assert (again["Location"], again["Idempotency-Replayed"]) == (first["Location"], "true")
    refused = alice_api.send("POST", keyed.path, keyed.other, **KEY)
    assert_problem(refused, 409, "idempotency_key_reused")
    # Under another key it is another request, which has nothing to be made from.
    for headers in ({}, {"Idempotency-Key": "order-2"}):
        gone = alice_api.send("POST", keyed.path, keyed.body, **headers)
        assert (gone.status_code, gone.json()["code"].endswith("_not_found")) == (404, True)
    assert state_of(alice_workspace) == before


def test_the_job_that_it_made_may_be_gone_too(
    keyed: Keyed, alice_api: Api, alice_workspace: Workspace
) -> None:
    first = alice_api.send("POST", keyed.path, keyed.body, **KEY).json()
    delete_job(workspace=alice_workspace, job_id=first["id"])
    keyed.lose()
    before = state_of(alice_workspace)
    again = alice_api.send("POST", keyed.path, keyed.body, **KEY)
    assert (again.status_code, again.json()["id"]) == (202, first["id"])
    assert state_of(alice_workspace) == before


def test_a_strangers_key_answers_for_nobody_else(
    keyed: Keyed, alice_api: Api, charlie_api: Api, charlie_workspace: Workspace
) -> None:
    assert alice_api.send("POST", keyed.path, keyed.body, **KEY).status_code == 202
    before = state_of(charlie_workspace)
    assert charlie_api.send("POST", keyed.path, keyed.body, **KEY).status_code == 404
    assert state_of(charlie_workspace) == before
