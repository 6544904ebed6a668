"""Operators' commands as they are stored: with a reason, an audit line, an epoch, and one end."""

from __future__ import annotations

import pytest
import redis

from accounts.models import AuditEntry, User
from portal.lib.errors import InvalidInput
from portal.lib.queues import redis_connection
from tests.pool.conftest import make_device
from tts.models import Device, DeviceCommand, DeviceCommandKind, DeviceCommandState
from tts.services.commands import acknowledge_command, finish_command, open_commands, request_command
from tts.services.node_wakeups import node_key, wait_for_wake

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> User:
    return User.objects.create_user("operator@example.com", "correct horse battery", is_staff=True)


def ask(
    device: Device,
    operator: User,
    kind: DeviceCommandKind = DeviceCommandKind.DRAIN,
    *,
    reason: str = "Its fan rattles.",
    engine: str = "",
) -> DeviceCommand:
    return request_command(
        device=device,
        kind=kind,
        requested_by=operator,
        reason=reason,
        engine=engine,
        expected_epoch=device.epoch,
    )


def test_a_command_waits_and_is_in_the_audit_log(operator: User) -> None:
    device = make_device()
    command = ask(device, operator, reason="  Its fan\n rattles. ")
    assert (command.state, command.expected_epoch, command.engine) == ("waiting", device.epoch, "")
    assert command.reason == "Its fan rattles."
    line = AuditEntry.objects.get()
    assert (line.act, line.object_kind, line.object_id) == ("device.drain", "device", str(device.pk))
    assert (line.actor, line.object_name, line.reason) == (operator, device.name, "Its fan rattles.")
    assert line.before == {"state": "ready", "engine": "simulated", "epoch": device.epoch}
    assert line.after == {"command_id": command.pk}


@pytest.mark.parametrize(
    ("kind", "reason", "engine", "field"),
    [
        (DeviceCommandKind.DRAIN, " \n ", "", "reason"),
        (DeviceCommandKind.SWAP_MODEL, "A better voice.", "", "engine"),
        (DeviceCommandKind.SWAP_MODEL, "A better voice.", "nothing-like-it", "engine"),
    ],
)
def test_without_a_reason_or_a_known_engine_nothing_is_asked(
    operator: User, kind: DeviceCommandKind, reason: str, engine: str, field: str
) -> None:
    device = make_device()
    with pytest.raises(InvalidInput) as refused:
        ask(device, operator, kind, reason=reason, engine=engine)
    assert refused.value.field == field
    assert not DeviceCommand.objects.exists()
    assert not AuditEntry.objects.exists()


def test_an_engine_is_named_for_a_swap_alone(operator: User) -> None:
    device = make_device()
    assert ask(device, operator, DeviceCommandKind.SWAP_MODEL, engine="kokoro").engine == "kokoro"
    assert ask(device, operator, DeviceCommandKind.DRAIN, engine="kokoro").engine == ""
    assert AuditEntry.objects.order_by("pk")[0].after["engine"] == "kokoro"


def test_open_commands_are_those_of_these_devices_that_have_not_ended(operator: User) -> None:
    here, there = make_device("cpu:0@here"), make_device("cpu:0@there")
    waiting, running, done = (ask(here, operator) for _ in range(3))
    ask(there, operator)
    assert acknowledge_command(command=running)
    assert finish_command(command=done, state=DeviceCommandState.DONE, result="drained")
    assert [command.pk for command in open_commands(device_ids=[here.pk])] == [waiting.pk, running.pk]
    assert open_commands(device_ids=[]) == []


def test_a_command_begins_once_and_ends_once(operator: User) -> None:
    device = make_device()
    command = ask(device, operator)
    assert acknowledge_command(command=command)
    assert not acknowledge_command(command=command)
    command.refresh_from_db()
    assert command.acknowledged_at is not None
    assert finish_command(command=command, state=DeviceCommandState.FAILED, result="it was drained already")
    assert not finish_command(command=command, state=DeviceCommandState.DONE, result="drained")
    command.refresh_from_db()
    assert (command.state, command.result) == ("failed", "it was drained already")
    assert command.finished_at is not None
    assert command.finished_at >= command.acknowledged_at
    lines = list(AuditEntry.objects.order_by("pk").values_list("act", "reason"))
    assert lines == [("device.drain", "Its fan rattles."), ("device.drain.failed", "Its fan rattles.")]
    ending = AuditEntry.objects.get(act="device.drain.failed")
    assert ending.after == {"command_id": command.pk, "result": "it was drained already"}


@pytest.mark.django_db(transaction=True)
def test_asking_wakes_the_devices_node(operator: User, empty_redis: None) -> None:
    device = make_device()
    ask(device, operator)
    assert wait_for_wake(node_name=device.node_name, timeout_s=1)
    assert not redis_connection().exists(node_key(device.node_name))


@pytest.mark.django_db(transaction=True)
def test_without_redis_a_command_is_stored_all_the_same(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = redis.Redis.from_url("redis://127.0.0.1:1/0", socket_connect_timeout=1)
    monkeypatch.setattr("tts.services.node_wakeups.redis_connection", lambda: nowhere)
    command = ask(make_device(), operator)
    command.refresh_from_db()
    assert command.state == "waiting"
