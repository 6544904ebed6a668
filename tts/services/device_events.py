"""A device's timeline: what happened to it, for the operators' pages. Never a customer's text."""

from __future__ import annotations

import logging
from uuid import UUID

from tts.models.operations import DeviceEvent, DeviceEventKind

logger = logging.getLogger(__name__)
DETAIL_CHARACTERS = 300


def record_event(
    *,
    device_id: int,
    epoch: int,
    kind: DeviceEventKind,
    detail: str = "",
    slot_number: int | None = None,
    attempt_id: UUID | None = None,
) -> None:
    """Add a line to the device's timeline. `detail` is a kind and a place, cut to 300 characters.

    Call it in the transaction that makes the change, so that the line and the change stand or fall together.
    """
    DeviceEvent.objects.create(
        device_id=device_id,
        epoch=epoch,
        kind=kind,
        detail=detail[:DETAIL_CHARACTERS],
        slot_number=slot_number,
        attempt_id=attempt_id,
    )
    logger.info(
        "device_event",
        extra={"device_id": device_id, "epoch": epoch, "slot": slot_number, "kind": kind, "detail": detail},
    )
