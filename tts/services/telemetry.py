"""What devices measure: stored every two seconds, rolled up to minutes and hours, and deleted when it is old.

A roll-up is computed anew from the finer rows of its whole bucket and put in its one place, so that it may run twice,
on two hosts, and again for samples that came late.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import F

from portal.lib.clock import database_now
from tts.models import Device, DeviceSample, Resolution

# How long each resolution is kept.
SAMPLES_KEPT = timedelta(hours=2)
MINUTES_KEPT = timedelta(days=8)
HOURS_KEPT = timedelta(days=400)
# Each minute's roll-up looks this far back; the hour's looks at all samples that are kept, for those that came late.
MINUTE_WINDOW = timedelta(minutes=3)
HOUR_WINDOW = timedelta(hours=3)
# At most so many rows are deleted in one statement: a long absence of the clock must not make one long lock.
DELETED_AT_ONCE = 50_000

ROLL_UP = """
INSERT INTO tts_devicesample AS kept (device_id, resolution, taken_at, memory_used_bytes, memory_used_max_bytes,
                                      utilisation_percent, temperature_c, power_mw, ecc_errors)
SELECT device_id, %(to)s, date_trunc(%(to)s, taken_at, 'UTC'), round(avg(memory_used_bytes)),
       max(coalesce(memory_used_max_bytes, memory_used_bytes)), avg(utilisation_percent), avg(temperature_c),
       round(avg(power_mw)), max(ecc_errors)
FROM tts_devicesample
WHERE resolution = %(from)s
  AND taken_at >= date_trunc(%(to)s, %(since)s::timestamptz, 'UTC')
  AND taken_at < date_trunc(%(to)s, %(now)s::timestamptz, 'UTC')
GROUP BY 1, 2, 3
ON CONFLICT (device_id, resolution, taken_at) DO UPDATE
SET memory_used_bytes = excluded.memory_used_bytes, memory_used_max_bytes = excluded.memory_used_max_bytes,
    utilisation_percent = excluded.utilisation_percent, temperature_c = excluded.temperature_c,
    power_mw = excluded.power_mw, ecc_errors = excluded.ecc_errors
-- Of a bucket this old, finer rows may be deleted already: what was kept of it knows more.
WHERE excluded.taken_at >= %(whole_since)s
  AND (kept.memory_used_bytes, kept.memory_used_max_bytes, kept.utilisation_percent, kept.temperature_c,
       kept.power_mw, kept.ecc_errors)
      IS DISTINCT FROM (excluded.memory_used_bytes, excluded.memory_used_max_bytes, excluded.utilisation_percent,
                        excluded.temperature_c, excluded.power_mw, excluded.ecc_errors)
"""


@dataclass(frozen=True)
class DeviceReading:
    """What a device measured at one moment. None: it does not tell."""

    taken_monotonic_s: float
    """`time.monotonic()` of the host when it was read."""
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_free_bytes: int | None = None
    utilisation_percent: float | None = None
    temperature_c: int | None = None
    power_mw: int | None = None
    ecc_errors: int | None = None
    """Uncorrected memory errors since the driver was loaded."""
    throttled: bool | None = None
    """Slowed down by heat or a power brake."""


@dataclass(frozen=True)
class DeviceAddress:
    """A device in one incarnation."""

    device_id: int
    epoch: int


def store_readings(readings: Iterable[tuple[DeviceAddress, DeviceReading]]) -> int:
    """Store a sample of each reading and make it the device's latest figures; returns how many were stored.

    Times are by the database's clock, so that hosts with wrong clocks agree. A reading of an incarnation that a newer
    one has replaced is dropped, and so is one that was stored before.
    """
    now, now_monotonic = database_now(), time.monotonic()
    samples: list[DeviceSample] = []
    with transaction.atomic():
        # In one order for all agents: two that have the same devices (a restart) must not wait for each other.
        for address, reading in sorted(readings, key=lambda pair: pair[0].device_id):
            if not _show_reading(address, reading):
                continue
            samples.append(
                DeviceSample(
                    device_id=address.device_id,
                    taken_at=now - timedelta(seconds=max(0.0, now_monotonic - reading.taken_monotonic_s)),
                    memory_used_bytes=reading.memory_used_bytes,
                    memory_used_max_bytes=reading.memory_used_bytes,
                    utilisation_percent=reading.utilisation_percent,
                    temperature_c=reading.temperature_c,
                    power_mw=reading.power_mw,
                    ecc_errors=reading.ecc_errors,
                )
            )
        DeviceSample.objects.bulk_create(samples, ignore_conflicts=True)
    return len(samples)


def _show_reading(address: DeviceAddress, reading: DeviceReading) -> bool:
    """Make the reading the device's latest figures, if the incarnation is the device's."""
    utilisation = reading.utilisation_percent
    shown = Device.objects.filter(pk=address.device_id, epoch=address.epoch).update(
        memory_total_bytes=reading.memory_total_bytes
        if reading.memory_total_bytes is not None
        else F("memory_total_bytes"),
        memory_used_bytes=reading.memory_used_bytes,
        memory_free_bytes=reading.memory_free_bytes,
        utilisation_percent=round(utilisation) if utilisation is not None else None,
        temperature_c=reading.temperature_c,
        power_mw=reading.power_mw,
    )
    return shown == 1


def roll_up_minutes(*, window: timedelta = MINUTE_WINDOW) -> int:
    """Put the samples of the minutes that are over into one row each; returns how many rows were written.

    Looks back over `window`, and further where minutes are missing because no clock ran.
    """
    return _roll_up(source=Resolution.SAMPLE, target=Resolution.MINUTE, window=window, kept=SAMPLES_KEPT)


def roll_up_hours(*, window: timedelta = HOUR_WINDOW) -> int:
    """The same for the hours, from their minutes: each minute counts alike."""
    return _roll_up(source=Resolution.MINUTE, target=Resolution.HOUR, window=window, kept=MINUTES_KEPT)


def _roll_up(*, source: Resolution, target: Resolution, window: timedelta, kept: timedelta) -> int:
    now = database_now()
    newest = (
        DeviceSample.objects.filter(resolution=target)
        .order_by("-taken_at")
        .values_list("taken_at", flat=True)
        .first()
    )
    # Without any, everything that there is. Nothing finer is deleted before it was rolled up.
    since = min(newest, now - window) if newest is not None else now - kept - timedelta(days=400)
    with connection.cursor() as cursor:
        cursor.execute(
            ROLL_UP,
            {
                "from": source.value,
                "to": target.value,
                "since": since,
                "now": now,
                "whole_since": now - kept,
            },
        )
        return int(cursor.rowcount)


def delete_old() -> int:
    """Delete what is older than its resolution is kept; returns how many rows went. Call after the roll-ups."""
    now = database_now()
    # At the borders of their buckets: a bucket's finer rows go together, or stay together.
    minute_border = (now - SAMPLES_KEPT).replace(second=0, microsecond=0)
    hour_border = (now - MINUTES_KEPT).replace(minute=0, second=0, microsecond=0)
    return (
        _delete(resolution=Resolution.SAMPLE, before=minute_border)
        + _delete(resolution=Resolution.MINUTE, before=hour_border)
        + _delete(resolution=Resolution.HOUR, before=now - HOURS_KEPT)
    )


def _delete(*, resolution: Resolution, before: datetime) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM tts_devicesample WHERE id IN (
                SELECT id FROM tts_devicesample WHERE resolution = %s AND taken_at < %s ORDER BY taken_at LIMIT %s)
            """,
            [resolution.value, before, DELETED_AT_ONCE],
        )
        return int(cursor.rowcount)


class TelemetryUpkeep:
    """The clock's part: rolls up and deletes when a minute or an hour has passed, and at once after its start."""

    def __init__(self) -> None:
        self._minute = -1
        self._hour = -1

    def tick(self) -> None:
        """Do what is due. Cheap where nothing is: no question to the database."""
        minute = int(time.time()) // 60
        if minute == self._minute:
            return
        # Set first: what fails is tried again in a minute, not in a second.
        self._minute = minute
        hour = minute // 60
        if hour != self._hour:
            roll_up_minutes(window=SAMPLES_KEPT)
            roll_up_hours()
            self._hour = hour
        else:
            roll_up_minutes()
        delete_old()
