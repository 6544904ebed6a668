"""Speech that was found bad is spoken again: at our cost, by another seed, at most twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from accounts.models import User, Workspace
from billing.models import CreditAccount, UsageRecord
from tests.cast import api_of, client_of
from tests.pool.conftest import Submit, make_device
from tests.pool.processes import Pool, wait_for
from tests.pool.test_attempts import WELCOME_MICROS, assert_books_balance
from tests.pool.test_processes import ended
from tts import storage
from tts.audio.wav import read_wav
from tts.engine.process import EngineProcess
from tts.engine.simulated import tone, tone_period
from tts.models import Attempt, SynthesisJob, Voice
from tts.selectors.devices import ready_device_count
from tts.services.attempts import SEED_STEP
from tts.services.claiming import claim_attempt
from tts.services.streams import job_audio
from tts.services.sweep import sweep
from tts.speaking import Speaking
from tts.states import JobState
from tts.text.estimate import estimate_audio_ms

TEXT = "A sentence that goes wrong now and then."
ONE_CHUNK = 60_000


def start(pool: Pool, **engine: object) -> None:
    pool.start_node(engine_settings={"chunk_ms": ONE_CHUNK, **engine})
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")


def check_of(attempt: Attempt) -> dict[str, Any]:
    assert attempt.speech_check is not None
    found: dict[str, Any] = attempt.speech_check
    return found


def tries_of(job: SynthesisJob) -> list[tuple[str, str, int]]:
    tries = Attempt.objects.filter(job=job).order_by("attempt_number")
    return [(each.state, each.error_code, each.charged_micros) for each in tries]


def test_silence_is_spoken_again_by_another_seed_and_only_speech_is_charged(
    pool: Pool, submit: Submit, customer: User, voice: Voice, tmp_path: Path
) -> None:
    start(pool, silent_on_text="goes wrong", once_folder=str(tmp_path))
    job = ended(submit(TEXT))
    assert job.state == JobState.SUCCEEDED
    first, second = Attempt.objects.filter(job=job).order_by("attempt_number")
    assert (first.state, first.error_code, first.charged_micros) == ("failed", "speech_rejected", 0)
    assert (first.seed, second.seed) == (job.seed, (job.seed + SEED_STEP) % 2**31)
    assert check_of(first)["findings"] == ["silent"]
    assert (check_of(first)["score"], check_of(second)["findings"]) == (0, [])
    assert storage.stored_audio_keys(workspace_id=job.workspace_id, job_id=job.pk) == [job.audio_key]
    pcm = read_wav(storage.read(job.audio_key)).pcm
    assert second.seed is not None
    period = tone_period(text=TEXT, voice_key=voice.preset_key, seed=second.seed)
    assert pcm == tone(period=period, samples=len(pcm) // 2)
    assert list(UsageRecord.objects.order_by("pk").values_list("billable", flat=True)) == [False, True]
    assert job.charged_micros == second.charged_micros > 0
    assert_books_balance()
    told = api_of(customer).get(f"/api/v1/jobs/{job.pk}").json()
    assert [each["seed"] for each in told["receipt"]["lines"]] == [first.seed, second.seed]
    assert told["speech_score"] == check_of(second)["score"]
    page = client_of(customer).get(reverse("job", args=[job.pk])).content.decode()
    assert "silent" in page
    assert f"{told['speech_score']} of 100" in page


def test_nothing_but_silence_fails_the_job_and_costs_nothing(
    pool: Pool, submit: Submit, workspace: Workspace
) -> None:
    start(pool, silent_on_text="goes wrong")
    job = ended(submit(TEXT))
    assert (job.state, job.error_code, job.audio_key) == (JobState.FAILED, "engine_failed", "")
    assert tries_of(job) == [("failed", "speech_rejected", 0)] * 3
    assert CreditAccount.objects.get(workspace_id=workspace.pk).available_micros == WELCOME_MICROS
    assert storage.stored_audio_keys(workspace_id=workspace.pk, job_id=job.pk) == []
    assert_books_balance()


def test_speech_that_stays_too_long_is_delivered_with_its_score_after_two_more_tries(
    pool: Pool, submit: Submit
) -> None:
    start(pool, audio_ms_per_character=500)
    job = ended(submit(TEXT))
    assert job.state == JobState.SUCCEEDED
    tries = tries_of(job)
    assert [each[:2] for each in tries] == [
        ("failed", "speech_rejected"),
        ("failed", "speech_rejected"),
        ("succeeded", ""),
    ]
    assert job.charged_micros == tries[2][2] > 0
    last = Attempt.objects.filter(job=job).latest("attempt_number")
    assert check_of(last)["findings"] == ["too_long"]
    assert check_of(last)["score"] < 50
    assert_books_balance()


def test_a_listener_hears_what_was_spoken_first_and_nothing_twice(
    pool: Pool, submit: Submit, tmp_path: Path
) -> None:
    start(pool, silent_on_text="goes wrong", once_folder=str(tmp_path), real_time=True)
    job = submit(TEXT)
    heard = b"".join(job_audio(job))
    assert ended(job).state == JobState.SUCCEEDED
    pcm = read_wav(storage.read(job.audio_key)).pcm
    assert any(pcm)
    # All of the silence, or, had the listener come late, all of the speech: never a bit of both.
    assert heard in (bytes(len(pcm)), pcm)


def test_another_speaker_is_spoken_again_once_and_the_likeness_is_told(
    pool: Pool, submit: Submit, customer: User, tmp_path: Path
) -> None:
    start(pool, other_speaker_on_text="goes wrong", once_folder=str(tmp_path))
    job = ended(submit(TEXT))
    assert [each[:2] for each in tries_of(job)] == [("failed", "speech_rejected"), ("succeeded", "")]
    first, second = Attempt.objects.filter(job=job).order_by("attempt_number")
    assert (check_of(first)["findings"], check_of(first)["similarity"]) == (["other_speaker"], 0.1)
    assert (check_of(second)["findings"], check_of(second)["similarity"]) == ([], 0.8)
    assert job.charged_micros == second.charged_micros > 0
    told = api_of(customer).get(f"/api/v1/jobs/{job.pk}").json()
    assert told["speech_similarity"] == 0.8
    assert [each["speech_check"]["similarity"] for each in told["receipt"]["lines"]] == [0.1, 0.8]
    page = client_of(customer).get(reverse("job", args=[job.pk])).content.decode()
    assert "another speaker" in page
    assert "Likeness of the speaker</dt><dd>0.80" in page
    assert_books_balance()


def test_a_likeness_that_stays_missing_is_tried_for_once_more_alone(pool: Pool, submit: Submit) -> None:
    start(pool, other_speaker_on_text="goes wrong")
    job = ended(submit(TEXT))
    assert job.state == JobState.SUCCEEDED
    assert [each[:2] for each in tries_of(job)] == [("failed", "speech_rejected"), ("succeeded", "")]
    last = Attempt.objects.filter(job=job).latest("attempt_number")
    assert (check_of(last)["findings"], check_of(last)["score"] <= 60) == (["other_speaker"], True)


@pytest.mark.parametrize(
    ("told", "findings"),
    [
        ({}, ["other_speaker"]),
        ({"instruction": "role-robot"}, []),
        ({"instruction_text": "Like a robot."}, []),
    ],
)
def test_a_voice_that_was_told_to_sound_otherwise_may(
    submit: Submit, told: dict[str, str], findings: list[str]
) -> None:
    make_device()
    job = submit(TEXT)
    SynthesisJob.objects.filter(pk=job.pk).update(**told)
    sweep()
    work = claim_attempt(attempt_id=Attempt.objects.get(job=job).pk)
    speaking = Speaking(
        work, EngineProcess(None, "simulated", {}, {}), wanted=lambda: False, on_sent=lambda: None
    )
    # The engine obeys no instruction: what one that does would say is put in.
    speaking._pcm += tone(period=100, samples=24 * estimate_audio_ms(TEXT))
    speaking._similarity = 0.1
    assert list(speaking.check().findings) == findings
