"""Live audio in every format that can be heard from its beginning, with its label, and nothing left when it ends."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Any

import pytest
import soundfile
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse
from mutagen.id3 import ID3
from mutagen.oggopus import OggOpus

from accounts.models import User
from portal.lib.queues import redis_connection
from portal.lib.sse import OPEN_STREAMS
from tests.api.problems import assert_problem
from tests.api.test_media import body_of
from tests.cast import Api, api_of
from tests.factories import finish_job, make_job, make_user, make_voice, personal_workspace, tone
from tests.pool.conftest import make_device
from tests.pool.processes import wait_for, web_server
from tests.web_server import WebServer
from tts import storage
from tts.audio import explicit
from tts.audio.formats import FORMATS
from tts.audio.wav import read_wav, wav_file
from tts.models import Attempt, SynthesisJob
from tts.services import wakeups
from tts.services.attempts import Outcome, begin_job, finish_attempt, note_first_chunk
from tts.services.claiming import claim_attempt
from tts.services.labels import label_of
from tts.services.live_sound import ENCODERS, LIVE_FORMATS

REST = bytes(24_000)  # half a second


@pytest.fixture
def path(alices_job: SynthesisJob) -> str:
    return f"/api/v1/jobs/{alices_job.pk}/stream"


def speech_of(job: SynthesisJob) -> bytes:
    return read_wav(storage.read(SynthesisJob.objects.get(pk=job.pk).audio_key)).pcm


def heard_label(content: bytes, code: str) -> list[str]:
    if code == "mp3":
        return list(ID3(io.BytesIO(content)).getall("TXXX:AIGC")[0].text)
    return list(OggOpus(io.BytesIO(content))["aigc"])


@pytest.mark.parametrize("code", LIVE_FORMATS)
def test_a_live_stream_is_as_long_as_the_file_and_says_its_label(
    code: str, path: str, alice_api: Api, alices_job: SynthesisJob
) -> None:
    finish_job(alices_job, seconds=2.3456)
    response = alice_api.get(f"{path}?format={code}")
    content = body_of(response)
    assert response.status_code == 200
    assert response["Content-Type"] == FORMATS[code].content_type
    assert response["X-AIGC"] == label_of(alices_job.pk)
    speech = speech_of(alices_job)
    if code in ("wav", "pcm"):
        assert content[44 if code == "wav" else 0 :] == speech
    else:
        assert heard_label(content, code) == [label_of(alices_job.pk)]
        samples, rate_hz = soundfile.read(io.BytesIO(content))
        more = len(samples) - len(speech) // 2 * rate_hz // 24_000
        assert 0 <= more <= FORMATS[code].frame_samples
    assert OPEN_STREAMS.count == ENCODERS.count == 0


def test_the_page_can_play_every_live_format(alice_client: Client, alices_job: SynthesisJob) -> None:
    finish_job(alices_job)
    page = reverse("job_stream_page", args=[alices_job.pk])
    for code in LIVE_FORMATS:
        response = alice_client.get(page, {"format": code})
        assert response["Content-Type"] == FORMATS[code].content_type
        assert body_of(response)


@pytest.mark.parametrize("code", ["flac", "aac", "mulaw", "WAV", "../mp3"])
def test_a_format_that_cannot_be_live_is_refused(code: str, path: str, alice_api: Api) -> None:
    assert_problem(alice_api.get(f"{path}?format={code}"), 400, "format_unknown")
    assert OPEN_STREAMS.count == ENCODERS.count == 0


def test_nobody_else_hears_it_in_any_format(path: str, bob_api: Api) -> None:
    for code in LIVE_FORMATS:
        assert_problem(bob_api.get(f"{path}?format={code}"), 404, "job_not_found")
    assert OPEN_STREAMS.count == ENCODERS.count == 0


def test_only_so_many_are_encoded_at_once_and_samples_need_no_place(
    path: str, alice_api: Api, settings: LazySettings
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "LIVE_ENCODERS_PER_PROCESS": 1}
    waiting = alice_api.get(f"{path}?format=mp3")
    assert (waiting.status_code, ENCODERS.count) == (200, 1)
    refused = alice_api.get(f"{path}?format=opus")
    assert_problem(refused, 503, "too_many_streams")
    assert refused["Retry-After"] == "5"
    assert (OPEN_STREAMS.count, ENCODERS.count) == (1, 1)
    alice_api.get(f"{path}?format=wav").close()
    # One that was never read gives its place back as well.
    waiting.close()
    assert OPEN_STREAMS.count == ENCODERS.count == 0
    alice_api.get(f"{path}?format=opus").close()
    assert ENCODERS.count == 0


def test_one_workspace_does_not_take_every_encoder(
    path: str, alice_api: Api, bob: User, bob_api: Api, settings: LazySettings
) -> None:
    his_workspace = personal_workspace(bob)
    his_job = make_job(his_workspace, bob, make_voice(his_workspace, bob))
    share = settings.VOICEPOOL["LIVE_ENCODERS_PER_WORKSPACE"]
    assert share < settings.VOICEPOOL["LIVE_ENCODERS_PER_PROCESS"]
    hers = [alice_api.get(f"{path}?format=mp3") for _ in range(share)]
    assert_problem(alice_api.get(f"{path}?format=mp3"), 503, "too_many_streams")
    assert (OPEN_STREAMS.count, ENCODERS.count) == (share, share)
    his = bob_api.get(f"/api/v1/jobs/{his_job.pk}/stream?format=mp3")
    assert (his.status_code, ENCODERS.count) == (200, share + 1)
    for response in (*hers, his):
        response.close()
    assert OPEN_STREAMS.count == ENCODERS.count == 0


def test_a_stream_without_a_place_among_the_open_ones_takes_none_among_the_encoders(
    path: str, alice_api: Api, settings: LazySettings
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "OPEN_STREAMS_PER_PROCESS": 0}
    assert_problem(alice_api.get(f"{path}?format=mp3"), 503, "too_many_streams")
    assert ENCODERS.count == 0


@pytest.mark.parametrize("position", explicit.POSITIONS)
def test_the_workspaces_label_is_heard_live_as_in_the_file_and_not_on_its_page(
    position: str, path: str, alice_api: Api, alice_client: Client, alices_job: SynthesisJob
) -> None:
    finish_job(alices_job)
    workspace = alices_job.workspace
    type(workspace).objects.filter(pk=workspace.pk).update(explicit_label="tone", label_position=position)
    speech, label = speech_of(alices_job), explicit.tone_label(24_000).tobytes()
    labelled = label + REST + speech if position == "start" else speech + REST + label
    assert body_of(alice_api.get(f"{path}?format=pcm")) == labelled
    assert read_wav(body_of(alice_api.get(path.replace("/stream", "/audio")))).pcm == labelled
    samples, rate_hz = soundfile.read(io.BytesIO(body_of(alice_api.get(f"{path}?format=opus"))))
    assert len(samples) == len(labelled) // 2 * rate_hz // 24_000
    page = reverse("job_stream_page", args=[alices_job.pk])
    assert body_of(alice_client.get(page, {"format": "pcm"})) == speech


def test_the_words_of_the_label_are_heard_where_somebody_has_spoken_them(
    path: str, alice_api: Api, alices_job: SynthesisJob
) -> None:
    finish_job(alices_job)
    workspace = alices_job.workspace
    type(workspace).objects.filter(pk=workspace.pk).update(explicit_label="spoken", label_position="start")
    speech = speech_of(alices_job)
    # Until then the tone stands for them.
    assert (
        body_of(alice_api.get(f"{path}?format=pcm")) == explicit.tone_label(24_000).tobytes() + REST + speech
    )
    words = tone(0.7, frequency_hz=330.0)
    keys = [storage.spoken_label_key(language) for language in ("zh", "en")]
    try:
        for key in keys:
            storage.save(key, wav_file(words, sample_rate_hz=24_000))
        assert body_of(alice_api.get(f"{path}?format=pcm")) == words + REST + speech
    finally:
        for key in keys:
            storage.delete(key)


def test_a_job_that_said_nothing_has_no_label_behind_it(
    path: str, alice_api: Api, alices_job: SynthesisJob
) -> None:
    workspace = alices_job.workspace
    type(workspace).objects.filter(pk=workspace.pk).update(explicit_label="tone", label_position="end")
    response = alice_api.get(f"{path}?format=pcm")
    finish_job(alices_job, state="failed")
    assert body_of(response) == b""


@pytest.fixture
def customer(transactional_db: None) -> User:
    redis_connection().flushdb()
    return make_user("listener")


@pytest.fixture
def server(transactional_db: None) -> Iterator[WebServer]:
    with web_server(LIVE_ENCODERS_PER_PROCESS="2") as web:
        yield web


def children_of(pid: int) -> list[str]:
    """All children, whichever of its threads started them."""
    found: list[str] = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += file.read().split()
        except FileNotFoundError:  # the thread ended
            continue
    return found


def test_sound_is_encoded_while_it_is_made_and_a_listener_who_leaves_frees_everything(
    server: WebServer, customer: User
) -> None:
    make_device()
    workspace = personal_workspace(customer)
    job = make_job(workspace, customer, make_voice(workspace, customer))
    headers = {"Authorization": f"Bearer {api_of(customer).key}"}
    path = f"/api/v1/jobs/{job.pk}/stream"

    def listen(code: str) -> tuple[Any, Any]:
        connection = server.connect()
        connection.request("GET", f"{path}?format={code}", headers=headers)
        response: Any = connection.getresponse()
        assert response.status == 200
        return connection, response

    stays, leaves = listen("mp3"), listen("opus")
    for _, response in (stays, leaves):
        assert response.read1(65_536)  # its beginning is there before anything is said
    assert len(children_of(server.worker_pid)) == 2
    assert server.get(f"{path}?format=mp3", headers).status == 503

    attempt = Attempt.objects.get(job=job)
    work = claim_attempt(attempt_id=attempt.pk)
    begin_job(work=work)
    pcm, audio_key = tone(2.0), wakeups.audio_key(attempt.pk)
    redis_connection().xadd(audio_key, {"pcm": pcm[:48_000], "at": 0})
    note_first_chunk(attempt=work.attempt)
    wakeups.wake_job(job_id=job.pk)
    # Heard although the job still runs: LAME holds back less than a tenth of this second.
    received = b""
    while len(received) < 7_000:
        received += stays[1].read1(65_536)
    assert SynthesisJob.objects.get(pk=job.pk).state == "running"

    for closed in reversed(leaves):
        closed.close()
    wait_for(lambda: len(children_of(server.worker_pid)) == 1, what="the child to end with its listener")

    redis_connection().xadd(audio_key, {"pcm": pcm[48_000:], "at": 48_000})
    key = storage.attempt_audio_key(workspace_id=workspace.pk, job_id=job.pk, attempt_id=attempt.pk)
    storage.save(key, wav_file(pcm, sample_rate_hz=24_000))
    redis_connection().xadd(audio_key, {"end": "1"})
    finish_attempt(
        work=work, outcome=Outcome(gpu_ms=200, audio_ms=2000, audio_key=key, first_chunk_gpu_ms=10, peaks=[1])
    )
    stays[1].read()
    stays[0].close()
    wait_for(lambda: not children_of(server.worker_pid), what="the last child to end with its stream")
    again = wait_for(lambda: listen("mp3"), what="a place that was given back")
    assert again[1].read()
    again[0].close()
