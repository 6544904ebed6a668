"""The serial worker of one device slot: an RQ worker that holds no model, beside an engine process that does."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import time
import uuid

from django.db import DatabaseError, InterfaceError, OperationalError, connection

from portal.lib.database import drop_broken_connections
from tts.audio.speech_check import SpeechCheck
from tts.engine.errors import BACKEND_GONE, OUT_OF_MEMORY
from tts.engine.process import (
    BudgetExhausted,
    EngineCanceled,
    EngineDied,
    EngineError,
    EngineFailure,
    EngineHung,
    EngineProcess,
)
from tts.late_settlement import LateSettlement
from tts.models import Attempt, DeviceSlot
from tts.models.operations import DeviceEventKind
from tts.services import attempts, failures, health
from tts.services.attempts import Fenced, Work
from tts.services.bind import Binding, bind_next, hand_over, true_up_shares
from tts.services.claiming import HandedOver, claim_attempt, hand_over_claimed
from tts.services.device_events import record_event
from tts.services.yielding import yield_attempt
from tts.slot_keeper import EXIT_ENGINE_FAILED, EXIT_SUPERSEDED, SlotKeeper, SupersededError
from tts.slot_worker import SlotAddress, SlotWorker
from tts.speaking import Speaking, VoiceGone
from tts.states import AttemptState
from tts.watch import Watch

logger = logging.getLogger(__name__)

# One message of RQ's carries a worker through so much work; far below RQ_TIMEOUT_S (tts.services.bind), at which RQ
# would interrupt it, with the longest segment on top.
ONE_MESSAGE_S = 60.0
# How long a request that hung has to end by itself before its process is killed.
GIVE_UP_S = 0.5

_runner: Runner | None = None


def current_runner() -> Runner:
    """This process's runner. Raises RuntimeError in a process that is no worker."""
    if _runner is None:
        raise RuntimeError("attempts are spoken only in a worker that `manage.py gpu_worker` started")
    return _runner


class Runner:
    """Speaks attempts one after the other in the engine process that the slot's keeper keeps."""

    def __init__(self, *, address: SlotAddress, worker_name: str, engine: str, visible_device: str) -> None:
        self.address = address
        self.worker_name = worker_name
        self.keeper = SlotKeeper(
            address=address,
            worker_name=worker_name,
            engine=engine,
            visible_device=visible_device,
            bind_next=self.bind_next,
        )
        self.late = LateSettlement()
        self.watch = Watch(
            address=address,
            worker_name=worker_name,
            keeper=self.keeper,
            on_tick=self.late.make_if_overdue,
        )

    def start(self, process: EngineProcess | None = None) -> None:
        """Load and warm the engine, then offer the slot. `process`: one that was started (not loaded) already.

        Raises SupersededError, EngineFailure.
        """
        self.watch.start()
        self.keeper.start(process)
        self.watch.start_tending()

    def stop(self) -> None:
        """Take the slot out and end the engine."""
        self.watch.stop()
        self.late.make()
        self.keeper.stop()
        with contextlib.suppress(DatabaseError):
            self.watch.note_time()

    def bind_next(self) -> None:
        """Give this slot its next segment, when it is free."""
        if not self.keeper.ready:
            return
        slot = (
            DeviceSlot.objects.select_related("device")
            .filter(
                device_id=self.address.device_id, number=self.address.slot_number, attempt_id__isnull=True
            )
            .first()
        )
        if slot is not None:
            bind_next(slot=slot)

    # --- one attempt -------------------------------------------------------------------------------------------

    def run(self, attempt_id: uuid.UUID) -> None:
        """Speak one attempt, and those that the slot is given while work waits, for up to a minute; settle each.

        The slot gets its next segment before the spoken one is settled. It comes by the wire again once the minute is
        over, so that RQ can look after its worker in between. An engine's fault does not raise.
        """
        by_wire_at = time.monotonic() + ONE_MESSAGE_S
        with self.keeper.in_use:
            if self.keeper.discard_dead():
                # Nobody's fault, and nothing was begun: others speak it.
                health.take_back(device_id=self.address.device_id, slot_number=self.address.slot_number)
            elif (process := self.keeper.process) is not None:
                work = self._claim(attempt_id)
                while work is not None:
                    # What comes next is claimed already: the engine is not let go of in between.
                    handed = self._run(work, process, by_wire=time.monotonic() > by_wire_at)
                    if isinstance(handed, Binding):
                        return
                    work = self._taken(handed)
        self.late.make()
        self.bind_next()

    def _run(self, work: Work, process: EngineProcess, *, by_wire: bool) -> Binding | HandedOver | None:
        """Returns what the slot has been given next already; this one is settled late then."""
        drop_broken_connections()
        attempt_id = work.attempt.pk
        self.watch.begin(attempt_id)
        speaking = Speaking(work, process, wanted=self.watch.must_stop, on_sent=lambda: self._sent(work))
        handed: Binding | HandedOver | None = None
        try:
            if self._speak(speaking, process):
                handed = None if speaking.rest else self._hand_over(work, process, by_wire=by_wire)
                if handed is not None:
                    self.late.put(
                        lambda: self._settle_late(speaking),
                        give_up=lambda: attempts.expire_lease(attempt_id=attempt_id),
                    )
                else:
                    self._settle(speaking)
        except Fenced:
            self._fenced(attempt_id)
        finally:
            self.watch.end()
            if handed is None:
                speaking.end_live_audio()
        self.keeper.note_spoken()
        return handed

    def _claim(self, attempt_id: uuid.UUID) -> Work | None:
        """What came by the wire; None when it is not waiting any more."""
        drop_broken_connections()
        try:
            try:
                return claim_attempt(attempt_id=attempt_id)
            except (OperationalError, InterfaceError):
                # The database was away while this worker waited, and its connection does not know it yet.
                connection.close()
                return claim_attempt(attempt_id=attempt_id)
        except Fenced:
            self._abandon_bound(attempt_id)
            return None

    def _taken(self, handed: HandedOver | None) -> Work | None:
        if handed is not None and handed.work is None:
            self._abandon_bound(handed.attempt_id)
        return handed.work if handed is not None else None

    def _sent(self, work: Work) -> None:
        """What is done once the engine has its request, so that the engine does not wait for it."""
        with contextlib.suppress(DatabaseError):  # the next segment's claim, or the end, makes up for it
            attempts.begin_job(work=work)
        self.late.make()

    def _fenced(self, attempt_id: uuid.UUID) -> None:
        logger.info("attempt_fenced", extra={"attempt_id": attempt_id})
        self._abandon(attempt_id)

    def _abandon_bound(self, attempt_id: uuid.UUID) -> None:
        """An attempt that could not be claimed: its slot is free. One that runs is spoken or settled late already."""
        if not Attempt.objects.filter(pk=attempt_id, state=AttemptState.RUNNING).exists():
            self._abandon(attempt_id)

    def _abandon(self, attempt_id: uuid.UUID) -> None:
        attempt = Attempt.objects.select_related("segment__voice", "job__voice").filter(pk=attempt_id).first()
        if attempt is not None:
            attempts.abandon_attempt(attempt=attempt)

    def _speak(self, speaking: Speaking, process: EngineProcess) -> bool:
        """Whether it was spoken, and is still to be settled; every other end is settled here."""
        work = speaking.work
        try:
            with self.keeper.time.working():
                speaking.speak()
        except VoiceGone:
            attempts.fail_attempt(
                work=work, error_code="voice_deleted", error_detail="", gpu_ms=0, blame_user=True
            )
        except EngineCanceled as stopped:
            if self.watch.lease_lost.is_set():
                raise Fenced from stopped
            outcome = speaking.outcome(stopped.gpu_ms)
            attempts.stop_attempt(work=work, outcome=outcome, error_code="canceled")
        except BudgetExhausted as stopped:
            outcome = speaking.outcome(stopped.gpu_ms)
            attempts.stop_attempt(work=work, outcome=outcome, error_code="budget_exhausted")
        except EngineError as error:
            if error.code == OUT_OF_MEMORY:
                self._lose_engine(work, error.code, error.message, gpu_ms=error.gpu_ms)
                return False
            attempts.fail_attempt(
                work=work,
                error_code=error.code,
                error_detail=error.message,
                gpu_ms=error.gpu_ms,
                blame_user=error.blame == "user",
            )
            if error.code == BACKEND_GONE:
                # Nobody's strike. A fresh one does not come up before its server is back: until then the slot is out.
                self.keeper.discard(error.code)
        except EngineDied as error:
            self._lose_engine(work, "engine_died", str(error))
        except EngineHung as error:
            process.give_up(speaking.request_id, GIVE_UP_S)
            self._lose_engine(work, f"engine_hung_{error.kind}", str(error))
        else:
            if speaking.ran_out_of_memory:
                self._tell(DeviceEventKind.OUT_OF_MEMORY, "a second, smaller try went well", work)
            return True
        return False

    def _hand_over(self, work: Work, process: EngineProcess, *, by_wire: bool) -> Binding | HandedOver | None:
        """Give the slot its next segment, where one waits: the device is not to wait for the settlement."""
        if not self.keeper.ready or not process.alive:
            return None
        take = hand_over if by_wire else hand_over_claimed
        return take(
            device_id=self.address.device_id,
            slot_number=self.address.slot_number,
            attempt_id=work.attempt.pk,
        )

    def _settle(self, speaking: Speaking) -> None:
        check = speaking.check()
        # Silence is no speech: where no other try is left, that fails too.
        if check.is_bad and (check.is_silent or attempts.may_be_tried_again(speaking.work, check)):
            self._reject(speaking, check)
            return
        outcome = speaking.outcome(speaking.gpu_ms, check=check)
        if speaking.rest:
            yield_attempt(work=speaking.work, outcome=outcome, spoken=speaking.spoken, rest=speaking.rest)
        else:
            attempts.finish_attempt(work=speaking.work, outcome=outcome)

    def _reject(self, speaking: Speaking, check: SpeechCheck) -> None:
        """What was spoken is bad: nobody pays for it, and it is spoken again by another seed."""
        attempts.fail_attempt(
            work=speaking.work,
            error_code=attempts.SPEECH_REJECTED,
            error_detail=", ".join(check.findings),
            gpu_ms=speaking.gpu_ms,
            blame_user=False,
            rejected=speaking.rejected(check),
        )

    def _settle_late(self, speaking: Speaking) -> None:
        try:
            self._settle(speaking)
        except Fenced:
            self._fenced(speaking.work.attempt.pk)
        finally:
            speaking.end_live_audio()
        with contextlib.suppress(DatabaseError):  # the next decision makes up for it
            true_up_shares()

    def _lose_engine(self, work: Work, error_code: str, detail: str, *, gpu_ms: int = 0) -> None:
        """The engine died, hangs, or has no memory: settle the attempt so that others go on with it, and kill what
        is left. The device and the segment each have a strike for it."""
        try:
            with contextlib.suppress(Fenced):
                failures.fail_with_engine(
                    work=work, error_code=error_code, error_detail=detail, gpu_ms=gpu_ms
                )
            if error_code == OUT_OF_MEMORY:
                self._tell(DeviceEventKind.OUT_OF_MEMORY, "twice in one request", work)
        finally:
            self.keeper.discard(error_code)

    def _tell(self, kind: DeviceEventKind, detail: str, work: Work) -> None:
        record_event(
            device_id=self.address.device_id,
            epoch=self.address.epoch,
            kind=kind,
            detail=detail,
            slot_number=self.address.slot_number,
            attempt_id=work.attempt.pk,
        )


def serve_slot(
    *, address: SlotAddress, engine: str, visible_device: str, started: EngineProcess | None = None
) -> int:
    """Serve one slot until told to stop; returns the process's exit code."""
    global _runner
    name = f"device-{address.device_id}-slot-{address.slot_number}-{secrets.token_hex(4)}-{os.getpid()}"
    _runner = Runner(address=address, worker_name=name, engine=engine, visible_device=visible_device)
    try:
        _runner.start(started)
        # Built only now: RQ registers its worker at once, and a worker that is not ready must not be seen.
        worker = SlotWorker(address=address, name=name, on_stop=_runner.keeper.hold_back)
        worker.work(with_scheduler=False, logging_level="WARNING")
    except SupersededError:
        return EXIT_SUPERSEDED
    except EngineFailure as error:
        logger.error("engine_not_loaded", extra={"detail": str(error), "kind": type(error).__name__})
        return EXIT_ENGINE_FAILED
    finally:
        _runner.stop()
    return 0
