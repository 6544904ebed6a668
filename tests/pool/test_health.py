"""Strikes, quarantine, drain: what the pool does with a device that is sick or wanted by an operator."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Workspace
from billing.models import UsageRecord
from tests.pool.conftest import Submit, make_device
from tests.pool.test_attempts import WELCOME_MICROS, account, assert_books_balance, claim_next, spoken
from tts.models import Attempt, Device, DeviceEvent, DeviceSlot, Segment
from tts.services import health
from tts.services.attempts import finish_attempt
from tts.services.bind import bind_next
from tts.services.sweep import sweep


def events(device: Device) -> list[tuple[str, str]]:
    return list(DeviceEvent.objects.filter(device=device).order_by("id").values_list("kind", "detail"))


def strike(device: Device, detail: str = "engine_died") -> bool:
    return health.strike(
        device_id=device.pk, epoch=device.epoch, slot_number=0, detail=detail, attempt_id=None
    )


def kinds(device: Device) -> list[str]:
    return [kind for kind, _ in events(device)]


def test_the_third_strike_in_ten_minutes_quarantines_the_device_and_takes_its_waiting_work_back(
    submit: Submit, workspace: Workspace
) -> None:
    device = make_device()
    job = submit()
    assert Attempt.objects.get().state == "bound"
    assert [strike(device), strike(device)] == [False, False]
    device.refresh_from_db()
    assert device.state == "ready"
    assert strike(device)
    device.refresh_from_db()
    assert (device.state, device.state_reason) == ("quarantined", "3 strikes in 10 minutes")
    slot = DeviceSlot.objects.get()
    assert (slot.ready, slot.worker_name, slot.attempt_id) == (False, "", None)
    attempt = Attempt.objects.get()
    assert (attempt.state, attempt.error_code, attempt.started_at) == ("lost", "taken_back", None)
    assert Segment.objects.get(job=job).state == "queued"
    assert bind_next(slot=slot) is None
    assert account(workspace) == (WELCOME_MICROS - job.held_micros, job.held_micros)
    assert not UsageRecord.objects.exists()
    # What comes later finds the device out already.
    assert not strike(device)
    assert kinds(device).count("quarantined") == 1
    assert_books_balance()


@pytest.mark.django_db
def test_strikes_that_are_old_or_before_the_release_or_of_an_older_incarnation_do_not_count() -> None:
    device = make_device()
    strike(device)
    strike(device)
    DeviceEvent.objects.filter(kind="strike").update(created_at=timezone.now() - timedelta(minutes=11))
    assert not strike(device)
    assert not strike(device)
    assert health.quarantine_device(device_id=device.pk, epoch=device.epoch, reason="by hand")
    assert health.release_device(device_id=device.pk, epoch=device.epoch, reason="looked at")
    assert not strike(device)
    assert not health.strike(
        device_id=device.pk, epoch=device.epoch - 1, slot_number=0, detail="late", attempt_id=None
    )
    assert ("strike", "late") not in events(device)
    device.refresh_from_db()
    assert device.state == "starting"


@pytest.mark.django_db
def test_quarantine_and_release_happen_once_and_only_to_the_incarnation_that_was_meant() -> None:
    device = make_device()
    meant = {"device_id": device.pk, "epoch": device.epoch}
    stale = {"device_id": device.pk, "epoch": device.epoch - 1}
    assert not health.quarantine_device(**stale, reason="stale")
    assert not health.release_device(**meant, reason="not quarantined")
    assert health.quarantine_device(**meant, reason="first")
    assert not health.quarantine_device(**meant, reason="second")
    assert not health.release_device(**stale, reason="stale")
    assert health.release_device(**meant, reason="tested")
    assert not health.release_device(**meant, reason="again")
    device.refresh_from_db()
    assert (device.state, device.state_reason) == ("starting", "")
    assert [event for event in events(device) if event[0] in ("quarantined", "released")] == [
        ("quarantined", "first"),
        ("released", "tested"),
    ]


def test_a_drained_device_gives_back_what_it_has_not_started_and_another_takes_it(submit: Submit) -> None:
    device = make_device("cpu:0@one")
    job = submit()
    assert Attempt.objects.get(job=job).device == device
    other = make_device("cpu:0@two")
    assert health.drain_device(device_id=device.pk, epoch=device.epoch)
    device.refresh_from_db()
    assert (device.state, device.state_reason) == ("stopped", "drained")
    assert device.drained_at is not None
    states = list(Attempt.objects.order_by("attempt_number").values_list("device_id", "state", "error_code"))
    assert states == [(device.pk, "lost", "taken_back"), (other.pk, "bound", "")]
    assert not health.drain_device(device_id=device.pk, epoch=device.epoch)
    assert kinds(device).count("drained") == 1


def test_a_drained_device_ends_what_it_speaks_and_takes_nothing_more(submit: Submit) -> None:
    device = make_device()
    submit()
    work = claim_next()
    waiting = submit()
    assert health.drain_device(device_id=device.pk, epoch=device.epoch)
    device.refresh_from_db()
    assert device.state == "draining"
    sweep()
    device.refresh_from_db()
    assert device.state == "draining"
    finish_attempt(work=work, outcome=spoken(work))
    sweep()
    device.refresh_from_db()
    assert (device.state, device.state_reason) == ("stopped", "drained")
    assert not Attempt.objects.filter(job=waiting).exists()
    # A restart of its host changes nothing about that; the resume does.
    again = make_device(ready=False)
    assert (again.state, again.state_reason, again.epoch) == ("stopped", "drained", device.epoch + 1)
    assert not health.resume_device(device_id=device.pk, epoch=device.epoch)
    assert health.resume_device(device_id=device.pk, epoch=again.epoch)
    again.refresh_from_db()
    assert (again.state, again.drained_at) == ("starting", None)
    assert not health.resume_device(device_id=device.pk, epoch=again.epoch)


@pytest.mark.django_db
def test_a_device_that_is_both_quarantined_and_drained_comes_back_only_when_both_are_over() -> None:
    device = make_device()
    address = {"device_id": device.pk, "epoch": device.epoch}
    health.quarantine_device(**address, reason="sick")
    assert health.drain_device(**address)
    device.refresh_from_db()
    assert device.state == "quarantined"
    health.release_device(**address, reason="well")
    device.refresh_from_db()
    assert (device.state, device.state_reason) == ("stopped", "drained")
    health.quarantine_device(**address, reason="sick again")
    assert health.resume_device(**address)
    device.refresh_from_db()
    assert device.state == "quarantined"
