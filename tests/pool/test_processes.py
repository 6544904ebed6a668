"""Real agents, workers and engine processes, killed and hung: every job is spoken and charged once."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import psutil
import pytest

from accounts.models import Workspace
from billing.models import CreditAccount, Hold, LedgerEntry, UsageRecord
from portal.lib.queues import redis_connection
from tests.pool.conftest import Submit
from tests.pool.processes import Pool, wait_for
from tests.pool.test_attempts import WELCOME_MICROS, assert_books_balance
from tts import storage
from tts.audio.wav import read_wav
from tts.engine.simulated import tone, tone_period
from tts.models import Attempt, Device, DeviceSlot, SynthesisJob, Voice
from tts.selectors.devices import ready_device_count
from tts.services.jobs import cancel_job
from tts.services.streams import job_audio, job_events
from tts.states import JOB_ENDED, JobState

REAL_TIME = {"real_time": True, "ms_per_character": 20}
# Four seconds for a sentence of one segment: time to kill somebody in its middle.
SLOW = {"real_time": True, "ms_per_character": 55}


def ended(job: SynthesisJob) -> SynthesisJob:
    def look() -> bool:
        job.refresh_from_db()
        return job.state in JOB_ENDED

    wait_for(look, timeout_s=60, what=f"the end of the job, which is {job.state}")
    return job


def assert_right_audio(job: SynthesisJob, voice: Voice) -> None:
    """The simulated engine's tone tells text, voice and seed."""
    pcm = read_wav(storage.read(job.audio_key)).pcm
    period = tone_period(text=job.text, voice_key=voice.preset_key, seed=job.seed)
    assert pcm == tone(period=period, samples=len(pcm) // 2)
    assert len(pcm) > 24_000


def test_a_job_goes_through_queue_worker_and_engine(pool: Pool, submit: Submit, voice: Voice) -> None:
    pool.start_node()
    pool.start_clock()
    job = ended(submit("Through the whole pool."))
    assert job.state == JobState.SUCCEEDED
    assert_right_audio(job, voice)
    assert UsageRecord.objects.count() == 1
    assert_books_balance()


def test_an_engine_killed_in_the_middle_is_replaced_and_the_job_charged_once(
    pool: Pool, submit: Submit, voice: Voice, workspace: Workspace
) -> None:
    pool.start_node(engine_settings=SLOW)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    job = submit("A sentence that is long enough to be interrupted in its middle by a kill.")
    wait_for(
        lambda: Attempt.objects.filter(job=job, first_chunk_at__isnull=False).exists(), what="the first chunk"
    )
    engine_pid = DeviceSlot.objects.get().engine_pid
    assert engine_pid
    os.kill(engine_pid, signal.SIGKILL)
    ended(job)
    assert job.state == JobState.SUCCEEDED
    assert_right_audio(job, voice)
    states = list(
        Attempt.objects.filter(job=job).order_by("attempt_number").values_list("state", "error_code")
    )
    assert states == [("failed", "engine_died"), ("succeeded", "")]
    assert list(UsageRecord.objects.order_by("pk").values_list("billable", flat=True)) == [False, True]
    balance = CreditAccount.objects.get(workspace_id=workspace.pk)
    assert balance.available_micros == WELCOME_MICROS - job.charged_micros
    assert LedgerEntry.objects.filter(transaction__kind="capture", account="revenue").count() == 1
    assert DeviceSlot.objects.get().engine_pid != engine_pid
    assert Device.objects.get().restarts == 1
    assert_books_balance()


def test_a_worker_killed_in_the_middle_loses_its_lease_and_the_job_goes_on(
    pool: Pool, submit: Submit, voice: Voice
) -> None:
    pool.start_node(engine_settings=SLOW)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    job = submit("Another sentence that is long enough for its worker to be killed.")
    wait_for(
        lambda: Attempt.objects.filter(job=job, first_chunk_at__isnull=False).exists(), what="the first chunk"
    )
    slot = DeviceSlot.objects.get()
    assert slot.worker_pid
    assert slot.engine_pid
    os.kill(slot.worker_pid, signal.SIGKILL)
    # The engine process must not outlive its worker: it would keep the GPU's memory.
    wait_for(lambda: not psutil.pid_exists(slot.engine_pid or 0), what="the end of the orphaned engine")
    ended(job)
    assert job.state == JobState.SUCCEEDED
    assert_right_audio(job, voice)
    assert list(UsageRecord.objects.order_by("pk").values_list("billable", flat=True)) == [False, True]
    assert_books_balance()


def test_an_engine_that_hangs_is_killed_and_the_job_spoken_again(
    pool: Pool, submit: Submit, voice: Voice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOICEPOOL_NO_PROGRESS_S", "2")
    pool.start_node(engine_settings={"hang_on_text": "hang here", "once_folder": str(tmp_path)})
    pool.start_clock()
    job = ended(submit("The engine will hang here once, and speak it the second time."))
    assert job.state == JobState.SUCCEEDED
    assert_right_audio(job, voice)
    codes = list(
        Attempt.objects.filter(job=job).order_by("attempt_number").values_list("error_code", flat=True)
    )
    assert codes == ["engine_hung_no_progress", ""]
    assert_books_balance()


def test_a_running_job_is_canceled_within_a_chunk_and_pays_what_was_used(
    pool: Pool, submit: Submit, workspace: Workspace
) -> None:
    pool.start_node(engine_settings={"real_time": True, "ms_per_character": 100})
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    job = submit("A very slow sentence that would take many seconds to be spoken to its end.")
    wait_for(
        lambda: Attempt.objects.filter(job=job, first_chunk_at__isnull=False).exists(), what="the first chunk"
    )
    cancel_job(workspace=workspace, job_id=job.pk)
    ended(job)
    assert job.state == JobState.CANCELED
    attempt = Attempt.objects.get(job=job)
    assert (attempt.state, attempt.error_code) == ("canceled", "canceled")
    assert 0 < attempt.gpu_ms < job.estimate_gpu_ms * 10
    assert job.charged_micros == (attempt.gpu_ms * 12_000 + 500) // 1000
    assert not Hold.objects.filter(state="open").exists()
    # The device is free at once for the next one.
    assert ended(submit("Next.")).state == JobState.SUCCEEDED
    assert_books_balance()


def test_emptying_redis_loses_nothing(pool: Pool, submit: Submit) -> None:
    pool.start_node(engine_settings=REAL_TIME)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    jobs = [submit(f"Sentence number {number} of several that wait.") for number in range(6)]
    wait_for(lambda: SynthesisJob.objects.filter(state="succeeded").count() >= 2, what="the first two jobs")
    redis_connection().flushall()
    for job in jobs:
        assert ended(job).state == JobState.SUCCEEDED
    assert UsageRecord.objects.filter(billable=True).count() == len(jobs)
    assert_books_balance()


def test_the_live_stream_gives_the_same_bytes_as_the_file_also_when_the_engine_dies_in_between(
    pool: Pool, submit: Submit, tmp_path: Path
) -> None:
    pool.start_node(
        engine_settings={
            **REAL_TIME,
            "crash_on_text": "crash here",
            "once_folder": str(tmp_path),
            "chunk_ms": 200,
        }
    )
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    job = submit("First a quiet sentence goes by. " * 9 + "Then the engine will crash here, once. " * 2)
    assert job.segment_count > 1
    live = b"".join(job_audio(job))
    ended(job)
    assert job.state == JobState.SUCCEEDED
    assert live == read_wav(storage.read(job.audio_key)).pcm
    assert Attempt.objects.filter(job=job, error_code="engine_died").count() >= 1


def test_events_tell_the_whole_story_in_order(pool: Pool, submit: Submit) -> None:
    job = submit("Some words to follow.")
    kinds: list[str] = []
    thread_error: list[BaseException] = []

    def follow() -> None:
        from django.db import connection

        try:
            kinds.extend(event.kind for event in job_events(job))
        except BaseException as error:
            thread_error.append(error)
            raise
        finally:
            connection.close()

    follower = threading.Thread(target=follow)
    follower.start()
    wait_for(lambda: kinds, what="the first event")
    assert kinds[0] == "queued"
    pool.start_node(engine_settings=REAL_TIME)
    pool.start_clock()
    follower.join(60)
    assert not follower.is_alive()
    assert not thread_error
    assert kinds[-1] == "succeeded"
    assert "first_audio" in kinds
    assert "segment" in kinds


def test_two_nodes_share_the_work_and_the_loss_of_one_loses_nothing(pool: Pool, submit: Submit) -> None:
    first = pool.start_node(name="node-a", engine_settings=REAL_TIME)
    pool.start_node(name="node-b", engine_settings=REAL_TIME)
    pool.start_clock()
    wait_for(lambda: ready_device_count() == 2, what="two ready devices")
    jobs = [submit(f"Sentence number {number} of a shared pile of work.") for number in range(8)]
    wait_for(lambda: SynthesisJob.objects.filter(state="succeeded").count() >= 2, what="the first two jobs")
    first.kill()
    for job in jobs:
        assert ended(job).state == JobState.SUCCEEDED
    assert Attempt.objects.filter(state="succeeded").values("device").distinct().count() == 2
    assert UsageRecord.objects.filter(billable=True).count() == len(jobs)
    wait_for(
        lambda: Device.objects.filter(state="stopped").count() == 1, what="the lost device to be stopped"
    )
    assert_books_balance()
