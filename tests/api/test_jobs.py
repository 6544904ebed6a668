"""Jobs over the API: taken in once, listed, followed, heard, canceled, deleted."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.conf import LazySettings

from accounts.models import User, Workspace
from billing.models import Hold, UsageRecord
from tests.api.problems import assert_problem
from tests.billing.books import all_books, balance
from tests.cast import Api
from tests.factories import finish_job, make_voice
from tts import storage
from tts.models import Segment, SynthesisJob, Voice
from tts.states import JobState

JOBS = "/api/v1/jobs"
TEXT = "你好，很高兴认识你。 Nice to meet you."


@pytest.fixture
def preset(alice: User) -> Voice:
    return Voice.objects.filter(kind="preset").order_by("pk")[0]


def rows() -> tuple[int, int, object]:
    """Everything that a refused submission must leave as it was."""
    return SynthesisJob.objects.count(), Segment.objects.count(), all_books()


# -- Submitting ----------------------------------------------------------------------------------------------


def test_a_text_becomes_a_job_with_its_money_held(
    alice_api: Api, alice_workspace: Workspace, preset: Voice
) -> None:
    available, _ = balance(alice_workspace.pk)
    response = alice_api.send(
        "POST", JOBS, {"voice_id": str(preset.pk), "text": TEXT}, **{"X-Request-Id": "shop-4711"}
    )
    assert response.status_code == 202
    body = response.json()
    job = SynthesisJob.objects.get(pk=body["id"])
    assert response["Location"] == f"{JOBS}/{job.pk}"
    assert "Idempotency-Replayed" not in response
    assert (body["state"], body["text"], body["job_class"], body["speed"]) == (
        "queued",
        TEXT,
        "interactive",
        1.0,
    )
    assert body["voice"]["id"] == str(preset.pk)
    assert (body["audio_url"], body["error"], body["started_at"]) == (None, None, None)
    assert body["held"]["amount_micros"] == job.held_micros > 0
    assert body["held"]["currency"] == "CNY"
    assert balance(alice_workspace.pk) == (available - job.held_micros, job.held_micros)
    assert job.workspace == alice_workspace
    assert job.api_key is not None
    assert (job.api_key.name, job.client_address, job.request_id) == ("test", "127.0.0.1", "shop-4711")


def test_every_option_is_taken_over(alice_api: Api, alices_voice: Voice) -> None:
    options = {"language": "en", "job_class": "batch", "mode": "plain", "speed": 1.5, "seed": 2**31 - 1}
    body = alice_api.send(
        "POST", JOBS, {"voice_id": str(alices_voice.pk), "text": "Hello.", **options}
    ).json()
    job = SynthesisJob.objects.get(pk=body["id"])
    assert (job.language, job.job_class, job.mode, job.speed, job.seed) == (
        "en",
        "batch",
        "plain",
        1.5,
        2**31 - 1,
    )
    assert {name: body[name] for name in options} == options


def test_the_same_key_and_body_give_the_same_job_once(
    alice_api: Api, alice_workspace: Workspace, preset: Voice
) -> None:
    body = {"voice_id": str(preset.pk), "text": TEXT}
    first = alice_api.send("POST", JOBS, body, **{"Idempotency-Key": "order-1"})
    before = rows()
    again = alice_api.send("POST", JOBS, body, **{"Idempotency-Key": "order-1"})
    assert (first.status_code, again.status_code) == (202, 202)
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert again.json() == first.json()
    assert rows() == before


def test_the_same_key_with_another_body_is_a_conflict(alice_api: Api, preset: Voice) -> None:
    body = {"voice_id": str(preset.pk), "text": TEXT}
    alice_api.send("POST", JOBS, body, **{"Idempotency-Key": "order-1"})
    before = rows()
    for changed in ({**body, "text": "Another."}, {**body, "seed": 3}, {**body, "speed": 1.1}):
        refused = alice_api.send("POST", JOBS, changed, **{"Idempotency-Key": "order-1"})
        assert_problem(refused, 409, "idempotency_key_reused")
    assert rows() == before


def test_what_is_spelt_out_or_left_at_its_default_is_the_same_request(alice_api: Api, preset: Voice) -> None:
    body = {"voice_id": str(preset.pk), "text": TEXT}
    spelt_out = {
        **body,
        "voice_id": str(preset.pk).upper(),
        "language": "",
        "mode": "plain",
        "speed": 1,
        "seed": None,
    }
    first = alice_api.send("POST", JOBS, body, **{"Idempotency-Key": "k"}).json()
    assert alice_api.send("POST", JOBS, spelt_out, **{"Idempotency-Key": "k"}).json()["id"] == first["id"]


def test_workspaces_do_not_share_their_idempotency_keys(
    alice_api: Api, charlie_api: Api, preset: Voice
) -> None:
    body = {"voice_id": str(preset.pk), "text": TEXT}
    first = alice_api.send("POST", JOBS, body, **{"Idempotency-Key": "k"}).json()
    other = charlie_api.send("POST", JOBS, body, **{"Idempotency-Key": "k"})
    assert other.json()["id"] != first["id"]
    assert "Idempotency-Replayed" not in other


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 201])
def test_an_idempotency_key_is_printable_ascii(key: str, alice_api: Api, preset: Voice) -> None:
    before = rows()
    refused = alice_api.send(
        "POST", JOBS, {"voice_id": str(preset.pk), "text": TEXT}, **{"Idempotency-Key": key}
    )
    assert_problem(refused, 400, "idempotency_key_invalid")
    assert rows() == before


@pytest.mark.parametrize("path", [JOBS, "/api/v1/quotes"])
def test_a_voice_that_is_missing_deleted_or_anothers_is_not_found(
    path: str,
    alice_api: Api,
    alice: User,
    alice_workspace: Workspace,
    charlie: User,
    charlie_workspace: Workspace,
) -> None:
    deleted = make_voice(alice_workspace, alice)
    assert alice_api.send("DELETE", f"/api/v1/voices/{deleted.pk}").status_code == 204
    foreign = make_voice(charlie_workspace, charlie)
    before = rows()
    for voice_id in (uuid.uuid4(), deleted.pk, foreign.pk):
        refused = alice_api.send("POST", path, {"voice_id": str(voice_id), "text": TEXT})
        assert_problem(refused, 404, "voice_not_found")
    assert rows() == before


@pytest.mark.parametrize("path", [JOBS, "/api/v1/quotes"])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "text_empty"),
        ("  \n\t ", "text_empty"),
        ("…!?", "text_unspeakable"),
        ("👍🎉", "text_unspeakable"),
        ("a\x00b", "text_control_characters"),
        ("bell\x07", "text_control_characters"),
        ("字" * 200_000, "text_too_long"),
    ],
)
def test_a_text_that_cannot_be_spoken_is_refused_before_anything_is_held(
    path: str, text: str, code: str, alice_api: Api, preset: Voice
) -> None:
    before = rows()
    assert_problem(
        alice_api.send("POST", path, {"voice_id": str(preset.pk), "text": text}), 400, code, field="text"
    )
    assert rows() == before


def test_without_enough_credit_nothing_is_made(
    alice_api: Api, alice_workspace: Workspace, preset: Voice
) -> None:
    long_text = "字" * 4000
    while (
        response := alice_api.send("POST", JOBS, {"voice_id": str(preset.pk), "text": long_text})
    ).status_code == 202:
        pass
    before = rows()
    assert_problem(response, 402, "insufficient_credit")
    assert_problem(
        alice_api.send("POST", JOBS, {"voice_id": str(preset.pk), "text": long_text}),
        402,
        "insufficient_credit",
    )
    assert rows() == before
    available, held = balance(alice_workspace.pk)
    assert available >= 0
    assert held == sum(Hold.objects.values_list("amount_micros", flat=True))


def test_a_full_queue_says_when_to_come_back(alice_api: Api, preset: Voice, settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "QUEUED_JOBS_PER_WORKSPACE": 1}
    body = {"voice_id": str(preset.pk), "text": TEXT}
    assert alice_api.send("POST", JOBS, body).status_code == 202
    before = rows()
    refused = alice_api.send("POST", JOBS, body)
    assert_problem(refused, 429, "queue_full")
    assert refused["Retry-After"] == "5"
    assert rows() == before


def test_a_workspace_may_have_a_limit_of_its_own(
    alice_api: Api, alice_workspace: Workspace, preset: Voice
) -> None:
    type(alice_workspace).objects.filter(pk=alice_workspace.pk).update(queued_jobs_limit=1)
    body = {"voice_id": str(preset.pk), "text": TEXT}
    assert alice_api.get("/api/v1/account").json()["limits"]["queued_jobs"] == 1
    assert alice_api.send("POST", JOBS, body).status_code == 202
    assert_problem(alice_api.send("POST", JOBS, body), 429, "queue_full")


def test_submissions_have_a_limit_of_their_own(alice_api: Api, preset: Voice, settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "SUBMITS_PER_MINUTE": 2}
    body = {"voice_id": str(preset.pk), "text": TEXT}
    for remaining in (1, 0):
        taken = alice_api.send("POST", JOBS, body)
        assert taken.status_code == 202
        assert f'"submits";r={remaining};t=' in taken["RateLimit"]
        assert '"submits";q=2;w=60' in taken["RateLimit-Policy"]
    before = rows()
    refused = alice_api.send("POST", JOBS, body)
    assert_problem(refused, 429, "rate_limited")
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert rows() == before
    assert alice_api.get(JOBS).status_code == 200


# -- Looking -------------------------------------------------------------------------------------------------


def test_a_waiting_job_tells_its_place_segments_and_receipt(alice_api: Api, alices_job: SynthesisJob) -> None:
    body = alice_api.get(f"{JOBS}/{alices_job.pk}").json()
    assert body["place"] == {"position": 1, "segments_ahead": 0, "starts_in_ms": None}
    assert [(row["index"], row["state"], row["attempts"]) for row in body["segments"]] == [(0, "queued", [])]
    assert body["segments"][0]["text"] == "What only Alice may read."
    assert body["receipt"]["lines"] == []
    assert body["receipt"]["charged"] == {"amount_micros": 0, "amount": "0.000000", "currency": "CNY"}
    assert body["receipt"]["held"]["amount_micros"] == alices_job.held_micros


def test_a_job_that_is_done_shows_what_happened_and_what_it_cost(
    alice_api: Api, alices_job: SynthesisJob
) -> None:
    finish_job(alices_job)
    body = alice_api.get(f"{JOBS}/{alices_job.pk}").json()
    assert (body["state"], body["place"], body["segments_done"]) == ("succeeded", None, 1)
    assert body["audio_url"] == f"{JOBS}/{alices_job.pk}/audio"
    attempt = body["segments"][0]["attempts"][0]
    assert (attempt["attempt_number"], attempt["state"], attempt["device_name"]) == (
        1,
        "succeeded",
        "cpu:0@test",
    )
    line = body["receipt"]["lines"][0]
    assert line["attempt_id"] == attempt["id"]
    assert (line["gpu_ms"], line["charged"]["amount_micros"]) == (100, 50)
    assert body["charged"] == {"amount_micros": 50, "amount": "0.000050", "currency": "CNY"}


def test_a_failed_job_says_why(alice_api: Api, alices_job: SynthesisJob) -> None:
    finish_job(alices_job, state=JobState.FAILED)
    body = alice_api.get(f"{JOBS}/{alices_job.pk}").json()
    assert body["state"] == "failed"
    assert body["error"]["code"] == "engine_failed"
    assert body["error"]["message"]
    assert body["audio_url"] is None


# -- Ending --------------------------------------------------------------------------------------------------


def test_a_waiting_job_is_canceled_and_its_money_comes_back(
    alice_api: Api, alice_workspace: Workspace, alices_job: SynthesisJob
) -> None:
    available, held = balance(alice_workspace.pk)
    response = alice_api.send("POST", f"{JOBS}/{alices_job.pk}/cancel")
    assert response.status_code == 200
    assert response.json()["state"] == "canceled"
    assert balance(alice_workspace.pk) == (available + held, 0)
    assert UsageRecord.objects.count() == 0
    before = rows()
    assert_problem(alice_api.send("POST", f"{JOBS}/{alices_job.pk}/cancel"), 409, "job_already_ended")
    assert rows() == before


def test_a_deleted_job_is_gone_with_its_text_and_audio(
    alice_api: Api, alices_job: SynthesisJob, django_capture_on_commit_callbacks: Any
) -> None:
    finish_job(alices_job)
    key = alices_job.audio_key
    assert storage.exists(key)
    with django_capture_on_commit_callbacks(execute=True):
        response = alice_api.send("DELETE", f"{JOBS}/{alices_job.pk}")
    assert (response.status_code, response.content) == (204, b"")
    assert not storage.exists(key)
    alices_job.refresh_from_db()
    assert alices_job.text == ""
    assert alice_api.get(JOBS).json()["results"] == []
    for method, path in [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/cancel"),
        ("GET", "/audio"),
        ("GET", "/events"),
    ]:
        assert_problem(alice_api.send(method, f"{JOBS}/{alices_job.pk}{path}"), 404, "job_not_found")


# -- Quotes --------------------------------------------------------------------------------------------------


def test_a_quote_says_what_a_job_would_hold_and_stores_nothing(
    alice_api: Api, alice_workspace: Workspace, preset: Voice
) -> None:
    body = {"voice_id": str(preset.pk), "text": TEXT, "job_class": "standard"}
    before = rows()
    quoted = alice_api.send("POST", "/api/v1/quotes", body)
    assert quoted.status_code == 200
    assert rows() == before
    job = alice_api.send("POST", JOBS, body).json()
    figures = quoted.json()
    assert figures["held"] == job["held"]
    assert (figures["characters"], figures["estimate_gpu_ms"]) == (job["characters"], job["estimate_gpu_ms"])
    assert "".join(figures["segments"]).replace(" ", "") == TEXT.replace(" ", "")
    assert figures["estimate"]["amount_micros"] < figures["held"]["amount_micros"]


def test_faster_speech_and_a_less_urgent_class_cost_less(alice_api: Api, preset: Voice) -> None:
    def estimate(**options: object) -> int:
        body = {"voice_id": str(preset.pk), "text": TEXT, **options}
        micros: int = alice_api.send("POST", "/api/v1/quotes", body).json()["estimate"]["amount_micros"]
        return micros

    assert estimate(speed=2.0) < estimate(speed=1.0) < estimate(speed=0.5)
    assert estimate(job_class="batch") < estimate(job_class="standard") < estimate(job_class="interactive")
