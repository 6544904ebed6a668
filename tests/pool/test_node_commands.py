"""Operators' commands, carried out by a real agent on fake GPUs."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from accounts.models import AuditEntry, User
from billing.models import UsageRecord
from tests.pool.conftest import Submit
from tests.pool.fake_gpus import FakeGpus
from tests.pool.processes import Pool, wait_for
from tests.pool.test_attempts import assert_books_balance
from tests.pool.test_node import FIRST, SECOND, device, is_state, running_workers, worker_pid
from tests.pool.test_processes import SLOW, ended
from tts.models import Attempt, DeviceCommand, DeviceCommandKind, DeviceEvent, DeviceSlot, SynthesisJob
from tts.selectors.devices import ready_device_count
from tts.services.commands import request_command
from tts.services.health import quarantine_device
from tts.services.slots import swap_failed
from tts.states import JobState

KIND = DeviceCommandKind


@pytest.fixture
def gpus(tmp_path: Path) -> FakeGpus:
    return FakeGpus(tmp_path / "gpus.json", uuids=[FIRST])


@pytest.fixture
def operator(customer: User) -> User:
    return User.objects.create_user("operator@example.com", "correct horse battery", is_staff=True)


class Operator:
    """Asks and waits for the end of what was asked."""

    def __init__(self, user: User) -> None:
        self.user = user

    def ask(
        self, kind: DeviceCommandKind, name: str = FIRST, *, epoch: int | None = None, engine: str = ""
    ) -> DeviceCommand:
        return request_command(
            device=device(name),
            kind=kind,
            requested_by=self.user,
            reason="For the test.",
            engine=engine,
            expected_epoch=device(name).epoch if epoch is None else epoch,
        )

    def end(self, command: DeviceCommand) -> tuple[str, str]:
        """State and result, once it has ended."""

        def look() -> bool:
            command.refresh_from_db()
            return command.finished_at is not None

        wait_for(look, timeout_s=60, what=f"the end of {command.kind}")
        return command.state, command.result

    def do(self, kind: DeviceCommandKind, name: str = FIRST, *, engine: str = "") -> tuple[str, str]:
        return self.end(self.ask(kind, name, engine=engine))


@pytest.fixture
def ops(operator: User) -> Operator:
    return Operator(operator)


def speaking(submit: Submit) -> tuple[SynthesisJob, Attempt]:
    """A job whose first chunk has been spoken, with seconds to go."""
    job = submit("A sentence that is long enough for an operator to press a button in its middle.")
    attempt = wait_for(
        lambda: Attempt.objects.filter(job=job, first_chunk_at__isnull=False).first(), what="the first chunk"
    )
    return job, attempt


def test_a_drained_device_ends_what_it_speaks_and_keeps_no_worker_until_it_is_resumed(
    pool: Pool, gpus: FakeGpus, submit: Submit, ops: Operator
) -> None:
    agent = pool.start_gpu_node(gpus, engine_settings=SLOW)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    job, attempt = speaking(submit)
    assert ops.do(KIND.DRAIN) == ("done", "drained")
    attempt.refresh_from_db()
    assert attempt.state == "succeeded"
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert (device(FIRST).state, device(FIRST).state_reason) == ("stopped", "drained")
    assert running_workers(agent.pid, FIRST) == []
    waiting = submit("This one waits for the resume.")
    assert ops.do(KIND.DRAIN) == ("failed", "it was drained already")
    assert ops.do(KIND.RESTART_NOW)[0] == "failed"
    assert Attempt.objects.filter(job=waiting).count() == 0
    assert ops.do(KIND.RESUME) == ("done", "resumed")
    assert ended(waiting).state == JobState.SUCCEEDED
    command = DeviceCommand.objects.order_by("pk")[0]
    assert command.acknowledged_at is not None
    assert command.finished_at is not None
    assert command.created_at <= command.acknowledged_at <= command.finished_at
    acts = list(AuditEntry.objects.order_by("pk").values_list("act", flat=True))
    assert acts[:2] == ["device.drain", "device.drain.done"]
    assert acts[-2:] == ["device.resume", "device.resume.done"]
    assert_books_balance()


def test_restart_after_the_job_lets_it_end_and_restart_now_does_not(
    pool: Pool, gpus: FakeGpus, submit: Submit, ops: Operator
) -> None:
    pool.start_gpu_node(gpus, engine_settings=SLOW)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    job, gently = speaking(submit)
    first_pid = worker_pid(FIRST)
    assert ops.do(KIND.RESTART_AFTER_JOB) == ("done", "restarted")
    gently.refresh_from_db()
    assert gently.state == "succeeded"
    assert ended(job).state == JobState.SUCCEEDED
    assert not psutil.pid_exists(first_pid)
    wait_for(is_state(FIRST, "ready"), what="the new worker")
    assert worker_pid(FIRST) != first_pid

    job, hard = speaking(submit)
    second_pid = worker_pid(FIRST)
    assert ops.do(KIND.RESTART_NOW) == ("done", "restarted")
    assert not psutil.pid_exists(second_pid)
    assert ended(job).state == JobState.SUCCEEDED
    hard.refresh_from_db()
    assert hard.state == "lost"
    assert list(
        UsageRecord.objects.filter(job_id=job.pk).order_by("pk").values_list("billable", flat=True)
    ) == [
        False,
        True,
    ]
    assert_books_balance()


def test_a_command_for_an_earlier_incarnation_does_nothing(pool: Pool, gpus: FakeGpus, ops: Operator) -> None:
    agent = pool.start_gpu_node(gpus)
    wait_for(ready_device_count, what="a ready device")
    pid = worker_pid(FIRST)
    stale = ops.ask(KIND.RESTART_NOW, epoch=device(FIRST).epoch - 1)
    assert ops.end(stale) == ("stale", "the device had restarted meanwhile")
    stale.refresh_from_db()
    assert stale.acknowledged_at is None
    assert running_workers(agent.pid, FIRST) == [pid]
    assert device(FIRST).state == "ready"


def test_quarantine_and_drain_outlive_the_agent_until_they_are_taken_back(
    pool: Pool, tmp_path: Path, ops: Operator
) -> None:
    gpus = FakeGpus(tmp_path / "two.json", uuids=[FIRST, SECOND])
    agent = pool.start_gpu_node(gpus)
    pool.start_clock()
    wait_for(lambda: ready_device_count() == 2, what="two ready devices")
    assert ops.do(KIND.QUARANTINE) == ("done", "quarantined")
    assert ops.do(KIND.DRAIN, SECOND) == ("done", "drained")
    assert running_workers(agent.pid, FIRST) == running_workers(agent.pid, SECOND) == []
    epoch = device(FIRST).epoch
    agent.kill()
    agent.wait()
    again = pool.start_gpu_node(gpus)
    wait_for(lambda: device(FIRST).epoch == epoch + 1, what="the next incarnation")
    # Once a command has been answered, the agent has had its chance to start workers.
    assert ops.do(KIND.RESUME) == ("failed", "it was not drained")
    assert (device(FIRST).state, device(FIRST).state_reason) == ("quarantined", "operator: For the test.")
    assert (device(SECOND).state, device(SECOND).state_reason) == ("stopped", "drained")
    assert running_workers(again.pid, FIRST) == running_workers(again.pid, SECOND) == []
    assert ops.do(KIND.RELEASE) == ("done", "released")
    assert ops.do(KIND.RESUME, SECOND) == ("done", "resumed")
    wait_for(lambda: ready_device_count() == 2, what="both to take work again")
    kinds = list(DeviceEvent.objects.filter(device__name=FIRST).order_by("pk").values_list("kind", flat=True))
    assert kinds.index("quarantined") < kinds.index("released") < len(kinds) - 1


def test_a_card_that_the_driver_does_not_reach_is_not_released(
    pool: Pool, gpus: FakeGpus, ops: Operator
) -> None:
    agent = pool.start_gpu_node(gpus)
    wait_for(ready_device_count, what="a ready device")
    card = gpus.take_out(FIRST)
    wait_for(is_state(FIRST, "quarantined"), what="the quarantine")
    assert ops.do(KIND.RELEASE) == ("failed", "the driver does not reach this device")
    assert device(FIRST).state == "quarantined"
    assert running_workers(agent.pid, FIRST) == []
    gpus.put_back(card)
    wait_for(lambda: device(FIRST).memory_used_bytes is not None, what="its figures")
    assert ops.do(KIND.RELEASE) == ("done", "released")
    wait_for(is_state(FIRST, "ready"), what="it to take work again")


def test_a_command_that_an_agent_had_begun_fails_when_the_agent_dies(
    pool: Pool, gpus: FakeGpus, submit: Submit, ops: Operator
) -> None:
    agent = pool.start_gpu_node(gpus, engine_settings={"real_time": True, "ms_per_character": 400})
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    speaking(submit)
    command = ops.ask(KIND.RESTART_AFTER_JOB)

    def begun() -> bool:
        command.refresh_from_db()
        return command.state == "running"

    wait_for(begun, what="the command to begin")
    agent.kill()
    agent.wait()
    pool.start_gpu_node(gpus)
    assert ops.end(command) == ("failed", "the node restarted meanwhile")


def test_strikes_that_a_worker_counted_stop_it_and_a_release_brings_it_back(
    pool: Pool, gpus: FakeGpus, ops: Operator
) -> None:
    agent = pool.start_gpu_node(gpus)
    wait_for(ready_device_count, what="a ready device")
    pid = worker_pid(FIRST)
    assert quarantine_device(device_id=device(FIRST).pk, epoch=device(FIRST).epoch, reason="3 strikes")
    wait_for(lambda: running_workers(agent.pid, FIRST) == [], what="the end of its worker")
    assert ops.do(KIND.QUARANTINE) == ("failed", "it was quarantined already")
    assert ops.do(KIND.RELEASE) == ("done", "released")
    wait_for(is_state(FIRST, "ready"), what="it to take work again")
    assert worker_pid(FIRST) != pid


def test_a_device_without_workers_takes_another_engine_at_once_and_keeps_it(
    pool: Pool, gpus: FakeGpus, ops: Operator
) -> None:
    agent = pool.start_gpu_node(gpus)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    assert ops.do(KIND.DRAIN) == ("done", "drained")
    assert ops.do(KIND.SWAP_MODEL, engine="simulated") == ("done", "it has this engine already")
    assert ops.do(KIND.SWAP_MODEL, engine="kokoro") == ("done", "no worker ran; the next one starts with it")
    assert (device(FIRST).engine, device(FIRST).wanted_engine) == ("kokoro", "kokoro")
    epoch = device(FIRST).epoch
    agent.kill()
    agent.wait()
    pool.start_gpu_node(gpus)
    wait_for(lambda: device(FIRST).epoch == epoch + 1, what="the next incarnation")
    assert device(FIRST).engine == "kokoro"
    assert DeviceSlot.objects.filter(ready=True).count() == 0


def test_a_swap_for_which_there_is_no_memory_leaves_the_old_engine_serving(
    pool: Pool, gpus: FakeGpus, submit: Submit, ops: Operator
) -> None:
    pool.start_gpu_node(gpus)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    gpus.change(FIRST, memory_used=24 * 1024**3 - 1_000_000_000)
    wait_for(lambda: (device(FIRST).memory_free_bytes or 0) == 1_000_000_000, what="the figures")
    state, result = ops.do(KIND.SWAP_MODEL, engine="kokoro")
    assert state == "failed"
    assert result == "memory_low: 1000000000 bytes are free, 1200000000 are needed beside the old engine"
    assert (device(FIRST).engine, device(FIRST).wanted_engine) == ("simulated", "")
    assert ended(submit("The old engine goes on.")).state == JobState.SUCCEEDED


def test_a_swap_is_done_when_every_worker_has_changed_over(
    pool: Pool, gpus: FakeGpus, submit: Submit, ops: Operator
) -> None:
    agent = pool.start_gpu_node(gpus, VOICEPOOL_SLOTS="2")
    pool.start_clock()
    wait_for(lambda: DeviceSlot.objects.filter(ready=True).count() == 2, what="two ready slots")
    workers = sorted(running_workers(agent.pid, FIRST))
    assert ops.do(KIND.SWAP_MODEL, engine="simulated-b") == ("done", "swapped")
    assert list(DeviceSlot.objects.values_list("engine", flat=True)) == ["simulated-b"] * 2
    assert (device(FIRST).engine, device(FIRST).wanted_engine) == ("simulated-b", "simulated-b")
    assert sorted(running_workers(agent.pid, FIRST)) == workers
    assert ended(submit("The new engine speaks.")).state == JobState.SUCCEEDED
    # A worker that is started later has it from its beginning.
    assert ops.do(KIND.RESTART_NOW) == ("done", "restarted")
    wait_for(
        lambda: DeviceSlot.objects.filter(ready=True, engine="simulated-b").count() == 2, what="new workers"
    )
    kinds = DeviceEvent.objects.filter(device__name=FIRST, kind__startswith="swap").order_by("pk")
    assert list(kinds.values_list("kind", flat=True)) == ["swap_started", "swapped"]


def test_a_swap_that_fails_ends_its_command_with_the_reason(
    pool: Pool, gpus: FakeGpus, ops: Operator
) -> None:
    pool.start_gpu_node(gpus, engine_settings={"load_ms": 4000})
    wait_for(ready_device_count, what="a ready device")
    command = ops.ask(KIND.SWAP_MODEL, engine="simulated-b")
    wait_for(lambda: device(FIRST).wanted_engine == "simulated-b", what="the wish")
    # As a worker says it when its new engine does not load.
    swap_failed(
        device_id=device(FIRST).pk,
        epoch=device(FIRST).epoch,
        slot_number=0,
        engine="simulated-b",
        detail="EngineDied",
    )
    assert ops.end(command) == ("failed", "simulated-b: EngineDied")
    assert (device(FIRST).engine, device(FIRST).wanted_engine) == ("simulated", "simulated")
    assert device(FIRST).state == "ready"
