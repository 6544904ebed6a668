"""Audio that nobody published: what a worker stored before it was fenced or died goes away."""

from __future__ import annotations

import pytest

from accounts.models import Workspace
from tests.pool.conftest import Submit, make_device
from tests.pool.test_attempts import claim_next, expire_leases, spoken
from tts import storage
from tts.audio.wav import wav_file
from tts.models import SynthesisJob
from tts.services.attempts import Fenced, abandon_attempt, finish_attempt
from tts.services.jobs import delete_job
from tts.services.sweep import sweep


def test_what_a_worker_stored_before_it_died_is_removed_with_its_attempt(submit: Submit) -> None:
    make_device()
    submit()
    work = claim_next()
    outcome = spoken(work)
    assert storage.exists(outcome.audio_key)
    expire_leases()
    sweep()
    assert not storage.exists(outcome.audio_key)


def test_what_a_fenced_worker_stored_is_removed_and_what_was_published_stays(submit: Submit) -> None:
    make_device()
    job = submit()
    late = claim_next()
    expire_leases()
    sweep()
    work = claim_next()
    assert work.attempt.pk != late.attempt.pk
    published, too_late = spoken(work), spoken(late)
    finish_attempt(work=work, outcome=published)
    with pytest.raises(Fenced):
        finish_attempt(work=late, outcome=too_late)
    for attempt in (late.attempt, work.attempt):
        abandon_attempt(attempt=attempt)
    assert not storage.exists(too_late.audio_key)
    assert storage.exists(published.audio_key)
    job.refresh_from_db()
    assert job.audio_key == published.audio_key


def test_a_deleted_job_leaves_no_file_not_even_one_that_no_row_names(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job, other = submit(), submit("Another one.")
    work = claim_next()
    finish_attempt(work=work, outcome=spoken(work))
    kept = storage.job_audio_key(workspace_id=workspace.pk, job_id=other.pk)
    # Whoever put it together died before it was published.
    forgotten = storage.job_audio_key(workspace_id=workspace.pk, job_id=job.pk)
    for key in (forgotten, kept):
        storage.save(key, wav_file(bytes(480), sample_rate_hz=24_000))
    named = SynthesisJob.objects.get(pk=job.pk).audio_key
    assert storage.exists(named)
    delete_job(workspace=workspace, job_id=job.pk)
    assert not storage.exists(forgotten)
    assert not storage.exists(named)
    assert storage.exists(kept)
