"""Telemetry: stored by the database's clock, rolled up once for each bucket, deleted when old."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from portal.lib.clock import database_now
from tests.pool.conftest import make_device
from tts.models import Device, DeviceSample, Resolution
from tts.selectors.telemetry import series
from tts.services import telemetry
from tts.services.telemetry import (
    DeviceAddress,
    DeviceReading,
    TelemetryUpkeep,
    delete_old,
    roll_up_hours,
    roll_up_minutes,
    store_readings,
)

pytestmark = pytest.mark.django_db


def minute_ago(minutes: int) -> datetime:
    """The beginning of the minute that was so many minutes before this one, by the database's clock."""
    return database_now().astimezone(UTC).replace(second=0, microsecond=0) - timedelta(minutes=minutes)


def sample(
    device: Device,
    taken_at: datetime,
    *,
    used: int | None = 100,
    utilisation: float | None = 50,
    resolution: Resolution = Resolution.SAMPLE,
    ecc: int | None = 0,
) -> DeviceSample:
    return DeviceSample.objects.create(
        device=device,
        resolution=resolution,
        taken_at=taken_at,
        memory_used_bytes=used,
        memory_used_max_bytes=used,
        utilisation_percent=utilisation,
        temperature_c=40,
        power_mw=1000,
        ecc_errors=ecc,
    )


def rows(device: Device, resolution: Resolution) -> list[tuple[object, ...]]:
    return list(
        DeviceSample.objects.filter(device=device, resolution=resolution)
        .order_by("taken_at")
        .values_list(
            "taken_at", "memory_used_bytes", "memory_used_max_bytes", "utilisation_percent", "ecc_errors"
        )
    )


def test_a_reading_becomes_a_sample_and_the_devices_latest_figures() -> None:
    device = make_device()
    reading = DeviceReading(
        taken_monotonic_s=time.monotonic() - 30,
        memory_total_bytes=1000,
        memory_used_bytes=400,
        memory_free_bytes=600,
        utilisation_percent=12.6,
        temperature_c=61,
        power_mw=250_000,
        ecc_errors=2,
    )
    stored = store_readings([(DeviceAddress(device_id=device.pk, epoch=device.epoch), reading)])
    assert stored == 1
    device.refresh_from_db()
    assert (device.memory_total_bytes, device.memory_used_bytes, device.memory_free_bytes) == (1000, 400, 600)
    assert (device.utilisation_percent, device.temperature_c, device.power_mw) == (13, 61, 250_000)
    kept = DeviceSample.objects.get()
    assert (kept.resolution, kept.memory_used_bytes, kept.memory_used_max_bytes) == ("sample", 400, 400)
    assert (kept.utilisation_percent, kept.temperature_c, kept.power_mw, kept.ecc_errors) == (
        12.6,
        61,
        250_000,
        2,
    )
    # Taken half a minute before it was stored, and said to be.
    assert timedelta(seconds=29) < database_now() - kept.taken_at < timedelta(seconds=60)


def test_an_older_incarnation_stores_nothing() -> None:
    device = make_device()
    reading = DeviceReading(taken_monotonic_s=time.monotonic(), memory_used_bytes=400)
    assert store_readings([(DeviceAddress(device_id=device.pk, epoch=device.epoch - 1), reading)]) == 0
    device.refresh_from_db()
    assert device.memory_used_bytes is None
    assert not DeviceSample.objects.exists()


def test_minutes_are_the_means_of_their_samples_and_written_once() -> None:
    device, other = make_device("cpu:0@a"), make_device("cpu:0@b")
    minute = minute_ago(2)
    for second, used, utilisation in ((0, 100, 10), (20, 200, 20), (59, 600, None)):
        sample(device, minute + timedelta(seconds=second), used=used, utilisation=utilisation, ecc=second)
    sample(other, minute, used=7, utilisation=None, ecc=None)
    sample(device, minute_ago(0), used=9999)  # its minute is not over
    assert roll_up_minutes() == 2
    assert rows(device, Resolution.MINUTE) == [(minute, 300, 600, 15.0, 59)]
    assert rows(other, Resolution.MINUTE) == [(minute, 7, 7, None, None)]
    assert roll_up_minutes() == 0
    assert DeviceSample.objects.filter(resolution=Resolution.MINUTE).count() == 2


def test_a_late_sample_changes_its_minute() -> None:
    device = make_device()
    minute = minute_ago(2)
    sample(device, minute, used=100)
    roll_up_minutes()
    sample(device, minute + timedelta(seconds=10), used=300)
    assert roll_up_minutes() == 1
    assert rows(device, Resolution.MINUTE) == [(minute, 200, 300, 50.0, 0)]


def test_minutes_that_no_clock_rolled_up_are_caught_up() -> None:
    device = make_device()
    sample(device, minute_ago(90), used=1)
    roll_up_minutes()
    sample(device, minute_ago(60), used=2)
    sample(device, minute_ago(30), used=3)
    assert roll_up_minutes() == 2
    assert [row[1] for row in rows(device, Resolution.MINUTE)] == [1, 2, 3]


def test_a_minute_whose_samples_are_gone_keeps_what_it_was() -> None:
    device = make_device()
    old = minute_ago(125)
    sample(device, old, used=500, resolution=Resolution.MINUTE)
    sample(device, old + timedelta(seconds=30), used=1)  # a host that slept brings it now
    roll_up_minutes(window=timedelta(hours=3))
    assert rows(device, Resolution.MINUTE) == [(old, 500, 500, 50.0, 0)]


def test_hours_are_made_of_minutes() -> None:
    device = make_device()
    hour = minute_ago(0).replace(minute=0) - timedelta(hours=1)
    for minute, used in ((0, 100), (59, 300)):
        sample(device, hour + timedelta(minutes=minute), used=used, resolution=Resolution.MINUTE)
    sample(device, hour + timedelta(hours=1), used=9, resolution=Resolution.MINUTE)
    assert roll_up_hours() == 1
    assert rows(device, Resolution.HOUR) == [(hour, 200, 300, 50.0, 0)]
    assert roll_up_hours() == 0


def test_each_resolution_is_kept_for_its_time() -> None:
    device = make_device()
    ages = {
        Resolution.SAMPLE: (timedelta(minutes=119), timedelta(minutes=122)),
        Resolution.MINUTE: (timedelta(days=7, hours=23), timedelta(days=8, hours=2)),
        Resolution.HOUR: (timedelta(days=399), timedelta(days=401)),
    }
    for resolution, (young, old) in ages.items():
        sample(device, database_now() - young, resolution=resolution, used=1)
        sample(device, database_now() - old, resolution=resolution, used=2)
    assert delete_old() == 3
    assert sorted(DeviceSample.objects.values_list("resolution", "memory_used_bytes")) == [
        ("hour", 1),
        ("minute", 1),
        ("sample", 1),
    ]


def test_the_clock_rolls_up_at_its_start_and_then_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    device = make_device()
    sample(device, minute_ago(100))
    sample(device, minute_ago(125))
    upkeep, seconds = TelemetryUpkeep(), [1_000_000.0]
    monkeypatch.setattr(telemetry.time, "time", lambda: seconds[0])
    upkeep.tick()
    # The oldest went only after it had its minute.
    assert DeviceSample.objects.filter(resolution=Resolution.MINUTE).count() == 2
    assert DeviceSample.objects.filter(resolution=Resolution.SAMPLE).count() == 1
    sample(device, minute_ago(2))
    upkeep.tick()
    assert DeviceSample.objects.filter(resolution=Resolution.MINUTE).count() == 2
    seconds[0] += 60
    upkeep.tick()
    assert DeviceSample.objects.filter(resolution=Resolution.MINUTE).count() == 3


def test_a_series_is_one_devices_points_since_then_the_oldest_first() -> None:
    device, other = make_device("cpu:0@a"), make_device("cpu:0@b")
    for minutes in (5, 1, 3, 90):
        sample(device, minute_ago(minutes), used=minutes)
    sample(other, minute_ago(2))
    sample(device, minute_ago(4), resolution=Resolution.MINUTE, used=4)
    points = series(device=device, since=minute_ago(60), resolution=Resolution.SAMPLE)
    assert [(point.taken_at, point.memory_used_bytes) for point in points] == [
        (minute_ago(minutes), minutes) for minutes in (5, 3, 1)
    ]
    assert points[0].utilisation_percent == 50.0
    minutes = series(device=device, since=minute_ago(60), resolution=Resolution.MINUTE)
    assert [point.memory_used_bytes for point in minutes] == [4]
