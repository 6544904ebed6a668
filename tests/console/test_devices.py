"""The pages of devices: what a card shows, which acts it offers, and what becomes of them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEntry, User
from billing.models import UsageRecord
from portal.console.device_acts import ACTS, acts_offered
from portal.console.device_cards import device_cards
from portal.console.device_page import read_device, time_account
from portal.console.selectors import DeviceRow, device_rows
from portal.lib.clock import database_now
from portal.lib.queues import redis_connection
from tests.console.rows import NOW, ago, attempt, device, job
from tts.models import (
    Device,
    DeviceCommand,
    DeviceCommandKind,
    DeviceCommandState,
    DeviceEvent,
    DeviceEventKind,
    DeviceSample,
    Resolution,
)
from tts.states import AttemptState, DeviceState, SegmentState

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    redis_connection().flushdb()


@pytest.fixture
def living() -> Device:
    return device("GPU-1", heartbeat_at=database_now())


def row_of(**fields: Any) -> DeviceRow:
    device("GPU-1", **fields)
    (row,) = device_rows(attempts=[], now=NOW)
    return row


@pytest.mark.parametrize(
    ("fields", "offered"),
    [
        ({}, ["drain", "restart_after_job", "restart_now", "swap_model", "quarantine"]),
        ({"state": DeviceState.STARTING}, ["drain", "restart_now", "quarantine"]),
        ({"state": DeviceState.DRAINING, "drained_at": NOW}, ["resume", "restart_now", "quarantine"]),
        ({"state": DeviceState.STOPPED, "drained_at": NOW, "state_reason": "drained"}, ["resume"]),
        ({"state": DeviceState.STOPPED}, []),
        ({"state": DeviceState.QUARANTINED}, ["release"]),
        ({"heartbeat_at": ago(minutes=5)}, []),
    ],
)
def test_only_acts_that_make_sense_are_offered(fields: dict[str, Any], offered: list[str]) -> None:
    assert [act.kind.value for act in acts_offered(row_of(**fields))] == offered


def test_every_act_says_what_it_will_do() -> None:
    assert set(ACTS) == set(DeviceCommandKind)
    assert all(len(str(act.consequence)) > 40 for act in ACTS.values())


def test_a_card_counts_the_strikes_of_ten_minutes_and_shows_what_was_asked(operator: User) -> None:
    one = device("GPU-1", memory_total_bytes=100, memory_used_bytes=40, utilisation_percent=7)
    for kind, age in (
        (DeviceEventKind.STRIKE, 9),
        (DeviceEventKind.STRIKE, 11),
        (DeviceEventKind.RECYCLED, 1),
    ):
        event = DeviceEvent.objects.create(device=one, epoch=3, kind=kind)
        DeviceEvent.objects.filter(pk=event.pk).update(created_at=ago(minutes=age))
    for state, finished_at in (
        (DeviceCommandState.WAITING, None),
        (DeviceCommandState.FAILED, ago(minutes=9)),
        (DeviceCommandState.DONE, ago(minutes=11)),
    ):
        DeviceCommand.objects.create(
            device=one,
            kind=DeviceCommandKind.DRAIN,
            expected_epoch=3,
            reason="Why",
            requested_by=operator,
            state=state,
            finished_at=finished_at,
        )
    DeviceCommand.objects.update(created_at=ago(minutes=12))
    DeviceSample.objects.create(
        device=one,
        resolution=Resolution.MINUTE,
        taken_at=ago(minutes=2),
        memory_used_bytes=30,
        utilisation_percent=50.5,
    )
    (card,) = device_cards(now=NOW)
    assert card.strikes == 1
    assert [(command.state, command.by) for command in card.commands] == [
        ("failed", "operator@example.com"),
        ("waiting", "operator@example.com"),
    ]
    assert card.chart.title == "Now: memory 40 %, utilisation 7.0 %"
    assert card.chart.columns[-3].text == "memory 30 %, utilisation 50 %"
    assert card.chart.columns[-2].text == "no figures"


def test_an_act_asks_for_a_reason_and_names_what_will_happen(operator_client: Client, living: Device) -> None:
    page = operator_client.get(f"/console/devices/{living.pk}/drain/?epoch=2").content.decode()
    assert str(ACTS[DeviceCommandKind.DRAIN].consequence) in page
    assert '<input type="hidden" name="epoch" value="2"' in page
    answer = operator_client.post(f"/console/devices/{living.pk}/drain/", {"reason": "  ", "epoch": "2"})
    assert "Say why: the reason goes into the audit log." in answer.content.decode()
    assert DeviceCommand.objects.count() == 0
    assert AuditEntry.objects.count() == 0


def test_an_act_becomes_a_command_for_the_incarnation_that_was_seen(
    operator: User, operator_client: Client, living: Device
) -> None:
    answer = operator_client.post(
        f"/console/devices/{living.pk}/swap_model/",
        {"reason": "A new model", "epoch": "2", "engine": "kokoro"},
        headers={"X-Request-Id": "request-17"},
    )
    assert answer["Location"] == f"/console/devices/{living.pk}/"
    command = DeviceCommand.objects.get()
    assert (command.kind, command.expected_epoch, command.engine) == ("swap_model", 2, "kokoro")
    assert (command.reason, command.requested_by, command.state) == ("A new model", operator, "waiting")
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.object_id, entry.object_name) == ("device.swap_model", str(living.pk), "GPU-1")
    assert (entry.actor_email, entry.reason) == ("operator@example.com", "A new model")
    assert (entry.address, entry.request_id) == ("127.0.0.1", "request-17")
    page = operator_client.get(f"/console/devices/{living.pk}/").content.decode()
    assert "“Swap model” was asked of GPU-1." in page
    assert "A new model" in page
    assert "A new model" in operator_client.get("/console/audit/").content.decode()


def test_an_act_that_makes_no_sense_any_more_is_not_asked(operator_client: Client, living: Device) -> None:
    Device.objects.update(state=DeviceState.QUARANTINED)
    answer = operator_client.post(f"/console/devices/{living.pk}/drain/", {"reason": "Why", "epoch": "3"})
    assert answer.status_code == 409
    assert "This cannot be asked of it now" in answer.content.decode()
    assert DeviceCommand.objects.count() == 0


@pytest.mark.parametrize("engine", ["", "no-such-engine", "simulated"])
def test_a_swap_needs_another_engine(operator_client: Client, living: Device, engine: str) -> None:
    fields = {"reason": "Why", "epoch": "3", "engine": engine}
    assert operator_client.post(f"/console/devices/{living.pk}/swap_model/", fields).status_code == 200
    assert DeviceCommand.objects.count() == 0


def test_nothing_is_asked_of_what_does_not_exist(operator_client: Client, living: Device) -> None:
    assert operator_client.get(f"/console/devices/{living.pk}/explode/").status_code == 404
    assert operator_client.get("/console/devices/999999/").status_code == 404
    assert operator_client.post("/console/devices/999999/drain/", {"reason": "Why"}).status_code == 404


def test_a_customer_cannot_ask_anything_of_a_device(alice_client: Client, living: Device) -> None:
    answer = alice_client.post(f"/console/devices/{living.pk}/restart_now/", {"reason": "Mine", "epoch": "3"})
    assert answer.status_code == 404
    assert DeviceCommand.objects.count() == 0


def test_the_form_comes_alone_where_a_script_asks(operator_client: Client, living: Device) -> None:
    address = f"/console/devices/{living.pk}/restart_now/"
    part = operator_client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith("<form")
    assert "<html" not in part


def test_the_time_account_tells_billed_unbilled_and_idle_time() -> None:
    one = device("GPU-1", slots=2)
    DeviceSample.objects.bulk_create(
        DeviceSample(device=one, resolution=Resolution.MINUTE, taken_at=ago(minutes=number + 1))
        for number in range(10)
    )
    for from_s, seconds, billable in ((300, 20, True), (200, 7, False)):
        begun = ago(seconds=from_s)
        spoken = attempt(
            job(created_at=begun, segment_state=SegmentState.SUCCEEDED),
            one,
            state=AttemptState.SUCCEEDED if billable else AttemptState.LOST,
            bound_at=begun,
            started_at=begun,
            finished_at=begun + timedelta(seconds=seconds),
        )
        UsageRecord.objects.create(
            attempt_id=spoken.pk,
            job_id=spoken.job_id,
            workspace_id=spoken.workspace_id,
            voice_id=spoken.job.voice_id,
            device_name=one.name,
            job_class="interactive",
            billable=billable,
            gpu_ms=1,
            audio_ms=1,
            characters=1,
            started_at=begun,
            finished_at=begun,
        )
    account = time_account(one, now=NOW)
    assert (account.billed_ms, account.unbilled_ms, account.idle_ms) == (20_000, 7_000, 20 * 60_000 - 27_000)


def test_a_device_that_left_no_figures_has_an_account_of_what_it_spoke() -> None:
    one = device("GPU-1")
    attempt(job(created_at=ago(seconds=9)), one, slot=0, bound_at=ago(seconds=5), started_at=ago(seconds=4))
    account = time_account(one, now=NOW)
    assert (account.billed_ms, account.unbilled_ms, account.idle_ms) == (4_000, 0, 0)


def test_a_device_that_tells_no_memory_has_no_unknown_total() -> None:
    one = device("remote:far:8880@node-1")
    assert read_device(one.pk, now=NOW).charts[0].unit == "gigabytes"


def test_a_devices_page_has_its_week_by_the_hour() -> None:
    one = device("GPU-1", memory_total_bytes=24_000_000_000)
    DeviceSample.objects.create(
        device=one,
        resolution=Resolution.HOUR,
        taken_at=ago(hours=5),
        memory_used_bytes=6_000_000_000,
        memory_used_max_bytes=9_500_000_000,
        utilisation_percent=62.4,
        temperature_c=71,
        power_mw=350_000,
    )
    charts = read_device(one.pk, now=NOW).charts
    assert [chart.title for chart in charts] == [
        "Memory: 9.5 GB at most in seven days",
        "Utilisation: 62 % on average over seven days",
        "Temperature: 71 °C at most in seven days",
        "Power: 350 W on average over seven days",
    ]
    assert [column.text for column in charts[0].columns if column.text != "no figures"] == [
        "highest of the hour 9.5 GB, mean of the hour 6 GB"
    ]
    assert len(charts[0].moments) == 7 * 24


def test_operators_get_every_devices_memory_as_json(operator_client: Client, alice_client: Client) -> None:
    device("GPU-1", memory_used_bytes=5, memory_total_bytes=10)
    (found,) = operator_client.get("/console/devices.json").json()["devices"]
    assert (found["name"], found["memory_used_bytes"], found["memory_total_bytes"]) == ("GPU-1", 5, 10)
    assert alice_client.get("/console/devices.json").status_code == 404


def test_a_charts_numbers_are_given_as_a_file(operator_client: Client, living: Device) -> None:
    answer = operator_client.get(f"/console/devices/{living.pk}/?csv=week-memory")
    lines = answer.content.decode("utf-8-sig").splitlines()
    assert lines[0] == "time,highest of the hour,mean of the hour"
    assert len(lines) == 1 + 7 * 24
    assert operator_client.get(f"/console/devices/{living.pk}/?csv=nothing").status_code == 404


@pytest.mark.parametrize("place", ["/console/devices/", "/console/devices/{}/"])
def test_the_last_hour_has_its_numbers_behind_a_toggle(
    operator_client: Client, living: Device, place: str
) -> None:
    html = operator_client.get(place.format(living.pk)).content.decode()
    table = re.search(
        rf'<details class="chart__table">.*?<tbody id="device-{living.pk}-hour-table">(.*?)</tbody>',
        html,
        re.DOTALL,
    )
    assert table is not None
    assert table[1].count("<tr>") == 60


@pytest.mark.parametrize(
    ("reason", "english", "chinese"),
    [
        ("drained", "Drained: it rests until somebody resumes it.", "已排空：有人恢复之前一直停用。"),
        (
            "9 strikes in 10 minutes",
            "9 engines were lost within 10 minutes.",
            "10 分钟内损失了 9 个引擎进程。",
        ),
        ("the test sentence failed 2 times", "The test sentence failed 2 times.", "测试语句失败了 2 次。"),
        ("Its fan is loud", "Its fan is loud", "Its fan is loud"),
    ],
)
def test_why_a_device_rests_is_said_in_the_readers_language(
    operator_client: Client, living: Device, reason: str, english: str, chinese: str
) -> None:
    Device.objects.filter(pk=living.pk).update(state=DeviceState.QUARANTINED, state_reason=reason)
    for language, said in (("en", english), ("zh-hans", chinese)):
        headers = {"Accept-Language": language}
        assert said in operator_client.get("/console/devices/", headers=headers).content.decode()
