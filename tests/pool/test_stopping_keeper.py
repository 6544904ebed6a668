"""A worker that is told to end while its engine is warmed offers nothing any more."""

from __future__ import annotations

import pytest

from accounts.models import User
from tests.pool.conftest import make_device
from tts.models import DeviceSlot
from tts.services import slots
from tts.slot_keeper import SlotKeeper
from tts.slot_worker import SlotAddress


@pytest.mark.parametrize("told", ["before it is offered", "while it is offered"])
def test_a_worker_that_is_told_to_end_does_not_offer_its_slot_again(
    customer: User, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    device = make_device(ready=False)
    asked: list[str] = []
    keeper = SlotKeeper(
        address=SlotAddress(device_id=device.pk, slot_number=0, epoch=device.epoch),
        worker_name="test",
        engine="simulated",
        visible_device="",
        bind_next=lambda: asked.append("more"),
    )
    if told == "before it is offered":
        keeper.hold_back()
    else:
        real = slots.slot_ready

        def offered(**slot: object) -> bool:
            taken = real(**slot)  # type: ignore[arg-type]
            assert DeviceSlot.objects.get().ready
            keeper.hold_back()
            return taken

        monkeypatch.setattr(slots, "slot_ready", offered)
    try:
        keeper.start()
        assert (DeviceSlot.objects.get().ready, keeper.ready, asked) == (False, False, [])
    finally:
        keeper.stop()
