"""Real agents on hosts with fake GPUs: what they find, measure, hold back and take out of the pool."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.pool.conftest import Submit
from tests.pool.fake_gpus import GIB, FakeGpus
from tests.pool.processes import Pool, wait_for
from tests.pool.test_attempts import assert_books_balance
from tests.pool.test_processes import SLOW, assert_right_audio, ended
from tts.models import Attempt, Device, DeviceEvent, DeviceSample, DeviceSlot, Voice
from tts.selectors.devices import ready_device_count
from tts.states import JobState

FIRST, SECOND, THIRD = "GPU-aaaa", "GPU-bbbb", "GPU-cccc"
GPU_LOST, NVML_UNKNOWN = 15, 999


@pytest.fixture
def gpus(tmp_path: Path) -> FakeGpus:
    return FakeGpus(tmp_path / "gpus.json", uuids=[FIRST, SECOND])


def device(name: str) -> Device:
    return Device.objects.get(name=name)


def is_state(name: str, state: str) -> Callable[[], bool]:
    return lambda: Device.objects.filter(name=name, state=state).exists()


def worker_pid(name: str) -> int:
    pid = DeviceSlot.objects.get(device__name=name, number=0).worker_pid
    assert pid
    return pid


def running_workers(agent_pid: int, name: str) -> list[int]:
    """The processes of the agent that serve this device."""
    mine, found = f"--device-id={device(name).pk}", []
    for child in psutil.Process(agent_pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() != psutil.STATUS_ZOMBIE and mine in child.cmdline():
                found.append(child.pid)
    return found


def test_each_gpu_is_a_device_by_its_uuid_with_its_own_slots(pool: Pool, tmp_path: Path) -> None:
    gpus = FakeGpus(tmp_path / "gpus.json", uuids=[FIRST, SECOND, THIRD])
    gpus.change(SECOND, memory_total=48 * GIB, name="Fake L20")
    pool.start_gpu_node(
        gpus,
        VOICEPOOL_DEVICES=f"{FIRST},{SECOND}",
        VOICEPOOL_SLOTS="1",
        VOICEPOOL_SLOTS_BY_DEVICE=f"{SECOND}=2",
    )
    wait_for(lambda: DeviceSlot.objects.filter(ready=True).count() == 3, what="three ready slots")
    found = Device.objects.order_by("name").values_list(
        "name", "node_name", "kind", "model_name", "engine", "slots", "memory_total_bytes"
    )
    assert list(found) == [
        (FIRST, "node-a", "gpu", "Fake RTX 4090", "simulated", 1, 24 * GIB),
        (SECOND, "node-a", "gpu", "Fake L20", "simulated", 2, 48 * GIB),
    ]
    # Each engine sees its own card alone.
    for slot in DeviceSlot.objects.select_related("device"):
        assert slot.engine_pid
        seen = psutil.Process(slot.engine_pid).environ()["CUDA_VISIBLE_DEVICES"]
        assert seen == slot.device.name


def test_a_host_whose_driver_does_not_answer_offers_its_processor(pool: Pool, gpus: FakeGpus) -> None:
    gpus.change_driver(driver_error=9)
    pool.start_gpu_node(gpus)
    wait_for(lambda: ready_device_count() == 1, what="a ready device")
    assert list(Device.objects.values_list("name", "kind")) == [("cpu:0@node-a", "cpu")]
    sample = wait_for(lambda: DeviceSample.objects.order_by("-pk").first(), what="a sample")
    assert sample.memory_used_bytes is not None
    assert sample.temperature_c is None
    wait_for(lambda: (device("cpu:0@node-a").memory_used_bytes or 0) > 20_000_000, what="the workers' memory")


def test_a_node_that_is_limited_to_missing_gpus_says_so_and_ends(pool: Pool, gpus: FakeGpus) -> None:
    agent = pool.start_gpu_node(gpus, VOICEPOOL_DEVICES="GPU-missing")
    assert agent.wait(30) != 0
    assert not Device.objects.exists()


def test_figures_are_sampled_and_what_a_card_does_not_tell_is_left_open(pool: Pool, gpus: FakeGpus) -> None:
    gpus.change(SECOND, temperature=None, power_mw=None, ecc_errors=None, utilisation=None)
    pool.start_gpu_node(gpus)
    wait_for(lambda: DeviceSample.objects.filter(device__name=SECOND).count() >= 2, what="samples of both")
    gpus.change(FIRST, memory_used=5 * GIB, temperature=71, power_mw=310_000, utilisation=97)
    wait_for(lambda: device(FIRST).temperature_c == 71, what="the new figures")
    first, second = device(FIRST), device(SECOND)
    assert (first.memory_used_bytes, first.memory_free_bytes) == (5 * GIB, 19 * GIB)
    assert (first.power_mw, first.utilisation_percent) == (310_000, 97)
    assert (second.memory_used_bytes, second.temperature_c, second.power_mw) == (1 * GIB, None, None)
    assert second.utilisation_percent is None
    assert DeviceSample.objects.filter(device=first, temperature_c=71, ecc_errors=0).exists()
    assert not DeviceSample.objects.filter(device=second, ecc_errors__isnull=False).exists()


def test_a_device_whose_memory_others_hold_gets_no_worker_until_it_is_free(
    pool: Pool, gpus: FakeGpus
) -> None:
    gpus.change(FIRST, memory_used=20 * GIB)
    agent = pool.start_gpu_node(
        gpus, VOICEPOOL_MINIMUM_FREE_MEMORY_BYTES=str(5 * GIB), VOICEPOOL_SLOTS_BY_DEVICE=f"{SECOND}=2"
    )
    # The second has 23 GiB free: enough for both of its workers, one after the other.
    wait_for(lambda: DeviceSlot.objects.filter(device__name=SECOND, ready=True).count() == 2, what="slots")
    wait_for(lambda: device(FIRST).state_reason == "memory_low", what="the reason")
    assert device(FIRST).state == "starting"
    assert running_workers(agent.pid, FIRST) == []
    gpus.change(FIRST, memory_used=1 * GIB)
    wait_for(is_state(FIRST, "ready"), what="the device to take work")
    assert device(FIRST).state_reason == ""


def test_a_fault_of_the_card_takes_it_out_and_a_fault_of_a_program_does_not(
    pool: Pool, gpus: FakeGpus, submit: Submit
) -> None:
    agent = pool.start_gpu_node(gpus)
    pool.start_clock()
    wait_for(lambda: ready_device_count() == 2, what="two ready devices")
    # Program errors first: had they counted, the first would be out before the second is.
    for xid in (13, 31, 43, 45, 68, 109):
        gpus.report_xid(FIRST, xid)
    gpus.report_xid(SECOND, 79)
    wait_for(is_state(SECOND, "quarantined"), what="the quarantine")
    assert device(SECOND).state_reason == "xid_79"
    kinds = list(DeviceEvent.objects.filter(device__name=SECOND).values_list("kind", "detail"))
    assert ("hardware_fault", "xid_79") in kinds
    assert ("quarantined", "xid_79") in kinds
    wait_for(lambda: running_workers(agent.pid, SECOND) == [], what="the end of its worker")
    assert device(FIRST).state in ("ready", "busy")
    assert not DeviceEvent.objects.filter(device__name=FIRST, kind="hardware_fault").exists()
    assert ended(submit("The other one speaks.")).state == JobState.SUCCEEDED
    assert Attempt.objects.get().device.name == FIRST


def test_memory_errors_that_cannot_be_corrected_take_the_card_out(pool: Pool, gpus: FakeGpus) -> None:
    gpus.change(FIRST, ecc_errors=3)  # of long ago
    pool.start_gpu_node(gpus)
    wait_for(lambda: ready_device_count() == 2, what="two ready devices")
    gpus.change(FIRST, ecc_errors=4)
    gpus.report_double_bit_error(SECOND)
    for name in (FIRST, SECOND):
        wait_for(is_state(name, "quarantined"), what=f"the quarantine of {name}")
        assert device(name).state_reason == "ecc_uncorrected"


def test_a_card_that_fell_off_its_bus_is_taken_out_and_the_agent_lives(pool: Pool, gpus: FakeGpus) -> None:
    agent = pool.start_gpu_node(gpus)
    wait_for(lambda: ready_device_count() == 2, what="two ready devices")
    gpus.take_out(FIRST)
    wait_for(is_state(FIRST, "quarantined"), what="the quarantine")
    assert device(FIRST).state_reason == "nvml_lost"
    wait_for(lambda: device(FIRST).memory_used_bytes is None, what="no figures any more")
    before = device(SECOND).heartbeat_at
    wait_for(lambda: device(SECOND).heartbeat_at != before, what="a heartbeat")
    assert device(SECOND).state == "ready"
    assert agent.poll() is None


@pytest.mark.parametrize("trouble", [{"driver_error": NVML_UNKNOWN}, {"hangs": True}], ids=["error", "hang"])
def test_a_driver_that_no_longer_answers_takes_all_its_cards_out_and_the_agent_lives(
    pool: Pool, gpus: FakeGpus, trouble: dict[str, object]
) -> None:
    agent = pool.start_gpu_node(gpus, VOICEPOOL_NVML_STUCK_S="4")
    wait_for(lambda: ready_device_count() == 2, what="two ready devices")
    gpus.change_driver(**trouble)
    for name in (FIRST, SECOND):
        wait_for(is_state(name, "quarantined"), what=f"the quarantine of {name}")
        assert device(name).state_reason == "nvml_lost"
    before = device(FIRST).heartbeat_at
    wait_for(lambda: device(FIRST).heartbeat_at != before, what="a heartbeat")
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(20) == 0
    # The stop of the host changes nothing about the quarantine.
    assert {name: device(name).state for name in (FIRST, SECOND)} == dict.fromkeys(
        (FIRST, SECOND), "quarantined"
    )


def test_a_second_agent_of_the_same_host_takes_over_and_the_first_ends(pool: Pool, gpus: FakeGpus) -> None:
    first = pool.start_gpu_node(gpus)
    wait_for(lambda: ready_device_count() == 2, what="two ready devices")
    epoch = device(FIRST).epoch
    pool.start_gpu_node(gpus)
    assert first.wait(30) == 0
    wait_for(
        lambda: ready_device_count() == 2 and device(FIRST).epoch == epoch + 1, what="the second's devices"
    )


def test_the_loss_of_a_host_with_gpus_loses_nothing(
    pool: Pool, submit: Submit, voice: Voice, tmp_path: Path
) -> None:
    here = FakeGpus(tmp_path / "here.json", uuids=[FIRST, SECOND])
    there = FakeGpus(tmp_path / "there.json", uuids=[THIRD])
    lost = pool.start_gpu_node(here, name="node-a", engine_settings=SLOW)
    pool.start_gpu_node(there, name="node-b", engine_settings=SLOW)
    pool.start_clock()
    wait_for(lambda: ready_device_count() == 3, what="three ready devices")
    jobs = [submit(f"Sentence number {number}, long enough for its host to be lost.") for number in range(5)]
    wait_for(
        lambda: Attempt.objects.filter(state="running", device__node_name="node-a").count() == 2,
        what="both devices of the host to speak",
    )
    interrupted = list(Attempt.objects.filter(state="running", device__node_name="node-a"))
    lost.kill()
    for job in jobs:
        assert ended(job).state == JobState.SUCCEEDED
        assert_right_audio(job, voice)
        assert Attempt.objects.filter(job=job, state="succeeded").count() == 1
    for attempt in interrupted:
        attempt.refresh_from_db()
        assert (attempt.state, attempt.error_code) == ("lost", "worker_lost")
    for name in (FIRST, SECOND):
        wait_for(is_state(name, "stopped"), what=f"{name} to be stopped")
        assert device(name).state_reason == "agent_silent"
    assert device(THIRD).state in ("ready", "busy")
    assert_books_balance()
