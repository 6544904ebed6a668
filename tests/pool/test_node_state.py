"""What an agent notes about its devices, and how its settings are read."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.models.functions import Now

from tests.pool.conftest import Submit, make_device
from tests.pool.processes import Pool, wait_for
from tests.pool.test_telemetry import minute_ago, sample
from tts.models import Attempt, Device, DeviceSample, DeviceSlot, Resolution
from tts.node.settings import NodeSettings
from tts.services.bind import bind_next
from tts.services.claiming import claim_attempt
from tts.services.node_state import expire_leases, note_memory, stop_missing_devices
from tts.services.sweep import sweep
from tts.states import DeviceState


def test_what_a_dead_worker_spoke_is_taken_at_the_next_sweep(submit: Submit) -> None:
    device = make_device()
    slot = DeviceSlot.objects.select_related("device").get()
    submit()
    attempt = Attempt.objects.filter(device=device).first()
    if attempt is None:
        bind_next(slot=slot)
        attempt = Attempt.objects.get(device=device)
    place = {"device_id": device.pk, "epoch": device.epoch, "slot_number": 0}
    # Bound and not started: the next worker of the slot finds it in its queue.
    assert expire_leases(**place) == 0
    claim_attempt(attempt_id=attempt.pk)
    assert expire_leases(**{**place, "slot_number": 1}) == 0
    assert expire_leases(**{**place, "epoch": device.epoch + 1}) == 0
    assert not Attempt.objects.filter(leased_until__lt=Now()).exists()
    assert expire_leases(**place) == 1
    sweep()
    attempt.refresh_from_db()
    assert (attempt.state, attempt.error_code) == ("lost", "worker_lost")


@pytest.mark.django_db
def test_only_a_starting_device_says_that_its_memory_is_low() -> None:
    starting, ready = make_device("cpu:0@a", ready=False), make_device("cpu:0@b")
    for device in (starting, ready):
        note_memory(device_id=device.pk, epoch=device.epoch, low=True)
        device.refresh_from_db()
    assert (starting.state, starting.state_reason) == ("starting", "memory_low")
    assert (ready.state, ready.state_reason) == ("ready", "")
    note_memory(device_id=starting.pk, epoch=starting.epoch - 1, low=False)
    starting.refresh_from_db()
    assert starting.state_reason == "memory_low"
    note_memory(device_id=starting.pk, epoch=starting.epoch, low=False)
    starting.refresh_from_db()
    assert starting.state_reason == ""


@pytest.mark.django_db
def test_devices_that_a_node_no_longer_offers_are_stopped_and_a_quarantine_stays() -> None:
    gone, sick, here = (make_device(name) for name in ("GPU-gone", "GPU-sick", "GPU-here"))
    elsewhere = make_device("GPU-elsewhere")
    Device.objects.filter(pk=elsewhere.pk).update(node_name="there")
    Device.objects.filter(pk=sick.pk).update(state=DeviceState.QUARANTINED, state_reason="xid_79")
    assert stop_missing_devices(node_name="here", found=[here.name]) == 1
    states = dict(Device.objects.values_list("name", "state_reason"))
    assert states == {"GPU-gone": "not_found", "GPU-sick": "xid_79", "GPU-here": "", "GPU-elsewhere": ""}
    assert Device.objects.get(pk=gone.pk).state == "stopped"
    assert not DeviceSlot.objects.get(device=gone).ready
    assert DeviceSlot.objects.get(device=elsewhere).ready


def test_the_clock_rolls_telemetry_up(pool: Pool) -> None:
    device = make_device()
    sample(device, minute_ago(3), used=10)
    sample(device, minute_ago(200), used=20)
    pool.start_clock()
    minutes = DeviceSample.objects.filter(resolution=Resolution.MINUTE)
    wait_for(lambda: minutes.count() == 2, what="the minutes")
    wait_for(
        lambda: DeviceSample.objects.filter(resolution=Resolution.SAMPLE).count() == 1,
        what="the old one gone",
    )


def test_the_nodes_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICEPOOL_NODE", "rack-3")
    monkeypatch.setenv("VOICEPOOL_SLOTS", "2")
    monkeypatch.setenv("VOICEPOOL_SLOTS_BY_DEVICE", "GPU-a=4, GPU-b=1")
    monkeypatch.setenv("VOICEPOOL_DEVICES", "GPU-a,GPU-b,GPU-c")
    read = NodeSettings.from_environment()
    assert read.node_name == "rack-3"
    assert [read.slots_of(name) for name in ("GPU-a", "GPU-b", "GPU-c")] == [4, 1, 2]
    assert read.devices == {"GPU-a", "GPU-b", "GPU-c"}
    assert read.minimum_free_of("an engine that does not say") == 5_000_000_000
    assert read.minimum_free_of("simulated") == 50_000_000
    monkeypatch.setenv("VOICEPOOL_MINIMUM_FREE_MEMORY_BYTES", "7")
    assert NodeSettings.from_environment().minimum_free_of("simulated") == 7


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("VOICEPOOL_SLOTS", "many"),
        ("VOICEPOOL_SLOTS", "0"),
        ("VOICEPOOL_SLOTS", "17"),
        ("VOICEPOOL_SLOTS_BY_DEVICE", "GPU-a"),
        ("VOICEPOOL_SLOTS_BY_DEVICE", "GPU-a=x"),
        ("VOICEPOOL_MINIMUM_FREE_MEMORY_BYTES", "5 GB"),
    ],
)
def test_a_malformed_setting_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ImproperlyConfigured, match=variable):
        NodeSettings.from_environment()
