"""Saying single segments again over the API, and what is used again in quotes, jobs and receipts."""

from __future__ import annotations

import uuid

import pytest

from accounts.models import User, Workspace
from billing.models import CreditAccount, Hold
from tests.api.problems import assert_problem
from tests.cast import Api
from tests.factories import finish_job, make_job
from tests.pool.conftest import make_device
from tts.models import Segment, SynthesisJob, Voice
from tts.services.pronunciations import save_pronunciations
from tts.text.pronunciation import Entry

# Of three segments: a first one that comes soon, then as many sentences as fit into one.
TEXT = (
    "The first sentence opens the message for everybody who listens to it today. "
    + "What is there to say about the matter is said here, at some length, as it has to be. " * 3
    + "The last one closes the message and wishes all of them a good day, wherever they are. "
)


@pytest.fixture
def done(alice: User, alice_workspace: Workspace, alices_voice: Voice) -> SynthesisJob:
    """A done job of several segments whose phrases may be used again."""
    make_device()
    job = make_job(alice_workspace, alice, alices_voice, text=TEXT, seed=7)
    finish_job(job)
    Segment.objects.filter(job=job).update(spoken_by="simulated 1")
    assert job.segment_count == 3
    return job


def state_of(workspace: Workspace) -> tuple[int, int, int, int]:
    row = CreditAccount.objects.get(workspace_id=workspace.pk)
    return row.available_micros, row.held_micros, SynthesisJob.objects.count(), Segment.objects.count()


def test_a_revision_is_quoted_made_and_described(
    alice_api: Api, done: SynthesisJob, alice_workspace: Workspace
) -> None:
    body = {"segments": [{"index": 1, "text": "The second one is short now."}, {"index": 2, "seed": 11}]}
    before = state_of(alice_workspace)
    quoted = alice_api.send("POST", f"/api/v1/jobs/{done.pk}/revisions/quote", body)
    assert quoted.status_code == 200
    assert state_of(alice_workspace) == before
    assert quoted.json()["reused_segments"] == 1
    made = alice_api.send("POST", f"/api/v1/jobs/{done.pk}/revisions", body, **{"Idempotency-Key": "one"})
    assert made.status_code == 202
    job = made.json()
    assert made["Location"] == f"/api/v1/jobs/{job['id']}"
    assert (job["revision_of"], job["reused_segments"], job["segment_count"]) == (str(done.pk), 1, 3)
    assert job["held"] == quoted.json()["held"]
    assert Hold.objects.get(job_id=job["id"]).amount_micros == job["held"]["amount_micros"]
    detail = alice_api.get(f"/api/v1/jobs/{job['id']}").json()
    assert [(each["reused"], each["seed"]) for each in detail["segments"]] == [
        (True, 7),
        (False, 7),
        (False, 11),
    ]
    assert detail["receipt"]["reused_segments"] == 1
    assert detail["receipt"]["reused_characters"] == detail["segments"][0]["characters"]
    again = alice_api.send("POST", f"/api/v1/jobs/{done.pk}/revisions", body, **{"Idempotency-Key": "one"})
    assert (again.json()["id"], again["Idempotency-Replayed"]) == (job["id"], "true")
    other = {"segments": [{"index": 0, "seed": 1}]}
    reused = alice_api.send("POST", f"/api/v1/jobs/{done.pk}/revisions", other, **{"Idempotency-Key": "one"})
    assert_problem(reused, 409, "idempotency_key_reused")


def test_a_revision_is_quoted_by_the_pronunciations_of_its_job(
    alice_api: Api, alice: User, alice_workspace: Workspace, alices_voice: Voice
) -> None:
    make_device()
    save_pronunciations(
        workspace=alice_workspace, user=alice, entries=[Entry("SQL", "sequel")], expected_number=0
    )
    job = make_job(alice_workspace, alice, alices_voice, text="We speak SQL here, all of us, every day.")
    finish_job(job)
    save_pronunciations(
        workspace=alice_workspace, user=alice, entries=[Entry("SQL", "other")], expected_number=1
    )
    body = {"segments": [{"index": 0, "text": "They speak SQL too."}]}
    quoted = alice_api.send("POST", f"/api/v1/jobs/{job.pk}/revisions/quote", body).json()
    assert (quoted["spoken"], quoted["pronunciation_version"]) == (["They speak sequel too."], 1)
    made = alice_api.send("POST", f"/api/v1/jobs/{job.pk}/revisions", body).json()
    assert made["pronunciation_version"] == 1


def test_each_segment_at_fault_is_told_with_its_place(
    alice_api: Api, done: SynthesisJob, alice_workspace: Workspace
) -> None:
    before = state_of(alice_workspace)
    body = {"segments": [{"index": 0, "text": "No <strong>end."}, {"index": 9, "seed": 1}]}
    for address in ("revisions", "revisions/quote"):
        refused = alice_api.send("POST", f"/api/v1/jobs/{done.pk}/{address}", body)
        assert_problem(refused, 400, "revision_invalid")
        faults = refused.json()["segments"]
        assert [(fault["index"], fault["code"]) for fault in faults] == [
            (0, "annotation_invalid"),
            (9, "segment_unknown"),
        ]
        assert faults[0]["mistakes"][0]["start"] == 3
    assert state_of(alice_workspace) == before


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"segments": []},
        {"segments": [{}]},
        {"segments": [{"index": -1}]},
        {"segments": [{"index": 0, "seed": -1}]},
        {"segments": [{"index": 0, "text": 7}]},
        {"segments": [{"index": 0, "words": "x"}]},
        {"segments": {"index": 0}},
        {"segments": [{"index": 0}] * 1001},
    ],
)
def test_a_body_of_another_shape_is_refused(
    alice_api: Api, done: SynthesisJob, alice_workspace: Workspace, body: object
) -> None:
    before = state_of(alice_workspace)
    assert_problem(alice_api.send("POST", f"/api/v1/jobs/{done.pk}/revisions", body), 400, "invalid_input")
    assert state_of(alice_workspace) == before


def test_a_job_that_waits_is_not_revised(alice_api: Api, alices_job: SynthesisJob) -> None:
    body = {"segments": [{"index": 0, "seed": 1}]}
    assert_problem(
        alice_api.send("POST", f"/api/v1/jobs/{alices_job.pk}/revisions", body), 409, "job_not_succeeded"
    )


def test_a_stranger_finds_no_job_to_revise(
    charlie_api: Api, done: SynthesisJob, charlie_workspace: Workspace
) -> None:
    before = state_of(charlie_workspace)
    body = {"segments": [{"index": 0, "text": "Mine now."}]}
    for job_id in (done.pk, uuid.uuid4()):
        for address in ("revisions", "revisions/quote"):
            refused = charlie_api.send("POST", f"/api/v1/jobs/{job_id}/{address}", body)
            assert_problem(refused, 404, "job_not_found")
    assert state_of(charlie_workspace) == before


def test_a_seed_says_beforehand_what_costs_nothing(
    alice_api: Api, charlie_api: Api, done: SynthesisJob, alices_voice: Voice
) -> None:
    request = {"voice_id": str(alices_voice.pk), "text": TEXT}
    assert alice_api.send("POST", "/api/v1/quotes", request).json()["reused_segments"] == 0
    with_seed = alice_api.send("POST", "/api/v1/quotes", {**request, "seed": 7}).json()
    assert (
        with_seed["reused_segments"],
        with_seed["held"]["amount_micros"],
        with_seed["estimate"]["amount_micros"],
    ) == (
        3,
        0,
        0,
    )
    assert with_seed["reused_characters"] == with_seed["characters"]
    job = alice_api.send("POST", "/api/v1/jobs", {**request, "seed": 7}).json()
    assert (job["state"], job["charged"]["amount_micros"], job["reused_segments"]) == ("succeeded", 0, 3)
    sound = alice_api.get(job["audio_url"])
    assert (sound.status_code, sound.getvalue()[:4]) == (200, b"RIFF")
    sound.close()
    assert job["id"] in sound["X-AIGC"]
