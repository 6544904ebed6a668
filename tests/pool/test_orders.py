"""An agent that loses the database in the middle of a command goes by what it finds afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError

from accounts.models import AuditEntry, User
from tests.pool.conftest import make_device
from tts.models import Device, DeviceCommand, DeviceCommandKind
from tts.node.managed_device import ManagedDevice
from tts.node.orders import Orders
from tts.node.settings import NodeSettings
from tts.services import health, node_state
from tts.services.commands import finish_command, request_command

KIND = DeviceCommandKind
SETTINGS = NodeSettings(node_name="here", cpu_engine="simulated")


@pytest.fixture
def operator(customer: User) -> User:
    return User.objects.create_user("operator@example.com", "correct horse battery", is_staff=True)


@pytest.fixture
def device(operator: User) -> Device:
    return make_device()


@pytest.fixture
def idle_process() -> Iterator[subprocess.Popen[bytes]]:
    """What stands for a worker that runs."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def answer_is_lost_once(monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> None:
    """The function does what it does, and its connection breaks before it hears of its commit."""
    real: Callable[..., Any] = getattr(place, name)
    calls: list[str] = []

    def lost(**arguments: Any) -> Any:
        answer = real(**arguments)
        calls.append(name)
        if len(calls) == 1:
            raise OperationalError("the connection was lost")
        return answer

    monkeypatch.setattr(place, name, lost)


def ask(device: Device, operator: User, kind: DeviceCommandKind, engine: str = "") -> DeviceCommand:
    return request_command(
        device=device,
        kind=kind,
        requested_by=operator,
        reason="For the test.",
        engine=engine,
        expected_epoch=device.epoch,
    )


def orders_of(device: Device) -> tuple[Orders, ManagedDevice]:
    managed = ManagedDevice(device=device, settings=SETTINGS, read=lambda _: None)
    return Orders(devices={device.pk: managed}, settings=SETTINGS), managed


def tick(orders: Orders, managed: ManagedDevice) -> None:
    managed.refresh()
    orders.tick(0.0, lost=frozenset())


def prepare(kind: DeviceCommandKind, device: Device) -> None:
    if kind == KIND.RESUME:
        health.drain_device(device_id=device.pk, epoch=device.epoch)
    if kind == KIND.RELEASE:
        health.quarantine_device(device_id=device.pk, epoch=device.epoch, reason="For the test.")


DONE = [
    (KIND.DRAIN, "drain_device", "drained"),
    (KIND.RESUME, "resume_device", "resumed"),
    (KIND.QUARANTINE, "quarantine_device", "quarantined"),
    (KIND.RELEASE, "release_device", "released"),
]


@pytest.mark.parametrize(("kind", "function", "result"), DONE)
def test_a_command_that_was_done_when_its_answer_was_lost_is_done(
    device: Device,
    operator: User,
    monkeypatch: pytest.MonkeyPatch,
    kind: DeviceCommandKind,
    function: str,
    result: str,
) -> None:
    prepare(kind, device)
    command = ask(device, operator, kind)
    answer_is_lost_once(monkeypatch, health, function)
    orders, managed = orders_of(device)
    with pytest.raises(OperationalError):
        tick(orders, managed)
    tick(orders, managed)
    command.refresh_from_db()
    assert (command.state, command.result) == ("done", result)


@pytest.mark.parametrize(("kind", "function", "result"), DONE)
def test_a_command_keeps_its_end_until_the_database_has_taken_it(
    device: Device,
    operator: User,
    monkeypatch: pytest.MonkeyPatch,
    kind: DeviceCommandKind,
    function: str,
    result: str,
) -> None:
    prepare(kind, device)
    command = ask(device, operator, kind)
    tries: list[DeviceCommand] = []

    def away_once(**arguments: Any) -> bool:
        tries.append(arguments["command"])
        if len(tries) == 1:
            raise OperationalError("the database is away")
        return finish_command(**arguments)

    monkeypatch.setattr("tts.node.orders.finish_command", away_once)
    orders, managed = orders_of(device)
    with pytest.raises(OperationalError):
        tick(orders, managed)
    tick(orders, managed)
    command.refresh_from_db()
    assert (command.state, command.result) == ("done", result)
    assert AuditEntry.objects.filter(act=f"device.{kind}.done").count() == 1


def test_what_was_done_before_the_command_came_is_still_refused(device: Device, operator: User) -> None:
    health.drain_device(device_id=device.pk, epoch=device.epoch)
    command = ask(device, operator, KIND.DRAIN)
    tick(*orders_of(device))
    command.refresh_from_db()
    assert (command.state, command.result) == ("failed", "it was drained already")


def test_a_swap_that_had_begun_when_its_answer_was_lost_goes_on(
    device: Device,
    operator: User,
    monkeypatch: pytest.MonkeyPatch,
    idle_process: subprocess.Popen[bytes],
) -> None:
    command = ask(device, operator, KIND.SWAP_MODEL, engine="kokoro")
    answer_is_lost_once(monkeypatch, node_state, "want_engine")
    orders, managed = orders_of(device)
    managed.slots[0].process = idle_process
    with pytest.raises(OperationalError):
        tick(orders, managed)
    tick(orders, managed)
    command.refresh_from_db()
    assert (command.state, command.result) == ("running", "")
    Device.objects.update(engine="kokoro")
    tick(orders, managed)
    command.refresh_from_db()
    assert (command.state, command.result) == ("done", "swapped")
