"""What is kept and what goes on when something ends early or breaks."""

from __future__ import annotations

import pytest

from accounts.models import Workspace
from tests.pool.conftest import Submit, make_device
from tests.pool.test_attempts import (
    LONG_TEXT,
    WELCOME_MICROS,
    account,
    assert_books_balance,
    claim_next,
    spoken,
)
from tts import storage
from tts.audio.wav import read_wav
from tts.models import Attempt
from tts.services.attempts import finish_attempt, stop_attempt
from tts.services.sweep import sweep
from tts.states import AttemptState, JobState
from tts.text.pauses import pause_after_ms


def test_what_a_long_job_had_spoken_is_kept_when_its_money_runs_out(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job = submit(LONG_TEXT)
    first = claim_next()
    finish_attempt(work=first, outcome=spoken(first, audio_ms=1000))
    sweep()
    second = claim_next()
    stop_attempt(work=second, outcome=spoken(second, audio_ms=500), error_code="budget_exhausted")
    job.refresh_from_db()
    assert (job.state, job.error_code) == (JobState.FAILED, "budget_exhausted")
    pause_ms = pause_after_ms(first.segment.text)
    assert read_wav(storage.read(job.audio_key)).duration_ms == 1000 + pause_ms + 500
    assert job.charged_micros == 24_000
    assert account(workspace) == (WELCOME_MICROS - 24_000, 0)
    assert_books_balance()


def test_one_broken_step_of_the_sweep_does_not_stop_the_others(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> int:
        raise RuntimeError("a file that cannot be read")

    job = submit()
    make_device()
    monkeypatch.setattr("tts.services.sweep.free_stale_slots", broken)
    assert sweep()["bound"] == 1
    assert Attempt.objects.get(job=job).state == AttemptState.BOUND
