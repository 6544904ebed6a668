"""Stopping early: by a listener who hangs up, by a cancel that Redis forgot, and by a worker that dies at the end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User, Workspace
from tests.cast import api_of
from tests.pool.conftest import Submit, make_device
from tests.pool.processes import Pool, wait_for, web_server
from tests.pool.test_attempts import (
    LONG_TEXT,
    WELCOME_MICROS,
    account,
    assert_books_balance,
    claim_next,
    spoken,
)
from tests.pool.test_processes import assert_right_audio, ended
from tests.web_server import WebServer
from tts import storage
from tts.audio.wav import read_wav
from tts.models import Attempt, SynthesisJob, Voice
from tts.selectors.devices import ready_device_count
from tts.services.attempts import finish_attempt, stop_attempt
from tts.services.jobs import cancel_job
from tts.services.sweep import sweep
from tts.states import JobState

# A chunk of 400 ms of audio, two characters, takes 400 ms.
STEADY = {"real_time": True, "ms_per_character": 200}
SLOW_TEXT = "A slow sentence of many characters that takes its time."
CHUNK_GPU_MS = 400


@pytest.fixture
def server(transactional_db: None) -> Iterator[WebServer]:
    with web_server() as web:
        yield web


def first_chunk_of(job: SynthesisJob) -> None:
    wait_for(
        lambda: Attempt.objects.filter(job=job, first_chunk_at__isnull=False).exists(), what="the first chunk"
    )


def assert_paid_exactly(job: SynthesisJob, workspace: Workspace, voice: Voice) -> None:
    """Whole chunks were spoken, each is paid for and kept, and nothing else is."""
    attempt = Attempt.objects.get(job=job)
    chunks = math.ceil(attempt.gpu_ms / CHUNK_GPU_MS)
    assert 0 < chunks < len(SLOW_TEXT) / 2
    assert attempt.audio_ms == attempt.gpu_ms == chunks * CHUNK_GPU_MS
    assert job.charged_micros == attempt.gpu_ms * 12_000 // 1000
    assert account(workspace) == (WELCOME_MICROS - job.charged_micros, 0)
    assert_right_audio(job, voice)
    assert len(read_wav(storage.read(job.audio_key)).pcm) == attempt.audio_ms * 48
    assert_books_balance()


def test_a_listener_who_hangs_up_cancels_the_job_only_where_that_was_asked_for(
    pool: Pool, server: WebServer, customer: User, workspace: Workspace, submit: Submit, voice: Voice
) -> None:
    pool.start_node(engine_settings=STEADY)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    headers = {"Authorization": f"Bearer {api_of(customer).key}"}

    def hear_the_beginning(job: SynthesisJob, query: str) -> None:
        connection = server.connect()
        connection.request("GET", f"/api/v1/jobs/{job.pk}/stream{query}", headers=headers)
        response: Any = connection.getresponse()
        assert response.status == 200
        heard = 0
        while heard <= 44:
            heard += len(response.read1(65536))
        response.close()
        connection.close()

    ended_by_the_way = submit("Short.")
    hear_the_beginning(ended_by_the_way, "?cancel_on_close=0")
    assert ended(ended_by_the_way).state == JobState.SUCCEEDED
    before = account(workspace)
    job = submit(SLOW_TEXT)
    hear_the_beginning(job, "?cancel_on_close=1")
    assert ended(job).state == JobState.CANCELED
    attempt = Attempt.objects.get(job=job)
    assert attempt.audio_ms == attempt.gpu_ms < len(SLOW_TEXT) * 200
    assert account(workspace) == (before[0] - attempt.gpu_ms * 12, 0)
    # The device is free at once.
    assert ended(submit("Next.")).state == JobState.SUCCEEDED
    assert_books_balance()


def test_a_cancel_frees_the_engine_within_a_chunk_and_charges_exactly_what_was_spoken(
    pool: Pool, submit: Submit, workspace: Workspace, voice: Voice
) -> None:
    pool.start_node(engine_settings=STEADY)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    job = submit(SLOW_TEXT)
    first_chunk_of(job)
    cancel_job(workspace=workspace, job_id=job.pk)
    assert ended(job).state == JobState.CANCELED
    assert_paid_exactly(job, workspace, voice)


def test_a_cancel_that_redis_forgot_is_found_in_the_database(
    pool: Pool, submit: Submit, workspace: Workspace, voice: Voice
) -> None:
    pool.start_node(engine_settings=STEADY)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    job = submit(SLOW_TEXT)
    first_chunk_of(job)
    SynthesisJob.objects.filter(pk=job.pk).update(cancel_requested_at=timezone.now())
    assert ended(job).state == JobState.CANCELED
    assert_paid_exactly(job, workspace, voice)


def test_the_sweep_publishes_what_a_worker_that_died_at_the_end_left_unpublished(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job = submit(LONG_TEXT)
    assert job.segment_count > 2
    work = claim_next()
    finish_attempt(work=work, outcome=spoken(work))
    sweep()
    work = claim_next()
    cancel_job(workspace=workspace, job_id=job.pk)
    stop_attempt(work=work, outcome=spoken(work, gpu_ms=300, audio_ms=500), error_code="canceled")
    job.refresh_from_db()
    length = storage.size_of(job.audio_key)
    charged = job.charged_micros
    # As the worker leaves it that is killed after the commit that ends the job.
    storage.delete(job.audio_key)
    SynthesisJob.objects.filter(pk=job.pk).update(audio_key="", peaks=[])
    assert sweep()["partial_audio_published"] == 0  # it may still be at it
    SynthesisJob.objects.filter(pk=job.pk).update(finished_at=timezone.now() - timedelta(seconds=10))
    assert sweep()["partial_audio_published"] == 1
    job.refresh_from_db()
    assert (job.state, job.charged_micros) == (JobState.CANCELED, charged)
    assert charged > 0
    assert storage.size_of(job.audio_key) == length
    assert len(job.peaks) > 0
    assert sweep()["partial_audio_published"] == 0
    assert_books_balance()


def test_the_sweep_leaves_a_job_whose_audio_is_lost_and_one_whose_beginning_was_never_spoken(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job = submit(LONG_TEXT)
    work = claim_next()
    outcome = spoken(work)
    cancel_job(workspace=workspace, job_id=job.pk)
    stop_attempt(work=work, outcome=outcome, error_code="canceled")
    job.refresh_from_db()
    for key in (job.audio_key, outcome.audio_key):
        storage.delete(key)
    SynthesisJob.objects.filter(pk=job.pk).update(
        audio_key="", finished_at=timezone.now() - timedelta(seconds=10)
    )
    assert sweep()["partial_audio_published"] == 0
    job.refresh_from_db()
    assert (job.state, job.audio_key) == (JobState.CANCELED, "")
