"""Carries out what operators ask of this host's devices.

Each command is begun once, then looked at until it has come about or cannot any more. What an agent had begun before it
was restarted has failed: the device's epoch says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db import DatabaseError

from tts.engine.registry import registered_engines
from tts.models import DeviceCommand, DeviceCommandKind, DeviceCommandState, DeviceEvent, DeviceEventKind
from tts.node.managed_device import ManagedDevice
from tts.node.settings import NodeSettings
from tts.services import health, node_state
from tts.services.commands import acknowledge_command, finish_command, open_commands
from tts.states import DeviceState

logger = logging.getLogger(__name__)

# A segment is spoken within minutes; an engine is on its device within minutes too, or it will not come.
RESTART_WITHIN_S = 900.0
SWAP_WITHIN_S = 600.0


@dataclass(frozen=True)
class Ended:
    """How a command ended, in words for operators."""

    result: str
    state: DeviceCommandState = DeviceCommandState.DONE


@dataclass
class Begun:
    """What the agent remembers of a command that it carries out."""

    give_up_at: float
    # The workers that were there when it began, by slot.
    pids: dict[int, int] = field(default_factory=dict)
    newest_event_id: int = 0
    wanted_before: str = ""
    # False while the database has not taken its beginning: it is then begun again.
    is_under_way: bool = False
    # It was begun before, and the answer was lost: what it finds done already was done by itself.
    is_repeated: bool = False
    # Known, though the database may not have taken it yet.
    ended: Ended | None = None


def failed(result: str) -> Ended:
    return Ended(result, DeviceCommandState.FAILED)


class Orders:
    """The commands of this host's devices. For the agent's main thread."""

    def __init__(self, *, devices: Mapping[int, ManagedDevice], settings: NodeSettings) -> None:
        self._devices = devices
        self._settings = settings
        self._begun: dict[int, Begun] = {}

    def tick(self, now: float, *, lost: frozenset[str]) -> None:
        """Begin what waits and end what has come about. `lost`: devices that their driver does not reach."""
        commands = open_commands(device_ids=self._devices)
        still_open = {command.pk for command in commands}
        self._begun = {key: begun for key, begun in self._begun.items() if key in still_open}
        for command in commands:
            managed = self._devices[command.device_id]
            ended = self._carry_out(command, managed, now, lost)
            if ended is not None:
                finish_command(command=command, state=ended.state, result=ended.result)
                self._begun.pop(command.pk, None)

    def _carry_out(
        self, command: DeviceCommand, managed: ManagedDevice, now: float, lost: frozenset[str]
    ) -> Ended | None:
        if command.expected_epoch != managed.device.epoch:
            if command.state == DeviceCommandState.RUNNING:
                return failed("the node restarted meanwhile")
            return Ended("the device had restarted meanwhile", DeviceCommandState.STALE)
        begun = self._begun.setdefault(command.pk, Begun(give_up_at=now + SWAP_WITHIN_S))
        if begun.ended is not None:
            return begun.ended
        if not begun.is_under_way:
            acknowledge_command(command=command)
            if command.kind == DeviceCommandKind.RELEASE and managed.device.name in lost:
                return failed("the driver does not reach this device")
            try:
                begun.ended = self._begin(command, managed, begun, now)
            except DatabaseError:
                begun.is_repeated = True
                raise
            begun.is_under_way = True
            managed.refresh()
        if begun.ended is None:
            begun.ended = self._look(command, managed, begun, now)
        return begun.ended

    # --- beginning

    def _begin(
        self, command: DeviceCommand, managed: ManagedDevice, begun: Begun, now: float
    ) -> Ended | None:
        device_id, epoch = managed.device.pk, managed.device.epoch
        match command.kind:
            case DeviceCommandKind.DRAIN:
                drained = health.drain_device(device_id=device_id, epoch=epoch)
                return None if drained or begun.is_repeated else failed("it was drained already")
            case DeviceCommandKind.RESUME:
                resumed = health.resume_device(device_id=device_id, epoch=epoch)
                return Ended("resumed") if resumed or begun.is_repeated else failed("it was not drained")
            case DeviceCommandKind.QUARANTINE:
                reason = f"operator: {command.reason}"
                taken = health.quarantine_device(device_id=device_id, epoch=epoch, reason=reason)
                return None if taken or begun.is_repeated else failed("it was quarantined already")
            case DeviceCommandKind.RELEASE:
                released = health.release_device(device_id=device_id, epoch=epoch, reason=command.reason)
                return (
                    Ended("released") if released or begun.is_repeated else failed("it was not quarantined")
                )
            case DeviceCommandKind.SWAP_MODEL:
                return self._begin_swap(command, managed, begun)
            case _:
                return self._begin_restart(command, managed, begun, now)

    def _begin_restart(
        self, command: DeviceCommand, managed: ManagedDevice, begun: Begun, now: float
    ) -> Ended | None:
        if not managed.may_run:
            return failed("no worker runs here: the device is drained or quarantined")
        begun.give_up_at = now + RESTART_WITHIN_S
        for slot in managed.slots:
            if slot.pid is None:
                slot.start_at_once(now)
                continue
            begun.pids[slot.number] = slot.pid
            if command.kind == DeviceCommandKind.RESTART_NOW:
                slot.kill()
            else:
                slot.end_after_job()
        return None

    def _begin_swap(self, command: DeviceCommand, managed: ManagedDevice, begun: Begun) -> Ended | None:
        device = managed.device
        known = registered_engines().get(command.engine)
        if known is None:
            return failed(f"this node knows no engine {command.engine}")
        if known.problem:
            return failed(known.problem)
        if device.engine == command.engine and device.wanted_engine in ("", command.engine):
            return Ended("it has this engine already")
        if begun.is_repeated and device.wanted_engine == command.engine:
            return None
        running = [slot for slot in managed.slots if slot.pid is not None]
        if not running:
            node_state.take_engine(device_id=device.pk, epoch=device.epoch, engine=command.engine)
            return Ended("no worker ran; the next one starts with it")
        if device.wanted_engine not in ("", device.engine):
            return failed("another swap is under way")
        # The new engine is warmed beside the old one, so both must fit.
        needed = self._settings.minimum_free_of(command.engine) * len(running)
        free = managed.reading.memory_free_bytes if managed.reading is not None else None
        if free is not None and free < needed:
            return failed(f"memory_low: {free} bytes are free, {needed} are needed beside the old engine")
        newest = DeviceEvent.objects.filter(device=device).order_by("-pk").first()
        begun.newest_event_id = newest.pk if newest is not None else 0
        begun.wanted_before = device.wanted_engine
        node_state.want_engine(device_id=device.pk, epoch=device.epoch, engine=command.engine)
        return None

    # --- looking whether it has come about

    def _look(self, command: DeviceCommand, managed: ManagedDevice, begun: Begun, now: float) -> Ended | None:
        match command.kind:
            case DeviceCommandKind.DRAIN:
                return self._look_drain(managed)
            case DeviceCommandKind.QUARANTINE:
                return self._look_quarantine(managed)
            case DeviceCommandKind.SWAP_MODEL:
                return self._look_swap(command, managed, begun, now)
            case _:
                return self._look_restart(managed, begun, now)

    def _look_drain(self, managed: ManagedDevice) -> Ended | None:
        device = managed.device
        if device.drained_at is None:
            return failed("resumed meanwhile")
        if device.state == DeviceState.DRAINING or any(slot.pid is not None for slot in managed.slots):
            return None
        return Ended("drained")

    def _look_quarantine(self, managed: ManagedDevice) -> Ended | None:
        if managed.device.state != DeviceState.QUARANTINED:
            return Ended("quarantined, and released meanwhile")
        if any(slot.pid is not None for slot in managed.slots):
            return None
        return Ended("quarantined")

    def _look_restart(self, managed: ManagedDevice, begun: Begun, now: float) -> Ended | None:
        old = [slot for slot in managed.slots if slot.pid == begun.pids.get(slot.number, -1)]
        if not managed.may_run:
            return failed("drained or quarantined meanwhile") if not old else None
        if not old and all(slot.pid is not None for slot in managed.slots):
            return Ended("restarted")
        if now < begun.give_up_at:
            return None
        return failed("it still speaks" if old else "no new worker could be started")

    def _look_swap(
        self, command: DeviceCommand, managed: ManagedDevice, begun: Begun, now: float
    ) -> Ended | None:
        device = managed.device
        if device.engine == command.engine:
            return Ended("swapped")
        failure = (
            DeviceEvent.objects.filter(
                device=device, kind=DeviceEventKind.SWAP_FAILED, pk__gt=begun.newest_event_id
            )
            .order_by("pk")
            .first()
        )
        detail = ""
        if failure is not None:
            detail = failure.detail or "the engine did not come up"
        elif device.wanted_engine != command.engine:
            detail = "the engine is not wanted any more"
        elif not managed.may_run:
            detail = "drained or quarantined meanwhile"
        elif now >= begun.give_up_at:
            detail = f"the engine was not up after {SWAP_WITHIN_S:.0f} s"
        if not detail:
            return None
        if failure is None:
            node_state.give_up_engine(
                device_id=device.pk,
                epoch=device.epoch,
                engine=command.engine,
                before=begun.wanted_before,
                detail=detail,
            )
        return failed(detail)
