"""Keeps one slot's engine process: brings it up, proves it, replaces it, swaps its model, lets go of it.

All but the first start happens in one thread of its own (`tend`), which outlives every engine that it starts: the
kernel ends an engine with the thread that started it. Whoever asks something of the engine holds `in_use`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import NoReturn, TypedDict

import psutil
from django.db import DatabaseError
from django.utils import timezone

from tts.engine.catalogue import ENGINES
from tts.engine.process import EngineFailure, EngineProcess
from tts.models import DeviceKind
from tts.models.operations import DeviceEventKind
from tts.services import health, slots
from tts.services.device_events import record_event
from tts.services.slots import SlotView
from tts.slot_worker import SlotAddress
from tts.states import DeviceState
from tts.time_account import TimeAccount
from tts.warming import CANARY_TRIES, STATS_TIMEOUT_S, CanaryFailedError, Kept, Warmer

logger = logging.getLogger(__name__)

STOP_GRACE_S = 3.0
# Between two looks at the engine's memory while nothing is spoken.
LOOK_EVERY_S = float(os.environ.get("VOICEPOOL_MEMORY_LOOK_S", "5"))
# After a recycling or a swap that could not be made, before the next try.
PAUSE_S = 60.0
# As many others as may recycle at once do so: before asking again.
WAIT_FOR_TURN_S = 5.0
EXIT_SUPERSEDED = 71
EXIT_UNKILLABLE = 72
EXIT_ENGINE_FAILED = 73


class SupersededError(Exception):
    """A newer incarnation of the device's agent has started its own worker for this slot."""


class _Slot(TypedDict):
    device_id: int
    epoch: int
    slot_number: int


class SlotKeeper:
    """See the module. `bind_next` is called whenever the slot has been offered anew."""

    def __init__(
        self,
        *,
        address: SlotAddress,
        worker_name: str,
        engine: str,
        visible_device: str,
        bind_next: Callable[[], None],
    ) -> None:
        self.in_use = threading.Lock()
        self.wake = threading.Event()
        self._address = address
        self._worker_name = worker_name
        self._name = engine
        self._bind_next = bind_next
        self._kept: Kept | None = None
        self.time = TimeAccount()
        self._warmer = Warmer(
            visible_device=visible_device,
            processes=set(),
            tell=self._event,
            note_canary=self.time.add_canary,
            end=lambda process: self._end(process, grace_s=0),
        )
        # No Event: it is set in a signal's handler, which may interrupt whoever holds an Event's lock.
        self._stopping = False
        self._doubted = False
        self._looked_at = 0.0
        self._not_before = 0.0

    # --- what others ask ---------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether the engine is warm and the slot may be given work."""
        return self.time.ready and not self._stopping

    @property
    def process(self) -> EngineProcess | None:
        """The engine process. Only while `in_use` is held."""
        return self._kept.process if self._kept else None

    def note_spoken(self) -> None:
        """One more segment. While `in_use` is held; looks at the memory now and then, for a millisecond."""
        if self._kept is None:
            return
        self._kept.age.segments += 1
        if time.monotonic() - self._looked_at >= LOOK_EVERY_S:
            self._look(self._kept)

    def start(self, process: EngineProcess | None = None) -> None:
        """Bring the first engine up and offer the slot. `process`: one that was started (not loaded) already.

        Raises:
            SupersededError: the device has a newer incarnation.
            EngineFailure: it cannot be loaded.
        """
        with self.in_use:
            self._bring_up(process)

    def discard(self, reason: str) -> None:
        """Kill the engine now, after it died, hung or ran out of memory; a fresh one is brought up by `tend`.

        While `in_use` is held. Ends this process when the engine cannot be killed.
        """
        self.time.ready = False
        with contextlib.suppress(DatabaseError):
            slots.slot_not_ready(**self._slot, restarted=True, reason=reason)
        self._let_go(grace_s=0)
        self.wake.set()

    def discard_dead(self) -> bool:
        """Whether the slot is without a living engine; one found dead is discarded. While `in_use` is held."""
        if self._kept is not None and not self._kept.process.alive:
            self.discard("the engine ended while it had nothing to do")
        return self._kept is None

    def hold_back(self) -> None:
        """The worker is to end: nothing more is bound to its slot. What it speaks goes on."""
        self._stopping = True

    def stop(self) -> None:
        """Take the slot out and end every engine."""
        self._stopping = True
        self.wake.set()
        with contextlib.suppress(DatabaseError):
            slots.slot_not_ready(**self._slot)
            health.take_back(device_id=self._address.device_id, slot_number=self._address.slot_number)
        if self._kept is not None:
            self._kept.process.stop(STOP_GRACE_S)
        for process in list(self._warmer.processes):
            process.kill()

    # --- tending -----------------------------------------------------------------------------------------------

    def tend(self, view: SlotView) -> bool:
        """Do what the slot needs, given how its device stands; returns whether anything was done, after which the
        view is out of date. Called about once a second, by one thread.

        Ends this process where only a fresh one helps: the engine cannot be loaded, or cannot be killed.
        """
        if self._stopping:
            slots.hold_slot_back(**self._slot)
            return False
        quarantined = view.state == DeviceState.QUARANTINED
        disowned = view.may_work and self.time.ready and not view.owned
        drained = view.state == DeviceState.STOPPED and view.state_reason == health.DRAINED
        if quarantined or disowned or drained:
            return self._rest(doubted=not drained)
        if not view.may_work:
            return bool(health.finish_drains(device_id=self._address.device_id))
        if self._kept is not None and not self._kept.process.alive:
            with self.in_use:
                self.discard_dead()
        if self._kept is None:
            self._bring_up_or_exit()
            return True
        if not self.time.ready:
            self._offer(self._kept)
            return True
        return self._care(self._kept, view)

    def _rest(self, *, doubted: bool) -> bool:
        """The device is out: its engine gives the memory back, when it has ended what it speaks."""
        self.time.ready = False
        self._doubted = self._doubted or doubted
        if self._kept is None:
            return False
        with self.in_use:
            self._let_go(grace_s=STOP_GRACE_S)
            slots.slot_not_ready(**self._slot)
        return True

    def _bring_up_or_exit(self) -> None:
        try:
            with self.in_use:
                self._bring_up(None)
        except SupersededError:
            self._exit(EXIT_SUPERSEDED)
        except EngineFailure as error:
            if self._stopping:
                return
            # The agent starts a fresh worker, after longer and longer pauses.
            logger.error("engine_not_loaded", extra={"detail": str(error), "kind": type(error).__name__})
            self._exit(EXIT_ENGINE_FAILED)

    def _care(self, kept: Kept, view: SlotView) -> bool:
        if time.monotonic() - self._looked_at >= LOOK_EVERY_S and self.in_use.acquire(blocking=False):
            try:
                self._look(kept)
            finally:
                self.in_use.release()
        if time.monotonic() < self._not_before or not kept.process.alive:
            return False
        if view.target_engine and view.target_engine != kept.name:
            self._swap(kept, view)
            return True
        if reason := kept.age.due(timezone.localtime()):
            return self._recycle(kept, view, reason)
        return False

    def _look(self, kept: Kept) -> None:
        self._looked_at = time.monotonic()
        try:
            kept.age.look(kept.process.stats(STATS_TIMEOUT_S))
        except EngineFailure as error:
            # It has nothing to do and does not answer.
            self.discard(f"no answer while idle: {type(error).__name__}")

    # --- replacing ---------------------------------------------------------------------------------------------

    def _recycle(self, old: Kept, view: SlotView, reason: str) -> bool:
        """Replace the engine by a fresh one of its kind, warm before the old one ends where there is room for two."""
        if not slots.begin_recycling(**self._slot):
            self._not_before = time.monotonic() + WAIT_FOR_TURN_S
            return False
        detail = f"{reason}; {old.age.memory_text()}"
        replaced = False
        try:
            replaced = self._replace(old, view, old.name)
        except EngineFailure as error:
            self._not_before = time.monotonic() + PAUSE_S
            logger.error("recycling_failed", extra={"detail": str(error)})
        except CanaryFailedError:
            self._quarantine()
        finally:
            slots.end_recycling(**self._slot, detail=detail if replaced else "")
        return True

    def _swap(self, old: Kept, view: SlotView) -> None:
        """Change over to another engine. A failure leaves the device the one that it has."""
        target = view.target_engine
        try:
            self._replace(old, view, target)
        except (EngineFailure, CanaryFailedError) as error:
            if self._stopping:
                return
            self._not_before = time.monotonic() + PAUSE_S if target == view.engine else 0.0
            slots.swap_failed(**self._slot, engine=target, detail=f"{type(error).__name__}: {error}")

    def _replace(self, old: Kept, view: SlotView, name: str) -> bool:
        """Change over from the old process to a fresh one. Nothing that is spoken is interrupted, nothing waits for
        a slot that cannot speak. Raises EngineFailure, CanaryFailedError: the old one serves on, if it could stay."""
        fresh = self._warmed(name) if self._has_room(view, name) else None
        try:
            return self._change_over(fresh, name)
        finally:
            for kept in (old, fresh):
                if kept is not None and kept is not self._kept:
                    self._end(kept.process, grace_s=STOP_GRACE_S)

    def _change_over(self, fresh: Kept | None, name: str) -> bool:
        """Give the slot to `fresh`, or to one that is brought up once the old one has made room.

        It makes no difference whether the old one is still there, or died meanwhile and was discarded.
        """
        if self._stopping:
            return False
        self.time.ready = False
        slots.hold_slot_back(**self._slot)
        with self.in_use:
            if fresh is None:
                health.take_back(device_id=self._address.device_id, slot_number=self._address.slot_number)
                slots.slot_not_ready(**self._slot)
                self._let_go(grace_s=STOP_GRACE_S)
                fresh = self._warmed(name)
            self._kept, self._name = fresh, name
            self._offer(fresh)
        return True

    def _has_room(self, view: SlotView, name: str) -> bool:
        """Whether a second engine fits beside the one that serves."""
        known = ENGINES.get(name)
        needed = known.minimum_free_memory_bytes if known else 0
        if view.kind != DeviceKind.GPU:
            return bool(psutil.virtual_memory().available >= needed)
        return view.memory_free_bytes is not None and view.memory_free_bytes >= needed

    def _bring_up(self, process: EngineProcess | None) -> None:
        try:
            kept = self._warmed(self._name, process)
        except CanaryFailedError:
            self._quarantine()
            return
        self._kept = kept
        self._doubted = False
        self._offer(kept)

    def _warmed(self, name: str, started: EngineProcess | None = None) -> Kept:
        return self._warmer.warmed(name, started=started, thorough=self._doubted)

    def _offer(self, kept: Kept) -> None:
        if self._stopping:
            # Told to end while the engine was warmed: nobody would claim what was bound to the slot.
            return
        taken = slots.slot_ready(
            **self._slot,
            worker_name=self._worker_name,
            worker_pid=os.getpid(),
            engine_pid=kept.process.pid or 0,
            engine_version=kept.loaded.engine_version,
            engine=kept.name,
            capabilities=kept.loaded.capabilities,
        )
        if not taken:
            raise SupersededError
        self.time.ready = True
        if not self.ready:
            # Told so just now.
            slots.hold_slot_back(**self._slot)
            return
        logger.info(
            "slot_ready", extra={"device_id": self._address.device_id, "slot": self._address.slot_number}
        )
        self._bind_next()

    # --- ending ------------------------------------------------------------------------------------------------

    def _quarantine(self) -> None:
        self._doubted = True
        health.quarantine_device(
            device_id=self._address.device_id,
            epoch=self._address.epoch,
            reason=f"the test sentence failed {CANARY_TRIES} times",
        )

    def _let_go(self, *, grace_s: float) -> None:
        """End the engine that the slot has."""
        kept, self._kept = self._kept, None
        if kept is not None:
            self._end(kept.process, grace_s=grace_s)

    def _end(self, process: EngineProcess, *, grace_s: float) -> None:
        """End a process, in peace where it is given time. Ends this one when that cannot be done."""
        if grace_s:
            process.stop(grace_s)
        if not process.kill():
            self._give_up_device(process.pid)
        self._warmer.processes.discard(process)

    def _give_up_device(self, pid: int | None) -> NoReturn:
        """The engine outlived SIGKILL by 10 s: the driver holds it. Only an operator can help."""
        logger.critical("engine_unkillable", extra={"device_id": self._address.device_id, "engine_pid": pid})
        with contextlib.suppress(DatabaseError):
            self._event(DeviceEventKind.UNKILLABLE, f"process {pid}")
            health.quarantine_device(
                device_id=self._address.device_id,
                epoch=self._address.epoch,
                reason="an engine process could not be ended",
            )
        self._exit(EXIT_UNKILLABLE)

    def _exit(self, code: int) -> NoReturn:
        # Not sys.exit: this may be any thread, and RQ would catch it.
        os._exit(code)

    @property
    def _slot(self) -> _Slot:
        return {
            "device_id": self._address.device_id,
            "epoch": self._address.epoch,
            "slot_number": self._address.slot_number,
        }

    def _event(self, kind: DeviceEventKind, detail: str) -> None:
        record_event(
            device_id=self._address.device_id,
            epoch=self._address.epoch,
            kind=kind,
            detail=detail,
            slot_number=self._address.slot_number,
        )
