"""A database that went away and came back: workers that held connections to it go on."""

from __future__ import annotations

from django.db import connection

from tests.pool.conftest import Submit
from tests.pool.processes import Pool, wait_for
from tests.pool.test_attempts import assert_books_balance
from tests.pool.test_processes import REAL_TIME, assert_right_audio, ended
from tts.models import Attempt, Voice
from tts.selectors.devices import ready_device_count
from tts.states import JobState


def end_all_other_sessions() -> int:
    """What a restart of PostgreSQL does to those who are connected; returns how many they were."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        ended_sessions: int = cursor.fetchone()[0]
    return ended_sessions


def test_a_worker_whose_database_sessions_were_ended_speaks_the_next_job_at_the_first_try(
    pool: Pool, submit: Submit, voice: Voice
) -> None:
    pool.start_node(engine_settings=REAL_TIME)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    # The worker's own thread has a connection now.
    assert ended(submit("Before the database goes away.")).state == JobState.SUCCEEDED
    assert end_all_other_sessions() > 0
    for number in range(2):
        job = ended(submit(f"Sentence number {number} after it has come back."))
        assert job.state == JobState.SUCCEEDED
        assert_right_audio(job, voice)
        assert Attempt.objects.filter(job=job, state="succeeded").count() == 1
        assert not Attempt.objects.filter(job=job, error_code="lost_on_the_wire").exists()
    assert_books_balance()
