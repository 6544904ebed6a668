"""When an engine is due to be recycled, what a test sentence proves, and how many slots recycle at once."""

from __future__ import annotations

from array import array
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pool.conftest import make_device
from tts.canary import fault_in
from tts.engine.capabilities import Capabilities
from tts.models import Device, DeviceEvent, DeviceSlot
from tts.recycling import EngineAge, Limits, Window
from tts.services import slots
from tts.services.health import drain_device, quarantine_device, release_device, resume_device

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
GIGABYTE = 1_000_000_000


def aged(*, segments: int = 0, age_s: float = 0, growth: int = 1_500_000_000, window: str = "") -> EngineAge:
    limits = Limits(segments=segments, age_s=age_s, memory_growth_bytes=growth, window=Window.parse(window))
    return EngineAge(limits=limits, started_at=NOON)


def test_an_engine_is_due_after_its_segments_or_its_hours_and_never_for_a_limit_of_zero() -> None:
    engine = aged(segments=3, age_s=3600)
    assert engine.due(NOON) == ""
    engine.segments = 2
    assert engine.due(NOON + timedelta(seconds=3599)) == ""
    assert engine.due(NOON + timedelta(seconds=3600)) == "1.0 hours"
    engine.segments = 3
    assert engine.due(NOON) == "3 segments"
    never = aged()
    never.segments = 10**9
    assert never.due(NOON + timedelta(days=1000)) == ""


@pytest.mark.parametrize(
    ("warm", "limit"), [(2 * GIGABYTE, 2 * GIGABYTE + 1_500_000_000), (20 * GIGABYTE, 23 * GIGABYTE)]
)
def test_memory_growth_counts_on_three_idle_looks_in_a_row(warm: int, limit: int) -> None:
    engine = aged()
    engine.look({"memory_bytes": warm, "device_memory_bytes": None})
    for held in (limit + 1, limit + 1, limit, limit + 1, limit + 1):
        engine.look({"memory_bytes": held, "device_memory_bytes": None})
        assert engine.due(NOON) == ""
    engine.look({"memory_bytes": limit + 1, "device_memory_bytes": None})
    assert engine.due(NOON) == "memory growth"
    assert engine.memory_text() == f"memory {(limit + 1) / 1e6:.0f} MB, {warm / 1e6:.0f} MB when warm"


def test_a_devices_own_memory_counts_as_the_hosts_does() -> None:
    engine = aged(growth=500)
    engine.look({"memory_bytes": 1000, "device_memory_bytes": 1000})
    for _ in range(3):
        engine.look({"memory_bytes": 1000, "device_memory_bytes": 1501})
    assert engine.due(NOON) == "memory growth"


def test_a_nightly_window_recycles_each_engine_once_a_night() -> None:
    engine = aged(window="03:00-04:00")
    night = NOON.replace(hour=3) + timedelta(days=1)
    assert engine.due(NOON) == ""
    assert engine.due(night - timedelta(seconds=1)) == ""
    assert engine.due(night) == "nightly window"
    assert engine.due(night + timedelta(hours=1)) == ""
    engine.started_at = night + timedelta(minutes=1)
    assert engine.due(night + timedelta(minutes=30)) == ""
    assert engine.due(night + timedelta(days=1)) == "nightly window"


def test_a_window_may_go_over_midnight_and_must_not_be_nonsense() -> None:
    window = Window.parse("23:30 - 01:00")
    assert window is not None
    assert window.opened_at(NOON) is None
    opened = NOON.replace(hour=23, minute=30)
    assert window.opened_at(opened) == opened
    assert window.opened_at(opened + timedelta(minutes=89)) == opened
    assert window.opened_at(opened + timedelta(minutes=90)) is None
    assert Window.parse("") is None
    for nonsense in ("03:00", "3-4", "03:00-03:00", "at night"):
        with pytest.raises(ValueError, match=r"."):
            Window.parse(nonsense)


def test_limits_are_moved_by_at_most_a_fifth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICEPOOL_RECYCLE_AFTER_SEGMENTS", "1000")
    monkeypatch.setenv("VOICEPOOL_RECYCLE_AFTER_HOURS", "10")
    drawn = [Limits.from_environment() for _ in range(200)]
    assert all(800 <= limits.segments <= 1200 and 28_800 <= limits.age_s <= 43_200 for limits in drawn)
    assert len({limits.segments for limits in drawn}) > 100
    assert drawn[0].memory_growth_bytes == 1_500_000_000
    for setting, drawn_segments in (("1", 1), ("0", 0)):
        monkeypatch.setenv("VOICEPOOL_RECYCLE_AFTER_SEGMENTS", setting)
        assert {Limits.from_environment().segments for _ in range(50)} == {drawn_segments}


def pcm(samples: list[int]) -> bytes:
    return array("h", samples).tobytes()


@pytest.mark.parametrize(
    ("sound", "audio_ms", "fault"),
    [
        (pcm([0, 5000, -5000, 200] * 100), 500, ""),
        (pcm([0, 99, -99] * 100), 500, "silence"),
        (pcm([32767, -32768] * 100), 500, "noise at full scale"),
        (pcm([5000] * 10), 99, "99 ms of audio"),
        (pcm([5000] * 10), 8001, "8001 ms of audio"),
        (pcm([5000] * 10) + b"\0", 500, "half a sample"),
    ],
)
def test_a_test_sentence_is_listened_to(sound: bytes, audio_ms: int, fault: str) -> None:
    assert fault_in(sound, audio_ms=audio_ms, shortest_ms=100, longest_ms=8000) == fault


@given(st.lists(st.integers(-32768, 32767), min_size=10), st.integers(100, 8000))
def test_what_is_too_soft_is_always_found(samples: list[int], audio_ms: int) -> None:
    soft = [sample % 100 for sample in samples]
    assert fault_in(pcm(soft), audio_ms=audio_ms, shortest_ms=100, longest_ms=8000) == "silence"


def slot_of(device: Device, number: int = 0) -> dict[str, int]:
    return {"device_id": device.pk, "epoch": device.epoch, "slot_number": number}


@pytest.mark.django_db
def test_at_most_a_tenth_of_the_pools_slots_recycle_at_once_though_always_one() -> None:
    small = make_device("cpu:0@small", slots=2)
    assert slots.begin_recycling(**slot_of(small))
    assert not slots.begin_recycling(**slot_of(small, 1))
    assert not slots.begin_recycling(**slot_of(small))
    large = make_device("cpu:0@large", slots=18)
    assert slots.begin_recycling(**slot_of(large))
    assert not slots.begin_recycling(**slot_of(large, 1))
    slots.end_recycling(**slot_of(small), detail="5 segments; memory 9 MB, 8 MB when warm")
    assert slots.begin_recycling(**slot_of(large, 1))
    small.refresh_from_db()
    large.refresh_from_db()
    assert (small.recycles, large.recycles) == (1, 0)
    event = DeviceEvent.objects.get(kind="recycled")
    assert (event.device, event.slot_number, event.detail) == (
        small,
        0,
        "5 segments; memory 9 MB, 8 MB when warm",
    )


@pytest.mark.django_db
def test_the_mark_of_a_worker_that_died_recycling_expires() -> None:
    device = make_device(slots=2)
    assert slots.begin_recycling(**slot_of(device))
    DeviceSlot.objects.filter(number=0).update(recycling_since=NOON - timedelta(days=365))
    assert slots.begin_recycling(**slot_of(device, 1))


@pytest.mark.django_db
def test_a_quarantined_devices_slots_are_nobodys_until_a_worker_has_proven_itself() -> None:
    device = make_device()
    address = {"device_id": device.pk, "epoch": device.epoch}
    quarantine_device(**address, reason="sick")
    view = slots.slot_heartbeat(**slot_of(device), worker_name="test", ready=True)
    assert view is not None
    assert (view.owned, view.state, view.may_work) == (False, "quarantined", False)
    # A worker that comes up meanwhile has proven nothing that lasts.
    assert slots.slot_ready(
        **slot_of(device), worker_name="test", worker_pid=1, engine_pid=1, engine_version="1"
    )
    assert release_device(**address, reason="looked at")
    view = slots.slot_heartbeat(**slot_of(device), worker_name="test", ready=True)
    assert view is not None
    assert (view.owned, view.state, view.may_work) == (False, "starting", True)
    assert not DeviceSlot.objects.get().ready
    assert slots.slot_ready(
        **slot_of(device), worker_name="test", worker_pid=1, engine_pid=1, engine_version="1"
    )
    device.refresh_from_db()
    assert device.state == "ready"
    assert DeviceSlot.objects.get().ready
    assert slots.slot_heartbeat(**{**slot_of(device), "epoch": 0}, worker_name="test", ready=True) is None


@pytest.mark.django_db
def test_a_draining_devices_heartbeats_do_not_offer_its_slots_and_the_resume_does() -> None:
    device = make_device()
    address = {"device_id": device.pk, "epoch": device.epoch}
    drain_device(**address)
    Device.objects.update(state="draining")
    view = slots.slot_heartbeat(**slot_of(device), worker_name="test", ready=True)
    assert view is not None
    assert (view.owned, view.may_work) == (True, False)
    assert not DeviceSlot.objects.get().ready
    assert resume_device(**address)
    slots.slot_heartbeat(**slot_of(device), worker_name="test", ready=True)
    device.refresh_from_db()
    assert device.state == "ready"
    assert DeviceSlot.objects.get().ready


@pytest.mark.django_db
def test_the_last_slot_that_changes_over_makes_the_wanted_engine_the_devices() -> None:
    device = make_device(slots=2)
    Device.objects.update(wanted_engine="simulated-b", engine="simulated")
    ready = {
        "worker_name": "w",
        "worker_pid": 1,
        "engine_pid": 1,
        "engine_version": "2",
        "engine": "simulated-b",
        "capabilities": Capabilities(languages=("zh", "en")),
    }
    slots.slot_ready(**slot_of(device), **ready)
    device.refresh_from_db()
    assert device.engine == "simulated"
    slots.slot_ready(**slot_of(device, 1), **ready)
    device.refresh_from_db()
    assert (device.engine, device.engine_version, device.languages) == ("simulated-b", "2", ["zh", "en"])
    assert DeviceEvent.objects.get(kind="swapped").detail == "simulated to simulated-b 2"
    # It outlives a restart of the host, which finds the first engine in its settings.
    assert make_device(slots=2, ready=False).engine == "simulated-b"


@pytest.mark.django_db
def test_a_failed_swap_leaves_the_device_its_engine_and_is_told_once() -> None:
    device = make_device(slots=2)
    Device.objects.update(wanted_engine="simulated-b", engine="simulated")
    for number in (0, 1):
        slots.swap_failed(**slot_of(device, number), engine="simulated-b", detail="EngineDied: it ended")
    device.refresh_from_db()
    assert (device.engine, device.wanted_engine) == ("simulated", "simulated")
    assert DeviceEvent.objects.get(kind="swap_failed").detail == "simulated-b: EngineDied: it ended"
