"""The life of engines behind real workers: recycled, out of memory, swapped, proven, given up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from accounts.models import Workspace
from billing.models import Hold, UsageRecord
from tests.pool.conftest import Submit
from tests.pool.processes import ROOT, Pool, wait_for
from tests.pool.test_attempts import WELCOME_MICROS, account, assert_books_balance
from tests.pool.test_processes import assert_right_audio, ended
from tts.errors import TextBlocked
from tts.models import Attempt, Device, DeviceEvent, DeviceSlot, PoisonText, SynthesisJob, Voice
from tts.selectors.devices import ready_device_count
from tts.services import health
from tts.states import JobState


def event(kind: str) -> DeviceEvent:
    return wait_for(
        lambda: DeviceEvent.objects.filter(kind=kind).order_by("id").first(), what=f"an event {kind}"
    )


def engine_pid() -> int:
    return wait_for(lambda: DeviceSlot.objects.get().engine_pid or 0, what="an engine")


def is_gone(pid: int) -> bool:
    """Whether nothing is left of a process but, perhaps, its entry."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def codes(job: SynthesisJob) -> list[str]:
    return list(
        Attempt.objects.filter(job=job).order_by("attempt_number").values_list("error_code", flat=True)
    )


def test_an_engine_is_recycled_under_a_stream_of_work_and_no_request_fails(
    pool: Pool, submit: Submit, voice: Voice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOICEPOOL_RECYCLE_AFTER_SEGMENTS", "5")
    pool.start_node(engine_settings={"real_time": True, "ms_per_character": 3})
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    first = engine_pid()
    jobs = [submit(f"Sentence number {number} of a long row.") for number in range(18)]
    for job in jobs:
        assert ended(job).state == JobState.SUCCEEDED
        assert_right_audio(job, voice)
        assert codes(job) == [""]
    recycled = event("recycled")
    assert "segments; memory" in recycled.detail
    assert "MB when warm" in recycled.detail
    wait_for(lambda: is_gone(first), what="the end of the old engine")
    device = Device.objects.get()
    assert device.recycles >= 1
    assert device.restarts == 0
    assert_books_balance()


def test_an_engine_that_dies_while_its_successor_is_warmed_is_followed_by_it(
    pool: Pool, submit: Submit, voice: Voice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOICEPOOL_RECYCLE_AFTER_SEGMENTS", "1")
    pool.start_node(engine_settings={"load_ms": 3000})
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    first = engine_pid()
    assert ended(submit("The only one before the change.")).state == JobState.SUCCEEDED
    wait_for(lambda: DeviceSlot.objects.get().recycling_since, what="the recycling")
    os.kill(first, signal.SIGKILL)
    job = ended(submit("The first one after it."))
    assert job.state == JobState.SUCCEEDED
    assert_right_audio(job, voice)
    # What the dead engine could not take was given back before it was begun.
    assert Attempt.objects.filter(job=job, started_at__isnull=False).count() == 1
    assert not DeviceEvent.objects.filter(kind="strike").exists()
    assert_books_balance()


def test_an_engine_that_leaks_is_recycled_and_its_memory_is_back(
    pool: Pool, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOICEPOOL_RECYCLE_MEMORY_GROWTH_BYTES", "100000000")
    monkeypatch.setenv("VOICEPOOL_MEMORY_LOOK_S", "0.2")
    pool.start_node(engine_settings={"leak_bytes_per_request": 60_000_000})
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    first = engine_pid()
    for number in range(3):
        assert ended(submit(f"Leak number {number}.")).state == JobState.SUCCEEDED
    assert "memory growth" in event("recycled").detail
    wait_for(lambda: is_gone(first), what="the end of the old engine")
    assert psutil.Process(engine_pid()).memory_info().rss < 150_000_000


def test_memory_that_ran_out_once_costs_nobody_anything(
    pool: Pool, submit: Submit, voice: Voice, tmp_path: Path
) -> None:
    pool.start_node(engine_settings={"oom_on_text": "large", "once_folder": str(tmp_path)})
    pool.start_clock()
    job = ended(submit("A large text for a small card."))
    assert (job.state, codes(job)) == (JobState.SUCCEEDED, [""])
    assert_right_audio(job, voice)
    assert event("out_of_memory").attempt_id == Attempt.objects.get().pk
    assert not DeviceEvent.objects.filter(kind="strike").exists()
    assert Device.objects.get().restarts == 0
    assert_books_balance()


def test_memory_that_ran_out_twice_costs_the_engine_and_the_segment_is_spoken_by_the_next(
    pool: Pool, submit: Submit, voice: Voice, tmp_path: Path
) -> None:
    pool.start_node(
        engine_settings={"oom_on_text": "large", "oom_for_one_process": True, "once_folder": str(tmp_path)}
    )
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    first = engine_pid()
    job = ended(submit("A large text for a small card."))
    assert (job.state, codes(job)) == (JobState.SUCCEEDED, ["gpu_oom", ""])
    assert_right_audio(job, voice)
    assert is_gone(first)
    assert DeviceEvent.objects.filter(kind="out_of_memory").count() == 1
    assert DeviceEvent.objects.get(kind="strike").detail == "gpu_oom: There was not enough memory."
    assert list(UsageRecord.objects.order_by("pk").values_list("billable", flat=True)) == [False, True]
    # The device keeps its strike, the text does not.
    assert not PoisonText.objects.exists()
    assert_books_balance()


def test_a_text_that_kills_the_only_device_twice_is_given_up_and_not_taken_again(
    pool: Pool, submit: Submit, workspace: Workspace
) -> None:
    pool.start_node(engine_settings={"crash_on_text": "poison"})
    pool.start_clock()
    job = ended(submit("Some poison for the engine."))
    assert (job.state, job.error_code, job.charged_micros) == (JobState.FAILED, "poison_text", 0)
    assert codes(job) == ["engine_died", "engine_died"]
    assert account(workspace) == (WELCOME_MICROS, 0)
    assert not Hold.objects.filter(state="open").exists()
    with pytest.raises(TextBlocked) as refused:
        submit("Some poison for the engine.")
    assert refused.value.code == "text_blocked"
    assert SynthesisJob.objects.count() == 1
    assert account(workspace) == (WELCOME_MICROS, 0)
    # Everybody else is served.
    assert ended(submit("Something wholesome.")).state == JobState.SUCCEEDED
    assert Device.objects.get().state == "ready"
    PoisonText.objects.update(blocked_until="2026-01-01T00:00:00Z")
    assert submit("Some poison for the engine.").state == JobState.QUEUED
    assert_books_balance()


def test_a_text_that_kills_two_devices_is_not_tried_on_a_third(pool: Pool, submit: Submit) -> None:
    for name in ("node-a", "node-b"):
        pool.start_node(name=name, engine_settings={"crash_on_text": "poison"})
    pool.start_clock()
    wait_for(lambda: ready_device_count() == 2, what="two ready devices")
    job = ended(submit("Some poison for the engine."))
    assert (job.state, job.error_code) == (JobState.FAILED, "poison_text")
    attempts = Attempt.objects.filter(job=job).order_by("attempt_number")
    assert [attempt.error_code for attempt in attempts] == ["engine_died", "engine_died"]
    assert attempts[0].device_id != attempts[1].device_id
    assert_books_balance()


def test_three_deaths_quarantine_a_device_which_has_to_prove_itself_before_it_works_again(
    pool: Pool, submit: Submit, voice: Voice
) -> None:
    pool.start_node(engine_settings={"crash_on_text": "poison"})
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    ended(submit("Poison the first: poison."))
    last = submit("And one more poison.")
    quarantined = event("quarantined")
    assert quarantined.detail == "3 strikes in 10 minutes"
    device = Device.objects.get()
    assert device.state == "quarantined"
    waiting = submit("A text that waits for the device to be well.")
    pid = DeviceSlot.objects.get().engine_pid
    assert pid is None or is_gone(pid)
    SynthesisJob.objects.filter(pk=last.pk).update(cancel_requested_at="2026-11-30T00:00:00Z")
    assert health.release_device(device_id=device.pk, epoch=device.epoch, reason="the texts were bad")
    assert ended(waiting).state == JobState.SUCCEEDED
    kinds = list(
        DeviceEvent.objects.filter(id__gt=quarantined.pk).order_by("id").values_list("kind", flat=True)
    )
    assert [kind for kind in kinds if kind in ("released", "canary_passed", "ready")][:3] == [
        "released",
        "canary_passed",
        "ready",
    ]
    assert_books_balance()


@pytest.mark.parametrize("heals", [True, False])
def test_an_engine_that_speaks_its_test_sentence_wrong_gets_one_more_try_and_no_customers_text(
    pool: Pool, submit: Submit, tmp_path: Path, heals: bool
) -> None:
    settings: dict[str, object] = {"silent_on_text": "好"}
    if heals:
        settings["once_folder"] = str(tmp_path)
    pool.start_node(engine_settings=settings)
    pool.start_clock()
    job = submit("Waiting for somebody who is well.")
    if heals:
        assert ended(job).state == JobState.SUCCEEDED
    else:
        assert event("quarantined").detail == "the test sentence failed 2 times"
        assert not Attempt.objects.exists()
    failed = DeviceEvent.objects.filter(kind="canary_failed").values_list("detail", flat=True)
    assert list(failed) == ["simulated: silence; 60 gpu_ms"] * (1 if heals else 2)
    assert UsageRecord.objects.count() == (1 if heals else 0)
    assert_books_balance()


def test_a_model_is_swapped_under_a_stream_of_work_and_no_request_fails(
    pool: Pool, submit: Submit, voice: Voice
) -> None:
    pool.start_node(engine_settings={"real_time": True, "ms_per_character": 3}, slots=2)
    pool.start_clock()
    wait_for(lambda: DeviceSlot.objects.filter(ready=True).count() == 2, what="two ready slots")
    first = list(DeviceSlot.objects.values_list("engine_pid", flat=True))
    stop = threading.Event()
    jobs: list[SynthesisJob] = []

    def stream() -> Iterator[SynthesisJob]:
        number = 0
        while not stop.is_set() and number < 200:
            number += 1
            yield ended(submit(f"Sentence number {number} of a stream."))

    Device.objects.update(wanted_engine="simulated-b")
    for job in stream():
        jobs.append(job)
        if Device.objects.filter(engine="simulated-b").exists() and len(jobs) > 3:
            stop.set()
    device = Device.objects.get()
    assert (device.engine, device.engine_version, device.state) == ("simulated-b", "2", "ready")
    assert list(DeviceSlot.objects.values_list("engine", flat=True)) == ["simulated-b"] * 2
    for job in jobs:
        assert (job.state, codes(job)) == (JobState.SUCCEEDED, [""])
        assert_right_audio(job, voice)
    wait_for(lambda: all(is_gone(pid or 0) for pid in first), what="the end of the old engines")
    assert DeviceEvent.objects.filter(kind="swapped").count() == 1
    assert device.restarts == 0
    assert_books_balance()


def test_a_swap_that_fails_leaves_the_old_engine_serving(pool: Pool, submit: Submit) -> None:
    pool.start_node()
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    first = engine_pid()
    Device.objects.update(wanted_engine="no-such-engine")
    assert event("swap_failed").detail.startswith("no-such-engine: EngineError: engine_unknown")
    assert ended(submit("Still here.")).state == JobState.SUCCEEDED
    device = Device.objects.get()
    assert (device.engine, device.wanted_engine, device.state) == ("simulated", "simulated", "ready")
    assert engine_pid() == first


def test_a_drained_device_lets_go_of_its_engine_and_comes_back_at_the_resume(
    pool: Pool, submit: Submit
) -> None:
    pool.start_node(engine_settings={"real_time": True, "ms_per_character": 30})
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    running = submit("A sentence that takes its time to be spoken.")
    wait_for(lambda: Attempt.objects.filter(job=running, state="running").exists(), what="its start")
    pid = engine_pid()
    device = Device.objects.get()
    assert health.drain_device(device_id=device.pk, epoch=device.epoch)
    waiting = submit("A sentence that waits.")
    assert ended(running).state == JobState.SUCCEEDED
    event("drained")
    wait_for(lambda: is_gone(pid), what="the end of the engine")
    assert not Attempt.objects.filter(job=waiting).exists()
    device.refresh_from_db()
    assert (device.state, device.state_reason) == ("stopped", "drained")
    assert health.resume_device(device_id=device.pk, epoch=device.epoch)
    assert ended(waiting).state == JobState.SUCCEEDED
    assert codes(waiting) == [""]


def test_a_hang_past_the_deadline_is_replaced(
    pool: Pool, submit: Submit, voice: Voice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Five times an estimate of some hundred milliseconds comes to it: far less than the watch over progress allows.
    monkeypatch.setenv("VOICEPOOL_DEADLINE_BASE_S", "0.2")
    pool.start_node(engine_settings={"hang_on_text": "hang", "once_folder": str(tmp_path)})
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    first = engine_pid()
    job = ended(submit("This one will hang."))
    assert (job.state, codes(job)) == (JobState.SUCCEEDED, ["engine_hung_deadline", ""])
    assert_right_audio(job, voice)
    assert is_gone(first)
    assert event("restarted").detail == "engine_hung_deadline"
    assert event("strike").detail.startswith("engine_hung_deadline: deadline after")
    assert_books_balance()


def test_an_engine_that_outlives_its_kill_quarantines_the_device(
    pool: Pool, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOICEPOOL_NO_PROGRESS_S", "1")
    pool.start_node(engine_settings={"hang_on_text": "hang"})
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    slot = DeviceSlot.objects.get()
    holder = subprocess.Popen(
        [sys.executable, str(ROOT / "tests/pool/hold_dead.py"), str(slot.engine_pid)], stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        submit("This one will hang, and stay.")
        assert event("unkillable").detail == f"process {slot.engine_pid}"
        assert event("quarantined").detail == "an engine process could not be ended"
        wait_for(lambda: is_gone(slot.worker_pid or 0), what="the end of the worker")
        device = Device.objects.get()
        assert device.state == "quarantined"
        assert DeviceSlot.objects.get().ready is False
    finally:
        holder.kill()
        holder.wait()
        holder.stdout and holder.stdout.close()


def test_a_worker_that_is_told_to_end_finishes_what_it_speaks_and_takes_nothing_more(
    pool: Pool, submit: Submit
) -> None:
    pool.start_node(engine_settings={"real_time": True, "ms_per_character": 30})
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    running = submit("A sentence that takes its time to be spoken.")
    wait_for(lambda: Attempt.objects.filter(job=running, state="running").exists(), what="its start")
    waiting = submit("Behind it.")
    worker_pid = DeviceSlot.objects.get().worker_pid or 0
    os.kill(worker_pid, signal.SIGTERM)
    assert (ended(running).state, codes(running)) == (JobState.SUCCEEDED, [""])
    wait_for(lambda: is_gone(worker_pid), what="the end of the worker")
    assert ended(waiting).state == JobState.SUCCEEDED
    assert Attempt.objects.filter(started_at__isnull=False).count() == 2
    assert_books_balance()
