"""What is left of a job when its audio is lost, or when it is deleted while it is spoken."""

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
    expire_leases,
    spoken,
)
from tts import storage
from tts.models import Segment
from tts.services.attempts import Outcome, finish_attempt, stop_attempt
from tts.services.jobs import delete_job
from tts.services.sweep import sweep
from tts.states import JobState


def test_a_job_whose_audio_is_lost_ends_at_our_cost_and_holds_up_nobody_else(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job, waiting = submit(LONG_TEXT), submit()
    for _ in range(job.segment_count):
        work = claim_next()
        outcome = spoken(work)
        if work.segment.index == 0:
            first_key = outcome.audio_key
        else:
            storage.delete(first_key)
        finish_attempt(work=work, outcome=outcome)
        sweep()
    job.refresh_from_db()
    assert (job.state, job.error_code, job.charged_micros) == (JobState.FAILED, "audio_lost", 0)
    assert account(workspace) == (WELCOME_MICROS - waiting.held_micros, waiting.held_micros)
    assert claim_next().job.pk == waiting.pk
    assert_books_balance()


@pytest.mark.parametrize("ending", ["canceled before any audio", "worker lost"])
def test_a_job_deleted_while_it_is_spoken_keeps_no_text_however_its_attempt_ends(
    submit: Submit, workspace: Workspace, ending: str
) -> None:
    make_device()
    job = submit()
    work = claim_next()
    delete_job(workspace=workspace, job_id=job.pk)
    if ending == "worker lost":
        expire_leases()
        sweep()
    else:
        stop_attempt(work=work, outcome=Outcome(gpu_ms=0, audio_ms=0), error_code="canceled")
    job.refresh_from_db()
    assert (job.state, job.text) == (JobState.CANCELED, "")
    assert Segment.objects.get(job=job).text == ""
    assert account(workspace) == (WELCOME_MICROS, 0)
    assert_books_balance()
