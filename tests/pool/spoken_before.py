"""Speech played by the test as the worker, that may be used again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from billing.reconciliation.checks import CHECKS, run_all
from tests.pool.conftest import Submit
from tests.pool.test_attempts import claim_next
from tts import storage
from tts.audio.speech_check import SpeechCheck
from tts.audio.wav import wav_file
from tts.models import Attempt, SynthesisJob
from tts.selectors.reconciliation import CHECKS as POOL_CHECKS
from tts.services.attempts import Outcome, Work, finish_attempt
from tts.services.sweep import sweep

GREETING = "Hello, and thank you for calling us. "
REST = "Your number in the queue is seven, and it will take about two minutes until somebody answers. "
GOOD = SpeechCheck(score=100, findings=(), duration_ratio=1.0, longest_silence_ms=0, clipped_share=0.0)
LONG = "A first sentence that is spoken in the opening of every call we take here. " * 8


def samples_of(text: str, *, audio_ms: int = 1000) -> bytes:
    """PCM that tells the text."""
    return bytes([len(text) % 100, 1]) * (24 * audio_ms)


def outcome_of(work: Work, **changes: Any) -> Outcome:
    """Speech that is as good as can be, stored under the attempt's key."""
    key = storage.attempt_audio_key(
        workspace_id=work.job.workspace_id, job_id=work.job.pk, attempt_id=work.attempt.pk
    )
    storage.save(key, wav_file(samples_of(work.segment.text), sample_rate_hz=24_000))
    outcome = Outcome(
        gpu_ms=1000,
        audio_ms=1000,
        audio_key=key,
        first_chunk_gpu_ms=10,
        peaks=[1, 2],
        seed=work.job.seed if work.segment.seed is None else work.segment.seed,
        engine="simulated",
        engine_version="1",
        check=GOOD,
    )
    return replace(outcome, **changes)


def differing() -> list[str]:
    """What the checks of the books find."""
    return [
        outcome.check.name for outcome in run_all((*CHECKS, *POOL_CHECKS), day=None) if outcome.differences
    ]


def speak_all(**changes: Any) -> None:
    """Play the worker until nothing is bound any more."""
    while Attempt.objects.filter(state="bound").exists():
        work = claim_next()
        finish_attempt(work=work, outcome=outcome_of(work, **changes))
        sweep()


@pytest.fixture
def say(submit: Submit) -> Callable[..., SynthesisJob]:
    """Submit and have spoken whatever is to be spoken."""

    def submit_and_speak(text: str = GREETING, **options: Any) -> SynthesisJob:
        options.setdefault("seed", 7)
        job = submit(text, **options)
        speak_all()
        job.refresh_from_db()
        return job

    return submit_and_speak


Say = Callable[..., SynthesisJob]
