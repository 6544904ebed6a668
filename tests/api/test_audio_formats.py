"""A job's audio in every format: ordered with the job, or asked for afterwards, and deleted with it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.api.problems import assert_problem
from tests.api.test_media import body_of
from tests.cast import Api
from tests.factories import finish_job, make_job
from tests.pool.processes import wait_for
from tts import storage
from tts.audio import explicit
from tts.audio.formats import FORMATS
from tts.audio.rendering import RenderFailed
from tts.audio.wav import read_wav, wav_file
from tts.models import Rendition, SynthesisJob
from tts.services import renditions
from tts.services.jobs import delete_job
from tts.services.labels import label_of

MAGIC = {"wav": b"RIFF", "mp3": b"ID3", "opus": b"OggS", "flac": b"fLaC", "mulaw": b"RIFF"}


@pytest.fixture
def path(alices_job: SynthesisJob) -> str:
    finish_job(alices_job)
    return f"/api/v1/jobs/{alices_job.pk}/audio"


@pytest.mark.parametrize("code", FORMATS)
def test_every_format_is_answered_as_what_it_is(
    code: str, path: str, alice_api: Api, alices_job: SynthesisJob
) -> None:
    response = alice_api.get(f"{path}?format={code}&download=1")
    content = body_of(response)
    assert response.status_code == 200
    assert response["Content-Type"] == FORMATS[code].content_type
    assert f".{FORMATS[code].extension}" in response["Content-Disposition"]
    assert response["X-AIGC"] == label_of(alices_job.pk)
    assert content.startswith(MAGIC.get(code, b""))
    if code == "aac":
        assert content[4:8] == b"ftyp"
    if code == "pcm":
        assert content == read_wav(storage.read(alices_job.audio_key)).pcm


def test_a_form_is_made_once_and_says_its_label(path: str, alice_api: Api, alices_job: SynthesisJob) -> None:
    first = alice_api.get(f"{path}?format=flac&sample_rate_hz=16000")
    content = body_of(first)
    made = Rendition.objects.get(job=alices_job)
    assert (made.format, made.sample_rate_hz, made.size_bytes) == ("flac", 16_000, len(content))
    assert made.sha256 == hashlib.sha256(content).hexdigest()
    assert json.loads(made.implicit_label)["ProduceID"] == str(alices_job.pk)
    again = alice_api.get(f"{path}?format=flac&sample_rate_hz=16000")
    assert body_of(again) == content
    assert again["ETag"] == first["ETag"]
    assert Rendition.objects.get(job=alices_job).pk == made.pk
    part = alice_api.get(f"{path}?format=flac&sample_rate_hz=16000", headers={"Range": "bytes=0-3"})
    assert (part.status_code, body_of(part)) == (206, b"fLaC")


def test_a_form_whose_file_is_gone_is_made_again(path: str, alice_api: Api, alices_job: SynthesisJob) -> None:
    content = body_of(alice_api.get(f"{path}?format=flac"))
    storage.delete(Rendition.objects.get(job=alices_job).audio_key)
    assert body_of(alice_api.get(f"{path}?format=flac")) == content


def test_what_was_ordered_with_the_job_is_its_answer(
    alice_api: Api, alices_voice: Any, alices_job: SynthesisJob
) -> None:
    order = {"response_format": "mp3", "sample_rate_hz": 44_100, "loudness_lufs": -18.5}
    answer = alice_api.send(
        "POST", "/api/v1/jobs", {"voice_id": str(alices_voice.pk), "text": "Hello.", **order}
    )
    assert answer.status_code == 202
    assert {name: answer.json()[name] for name in order} == order
    job = SynthesisJob.objects.get(pk=answer.json()["id"])
    finish_job(job)
    response = alice_api.get(f"/api/v1/jobs/{job.pk}/audio")
    assert response["Content-Type"] == "audio/mpeg"
    body_of(response)
    made = Rendition.objects.get(job=job)
    assert (made.format, made.sample_rate_hz, made.loudness_lufs) == ("mp3", 44_100, -18.5)
    # Another format has its own usual rate, and the same loudness.
    body_of(alice_api.get(f"/api/v1/jobs/{job.pk}/audio?format=mulaw"))
    other = Rendition.objects.get(job=job, format="mulaw")
    assert (other.sample_rate_hz, other.loudness_lufs) == (8_000, -18.5)


def test_a_job_without_a_wish_has_the_workspaces_loudness(alices_job: SynthesisJob, alice: Any) -> None:
    workspace = alices_job.workspace
    type(workspace).objects.filter(pk=workspace.pk).update(loudness_lufs=-23.0)
    workspace.refresh_from_db()
    job = make_job(workspace, alice, alices_job.voice)
    assert (job.response_format, job.sample_rate_hz, job.loudness_lufs) == ("wav", None, -23.0)
    louder = make_job(workspace, alice, alices_job.voice, loudness_lufs=-14.0)
    assert louder.loudness_lufs == -14.0


@pytest.mark.parametrize(
    ("order", "status", "code", "field"),
    [
        ({"response_format": "ogg"}, 400, "invalid_input", "response_format"),
        (
            {"response_format": "opus", "sample_rate_hz": 44_100},
            422,
            "sample_rate_not_supported",
            "sample_rate_hz",
        ),
        ({"sample_rate_hz": 24_001}, 422, "sample_rate_not_supported", "sample_rate_hz"),
        ({"sample_rate_hz": "24000"}, 400, "invalid_input", "sample_rate_hz"),
        ({"loudness_lufs": -5}, 400, "invalid_input", "loudness_lufs"),
        ({"loudness_lufs": -70}, 400, "invalid_input", "loudness_lufs"),
        ({"format": "mp3"}, 400, "invalid_input", "format"),
    ],
)
def test_an_order_that_cannot_be_kept_is_refused_and_nothing_is_stored(
    order: dict[str, Any], status: int, code: str, field: str, alice_api: Api, alices_voice: Any
) -> None:
    body = {"voice_id": str(alices_voice.pk), "text": "Hello.", **order}
    problem = alice_api.send("POST", "/api/v1/jobs", body)
    assert_problem(problem, status, code)
    assert field in json.dumps(problem.json())
    assert not SynthesisJob.objects.exists()


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("format=ogg", 400, "format_unknown"),
        ("format=opus&sample_rate_hz=44100", 422, "sample_rate_not_supported"),
        ("sample_rate_hz=loud", 422, "sample_rate_not_supported"),
        ("sample_rate_hz=-1", 422, "sample_rate_not_supported"),
    ],
)
def test_a_form_that_there_is_not_is_refused(
    query: str, status: int, code: str, path: str, alice_api: Api
) -> None:
    assert_problem(alice_api.get(f"{path}?{query}"), status, code)
    assert not Rendition.objects.exists()


def test_another_workspaces_job_is_made_in_no_format(path: str, charlie_api: Api) -> None:
    assert_problem(charlie_api.get(f"{path}?format=mp3"), 404, "job_not_found")
    assert not Rendition.objects.exists()


def test_every_form_goes_with_the_job(path: str, alice_api: Api, alices_job: SynthesisJob) -> None:
    for code in ("flac", "pcm"):
        body_of(alice_api.get(f"{path}?format={code}"))
    keys = list(Rendition.objects.values_list("audio_key", flat=True))
    assert len(keys) == 2
    assert all(storage.exists(key) for key in keys)
    from tts.services.jobs import delete_job_files

    delete_job(workspace=alices_job.workspace, job_id=alices_job.pk)
    delete_job_files(job_id=alices_job.pk)  # what the commit does
    assert not any(storage.exists(key) for key in keys)
    assert not Rendition.objects.exists()


def test_a_form_that_was_being_made_while_its_job_was_deleted_is_not_kept(
    path: str, alices_job: SynthesisJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    save_file = storage.save_file

    def delete_meanwhile(key: str, source: str) -> None:
        save_file(key, source)
        made.append(key)
        delete_job(workspace=alices_job.workspace, job_id=alices_job.pk)

    monkeypatch.setattr(storage, "save_file", delete_meanwhile)
    job = SynthesisJob.objects.get(pk=alices_job.pk)
    with pytest.raises(renditions.AudioNotReady):
        renditions.audio_file(job, renditions.Form(format="flac"))
    assert [storage.exists(key) for key in made] == [False]
    assert not Rendition.objects.exists()


def test_only_so_many_forms_of_a_job_are_kept(
    path: str, alice_api: Api, alices_job: SynthesisJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renditions, "KEPT_PER_JOB", 2)
    for rate in (8_000, 16_000, 48_000):
        body_of(alice_api.get(f"{path}?format=pcm&sample_rate_hz={rate}"))
    kept = Rendition.objects.filter(job=alices_job).order_by("pk")
    assert [each.sample_rate_hz for each in kept] == [16_000, 48_000]
    folder = f"workspaces/{alices_job.workspace_id}/jobs/{alices_job.pk}/renditions"
    assert sorted(storage.stored_audio_keys(workspace_id=alices_job.workspace_id, job_id=alices_job.pk))[
        -2:
    ] == sorted(each.audio_key for each in kept)
    assert all(each.audio_key.startswith(folder) for each in kept)


def test_a_file_that_cannot_be_made_is_an_error_and_leaves_nothing(
    path: str, alice_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(spec: Any) -> Any:
        Path(spec.target).write_bytes(b"half")
        raise RenderFailed("LabelMissing")

    with monkeypatch.context() as broken:
        broken.setattr(renditions, "render_file", fail)
        assert_problem(alice_api.get(f"{path}?format=mp3"), 500, "audio_not_made")
    assert not Rendition.objects.exists()
    # Its place and its claim are free again.
    assert body_of(alice_api.get(f"{path}?format=mp3"))


def test_more_at_once_than_there_are_places_is_asked_again(
    path: str, alice_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renditions, "WAIT_FOR_PLACE_S", 0.01)
    taken = 0
    while renditions._places.acquire(blocking=False):
        taken += 1
    try:
        problem = alice_api.get(f"{path}?format=mp3")
        assert_problem(problem, 503, "audio_being_made")
        assert problem["Retry-After"] == "5"
    finally:
        renditions._places.release(taken)
    assert taken == 2
    assert body_of(alice_api.get(f"{path}?format=mp3"))


def test_what_another_process_is_making_is_not_made_twice(
    path: str, alice_api: Api, alices_job: SynthesisJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renditions, "WAIT_FOR_ANOTHER_S", 0.3)
    form = renditions.form_of(alices_job, format_code="mp3")
    variant = renditions._variant(SynthesisJob.objects.get(pk=alices_job.pk), form)
    assert renditions._claim(alices_job.pk, variant)
    assert_problem(alice_api.get(f"{path}?format=mp3"), 503, "audio_being_made")
    renditions._give_up_claim(alices_job.pk, variant)
    assert body_of(alice_api.get(f"{path}?format=mp3"))


@pytest.mark.django_db(transaction=True)
def test_long_speech_is_made_aside_and_asked_for_again(
    path: str, alice_api: Api, alices_job: SynthesisJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renditions, "WAITED_FOR_MS", 0)
    assert_problem(alice_api.get(f"{path}?format=flac"), 503, "audio_being_made")
    wait_for(lambda: Rendition.objects.exists(), timeout_s=60, what="the file to be made")
    assert body_of(alice_api.get(f"{path}?format=flac"))


def test_a_master_of_an_earlier_version_is_labelled_before_it_is_delivered(
    path: str, alice_api: Api, alices_job: SynthesisJob
) -> None:
    pcm = read_wav(storage.read(alices_job.audio_key)).pcm
    old = storage.job_audio_key(workspace_id=alices_job.workspace_id, job_id=alices_job.pk)
    storage.save(old, wav_file(pcm, sample_rate_hz=24_000))
    SynthesisJob.objects.filter(pk=alices_job.pk).update(audio_key=old)
    content = body_of(alice_api.get(path))
    assert read_wav(content).pcm == pcm
    assert label_of(alices_job.pk).encode() in content


def test_the_workspaces_rule_is_heard_in_what_leaves_it_and_not_on_its_page(
    path: str, alice_api: Api, alice_client: Client, alices_job: SynthesisJob
) -> None:
    workspace = alices_job.workspace
    type(workspace).objects.filter(pk=workspace.pk).update(explicit_label="tone", label_position="end")
    master = read_wav(storage.read(alices_job.audio_key)).pcm
    labelled = master + bytes(24_000) + explicit.tone_label(24_000).tobytes()
    assert read_wav(body_of(alice_api.get(path))).pcm == labelled
    page = reverse("job_audio_page", args=[alices_job.pk])
    assert read_wav(body_of(alice_client.get(page))).pcm == master
    assert read_wav(body_of(alice_client.get(f"{page}?download=1"))).pcm == labelled


def test_the_operators_rule_holds_where_a_workspace_has_none(
    path: str, alice_api: Api, alices_job: SynthesisJob, settings: Any
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "EXPLICIT_LABEL": "tone"}
    tone = explicit.tone_label(24_000).tobytes()
    assert read_wav(body_of(alice_api.get(path))).pcm.startswith(tone)
    workspace = alices_job.workspace
    type(workspace).objects.filter(pk=workspace.pk).update(explicit_label="none")
    assert not read_wav(body_of(alice_api.get(path))).pcm.startswith(tone)


def test_the_job_page_offers_every_format_and_says_that_ai_spoke(
    path: str, alice_client: Client, alices_job: SynthesisJob
) -> None:
    page = alice_client.get(reverse("job", args=[alices_job.pk])).content.decode()
    address = reverse("job_audio_page", args=[alices_job.pk])
    for code in FORMATS:
        assert f"{address}?download=1&amp;format={code}" in page
    assert "generated by AI" in page
    assert "WAV, 24 kHz" in page


def test_the_studio_orders_a_format(alice_client: Client, alices_voice: Any) -> None:
    form = {"text": "Hello.", "voice": str(alices_voice.pk), "response_format": "opus"}
    token = "0b7b5a0e-0000-4000-8000-000000000002"
    alice_client.post(reverse("studio"), {**form, "token": token})
    job = SynthesisJob.objects.get()
    assert job.response_format == "opus"
    page = alice_client.get(reverse("job", args=[job.pk])).content.decode()
    assert "Opus, 24 kHz" in page
    assert "response_format&quot;: &quot;opus" in page
