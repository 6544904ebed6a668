"""A worker's two side threads: the beat, which says that the worker lives, and the keeper's, which tends the engine."""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Callable

from django.db import DatabaseError, close_old_connections

from tts.services import attempts, slots
from tts.services.device_time import add_device_time
from tts.services.slots import SlotView
from tts.slot_keeper import EXIT_SUPERSEDED, SlotKeeper, SupersededError
from tts.slot_worker import SlotAddress
from tts.states import LEASE_RENEWAL_SECONDS

logger = logging.getLogger(__name__)
TEND_EVERY_S = 1.0
EXIT_KEEPER_FAILED = 74


class Watch:
    """Renews the lease and the slot's heartbeat every 2 s; losing either means that somebody else goes on."""

    def __init__(
        self, *, address: SlotAddress, worker_name: str, keeper: SlotKeeper, on_tick: Callable[[], None]
    ) -> None:
        """`on_tick` is called every 2 s by the beat, which waits for no engine."""
        self.lease_lost = threading.Event()
        self.stop_wanted = threading.Event()
        self._address = address
        self._worker_name = worker_name
        self._keeper = keeper
        self._on_tick = on_tick
        self._attempt_id: uuid.UUID | None = None
        self._view: SlotView | None = None
        self._stopping = threading.Event()
        # Between the beat, which says what became of an attempt, and the worker, which goes on to the next.
        self._attempt_lock = threading.Lock()

    def start(self) -> None:
        """Begin to beat, before the first engine is up."""
        threading.Thread(target=self._beat_forever, name="beat", daemon=True).start()

    def start_tending(self) -> None:
        """Begin to tend the engine, once the first one is up."""
        threading.Thread(target=self._tend_forever, name="keeper", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()
        self._keeper.wake.set()

    def begin(self, attempt_id: uuid.UUID) -> None:
        """This attempt's lease is renewed from now on."""
        with self._attempt_lock:
            self.lease_lost.clear()
            self.stop_wanted.clear()
            self._attempt_id = attempt_id

    def end(self) -> None:
        with self._attempt_lock:
            self._attempt_id = None

    def note_time(self) -> None:
        """Write down where the slot's time went since the last time."""
        spent = self._keeper.time.take()
        try:
            add_device_time(device_id=self._address.device_id, spent=spent)
        except DatabaseError:
            self._keeper.time.put_back(spent)
            raise

    def _say(self, event: threading.Event, attempt_id: uuid.UUID) -> None:
        """Set it for this attempt, if that is still the one that is spoken."""
        with self._attempt_lock:
            if self._attempt_id == attempt_id:
                event.set()

    def must_stop(self) -> bool:
        """Whether the attempt that is being spoken has been taken away, or its job is over."""
        return self.lease_lost.is_set() or self.stop_wanted.is_set()

    def _beat_forever(self) -> None:
        while not self._stopping.wait(LEASE_RENEWAL_SECONDS):
            try:
                close_old_connections()
                self._on_tick()
                self._beat()
                self.note_time()
            except DatabaseError as error:
                logger.warning("beat_failed", extra={"error": type(error).__name__})

    def _beat(self) -> None:
        attempt_id, before = self._attempt_id, self._view
        if self._heartbeat() != before:
            self._keeper.wake.set()
        if attempt_id is None:
            return
        # Of an attempt that was settled between the two reads, nothing is anybody's business.
        if not attempts.renew_lease(attempt_id=attempt_id):
            self._say(self.lease_lost, attempt_id)
        elif attempts.must_stop(attempt_id=attempt_id):
            self._say(self.stop_wanted, attempt_id)

    def _heartbeat(self) -> SlotView:
        """Say that the worker lives, and read how its device stands. Ends the process when it is another's."""
        view = slots.slot_heartbeat(
            device_id=self._address.device_id,
            epoch=self._address.epoch,
            slot_number=self._address.slot_number,
            worker_name=self._worker_name,
            ready=self._keeper.ready,
        )
        if view is None:
            logger.error("worker_superseded", extra={"device_id": self._address.device_id})
            os._exit(EXIT_SUPERSEDED)
        self._view = view
        return view

    def _tend_forever(self) -> None:
        while not self._stopping.is_set():
            called = self._keeper.wake.wait(TEND_EVERY_S)
            self._keeper.wake.clear()
            if self._stopping.is_set():
                return
            try:
                close_old_connections()
                # Whoever calls knows of something that the last beat did not see.
                view = self._heartbeat() if called or self._view is None else self._view
                if self._keeper.tend(view):
                    self._keeper.wake.set()
            except DatabaseError as error:
                logger.warning("keeper_without_database", extra={"error": type(error).__name__})
            except SupersededError:
                os._exit(EXIT_SUPERSEDED)
            except Exception:
                if self._stopping.is_set():
                    return
                # The engines that this thread has started end with it: better all of the worker, to be started anew.
                logger.exception("keeper_failed")
                os._exit(EXIT_KEEPER_FAILED)
