"""What operators ask of devices: stored with its audit line, carried out by the device's agent.

A command names the incarnation (epoch) of the device that the operator saw, so that a late click does nothing to
the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services.audit import record_act
from portal.lib.errors import InvalidInput
from tts.models import Device, DeviceCommand, DeviceCommandKind, DeviceCommandState
from tts.selectors.engines import usable_engines
from tts.services.node_wakeups import wake_node

logger = logging.getLogger(__name__)
OPEN = (DeviceCommandState.WAITING, DeviceCommandState.RUNNING)
OBJECT_KIND = "device"


@transaction.atomic
def request_command(
    *,
    device: Device,
    kind: DeviceCommandKind,
    requested_by: User,
    reason: str,
    expected_epoch: int,
    engine: str = "",
) -> DeviceCommand:
    """Store what an operator asks of a device, with its line in the audit log, and wake the device's agent.

    `expected_epoch` is the device's epoch as the operator saw it; the agent ends the command as STALE when the device
    has restarted since. `engine` names the engine to bring up, for a swap alone. Returns the waiting command. May be
    called inside another transaction.

    Raises:
        InvalidInput: there is no reason, or no such engine.
    """
    reason = " ".join(reason.split())
    if not reason:
        raise InvalidInput(field="reason", reason=_("Say why; the reason goes into the audit log."))
    if kind == DeviceCommandKind.SWAP_MODEL and engine not in usable_engines(device):
        raise InvalidInput(field="engine", reason=_("There is no such engine. Choose one of the list."))
    command = DeviceCommand.objects.create(
        device=device,
        kind=kind,
        expected_epoch=expected_epoch,
        engine=engine if kind == DeviceCommandKind.SWAP_MODEL else "",
        reason=reason[:300],
        requested_by=requested_by,
    )
    record_act(
        actor=requested_by,
        act=f"device.{kind}",
        object_kind=OBJECT_KIND,
        object_id=device.pk,
        object_name=device.name,
        reason=reason,
        before={"state": device.state, "engine": device.engine, "epoch": expected_epoch},
        after={"command_id": command.pk, **({"engine": command.engine} if command.engine else {})},
    )
    node_name = device.node_name
    transaction.on_commit(lambda: wake_node(node_name=node_name))
    return command


def open_commands(*, device_ids: Iterable[int]) -> list[DeviceCommand]:
    """The devices' commands that wait or are being carried out, the oldest first, with their devices as stored now."""
    return list(
        DeviceCommand.objects.filter(device_id__in=list(device_ids), state__in=OPEN)
        .select_related("device", "requested_by")
        .order_by("pk")
    )


def acknowledge_command(*, command: DeviceCommand) -> bool:
    """The agent begins to carry the command out. False when it no longer waits."""
    begun = DeviceCommand.objects.filter(pk=command.pk, state=DeviceCommandState.WAITING).update(
        state=DeviceCommandState.RUNNING, acknowledged_at=Now()
    )
    return begun == 1


@transaction.atomic
def finish_command(*, command: DeviceCommand, state: DeviceCommandState, result: str) -> bool:
    """End an open command as DONE, STALE or FAILED, with its line in the audit log. False when it had ended already.

    `result` says in a few words what came of it, for operators.
    """
    ended = DeviceCommand.objects.filter(pk=command.pk, state__in=OPEN).update(
        state=state, result=result[:300], finished_at=Now()
    )
    if not ended:
        return False
    record_act(
        actor=command.requested_by,
        act=f"device.{command.kind}.{state}",
        object_kind=OBJECT_KIND,
        object_id=command.device_id,
        object_name=command.device.name,
        reason=command.reason,
        after={"command_id": command.pk, "result": result[:300]},
    )
    logger.info(
        "command_finished",
        extra={
            "device_id": command.device_id,
            "command": command.kind,
            "state": str(state),
            "result": result[:300],
        },
    )
    return True
