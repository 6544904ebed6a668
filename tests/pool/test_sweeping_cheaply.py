"""The sweep comes every second: it finds all that is due by indexes, and takes nothing that is somebody's again."""

from __future__ import annotations

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from accounts.models import Workspace
from billing.models import Hold, HoldState
from tests.console.rows import job as make_job_row
from tests.large_tables import COPIES, copy_row, rows_read
from tests.pool.conftest import Submit, make_device
from tests.pool.processes import wait_for
from tests.pool.test_attempts import WELCOME_MICROS, account, assert_books_balance, claim_next, spoken
from tts import storage
from tts.audio.wav import wav_file
from tts.models import Attempt, DeviceSlot, SynthesisJob
from tts.services import sweep as sweeping
from tts.services.attempts import finish_attempt
from tts.services.jobs import delete_job
from tts.services.sweep import sweep, sweep_thoroughly
from tts.states import JobState, SegmentState


def deleted_with_audio(submit: Submit, workspace: Workspace, *, hours_ago: float) -> tuple[SynthesisJob, str]:
    """A job that was deleted so long ago, and audio that a worker stored after it."""
    job = submit()
    work = claim_next()
    outcome = spoken(work)
    finish_attempt(work=work, outcome=outcome)
    delete_job(workspace=workspace, job_id=job.pk)
    storage.save(outcome.audio_key, wav_file(bytes(480), sample_rate_hz=24_000))
    Attempt.objects.filter(job=job).update(audio_key=outcome.audio_key)
    moment = timezone.now() - timedelta(hours=hours_ago)
    SynthesisJob.objects.filter(pk=job.pk).update(deleted_at=moment, finished_at=moment)
    return job, outcome.audio_key


def test_late_audio_of_a_job_deleted_just_now_is_removed_at_once_and_older_at_the_thorough_look(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    _, new = deleted_with_audio(submit, workspace, hours_ago=0.5)
    _, old = deleted_with_audio(submit, workspace, hours_ago=2)
    assert sweep()["files_removed"] == 1
    assert (storage.exists(new), storage.exists(old)) == (False, True)
    assert sweep_thoroughly() == {"files_removed": 1}
    assert not storage.exists(old)
    assert not Attempt.objects.exclude(audio_key="").exists()
    assert sweep_thoroughly() == {}


def test_late_audio_of_a_job_deleted_long_ago_that_ended_just_now_is_removed_at_once(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job, key = deleted_with_audio(submit, workspace, hours_ago=2)
    SynthesisJob.objects.filter(pk=job.pk).update(finished_at=timezone.now())
    assert sweep()["files_removed"] == 1
    assert not storage.exists(key)


@pytest.mark.parametrize(("within", "read"), [(sweeping.LATELY, 2), (None, COPIES + 3)])
def test_the_look_for_deleted_jobs_reads_them_alone(db: None, within: timedelta | None, read: int) -> None:
    def ended(*, hours_ago: float, deleted: float | None) -> SynthesisJob:
        """A job that ended so many hours ago and was deleted so many hours ago."""
        now = timezone.now()
        return make_job_row(
            created_at=now - timedelta(hours=hours_ago),
            finished_at=now - timedelta(hours=hours_ago),
            deleted_at=None if deleted is None else now - timedelta(hours=deleted),
            state=JobState.SUCCEEDED,
            segment_state=SegmentState.SUCCEEDED,
        )

    ended(hours_ago=5, deleted=0.5)
    ended(hours_ago=0.5, deleted=2)
    copy_row(ended(hours_ago=5, deleted=4))
    copy_row(ended(hours_ago=5, deleted=None))
    assert rows_read(sweeping._deleted_jobs(within)) == {"tts_synthesisjob": read}


@pytest.mark.parametrize(("minutes_ago", "at_once"), [(1, True), (30, False)])
def test_money_held_for_an_ended_job_is_given_back(
    submit: Submit, workspace: Workspace, minutes_ago: int, at_once: bool
) -> None:
    live, job = submit(), submit()
    # As if whoever ended it had not closed its hold.
    SynthesisJob.objects.filter(pk=job.pk).update(
        state=JobState.FAILED, finished_at=timezone.now() - timedelta(minutes=minutes_ago)
    )
    assert sweep()["holds_released"] == (1 if at_once else 0)
    assert sweep_thoroughly()["holds_released"] == (0 if at_once else 1)
    assert Hold.objects.get(job_id=job.pk).state == HoldState.CLOSED
    assert Hold.objects.get(job_id=live.pk).state == HoldState.OPEN
    assert account(workspace) == (WELCOME_MICROS - live.held_micros, live.held_micros)
    assert_books_balance()


def test_a_slot_that_was_bound_anew_while_the_sweep_looked_is_not_freed(submit: Submit) -> None:
    make_device()
    submit()
    slot = DeviceSlot.objects.get()
    live, gone = slot.attempt_id, uuid4()
    DeviceSlot.objects.update(attempt_id=gone)
    freed: list[int] = []

    def free() -> None:
        try:
            freed.append(sweeping.free_stale_slots())
        finally:
            connections.close_all()

    def is_waiting() -> bool:
        with connection.cursor() as cursor:
            # Not pg_stat_activity, which a transaction sees as it was at its first look.
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            return bool(cursor.fetchone()[0])

    thread = threading.Thread(target=free)
    with transaction.atomic():
        DeviceSlot.objects.update(attempt_id=live)
        thread.start()
        wait_for(is_waiting, what="the sweep waiting for the slot")
    thread.join(timeout=30)
    assert freed == [0]
    assert DeviceSlot.objects.get().attempt_id == live
    DeviceSlot.objects.update(attempt_id=gone)
    assert sweeping.free_stale_slots() == 1
    assert DeviceSlot.objects.get().attempt_id is None
