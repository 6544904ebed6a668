"""The serial worker of one device slot: an RQ worker that holds no model, beside an engine process that does."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import redis

from portal.lib.queues import redis_connection
from tts import storage
from tts.audio.peaks import waveform_peaks
from tts.audio.wav import pcm_duration_ms, wav_file
from tts.engine.errors import OUT_OF_MEMORY
from tts.engine.process import (
    BudgetExhausted,
    Chunk,
    Done,
    EngineCanceled,
    EngineDied,
    EngineError,
    EngineFailure,
    EngineHung,
    EngineProcess,
)
from tts.engine.protocol import SpeakRequest, VoiceReference
from tts.late_settlement import LateSettlement
from tts.models import Attempt, DeviceSlot, VoiceKind
from tts.models.operations import DeviceEventKind
from tts.services import attempts, failures, health, wakeups
from tts.services.attempts import Fenced, Outcome, Work
from tts.services.bind import bind_next, hand_over
from tts.services.device_events import record_event
from tts.services.endings import PEAK_COUNT
from tts.services.streams import SAMPLE_RATE_HZ
from tts.slot_keeper import EXIT_ENGINE_FAILED, EXIT_SUPERSEDED, SlotKeeper, SupersededError
from tts.slot_worker import SlotAddress, SlotWorker
from tts.states import VoiceState
from tts.watch import Watch

logger = logging.getLogger(__name__)

# The watchdogs: no progress for this long, or five times the estimate and a fixed part in all, is a hang.
# The settings exist for operators whose cards are slow, and for tests.
NO_PROGRESS_S = float(os.environ.get("VOICEPOOL_NO_PROGRESS_S", "20"))
DEADLINE_FACTOR = 5
DEADLINE_BASE_S = float(os.environ.get("VOICEPOOL_DEADLINE_BASE_S", "20"))
# Between two looks at the cancel flag while the engine speaks.
CANCEL_POLL_S = 0.2
# How long a request that hung has to end by itself before its process is killed.
GIVE_UP_S = 0.5
AUDIO_STREAM_TTL_S = 3600

_runner: Runner | None = None


def current_runner() -> Runner:
    """This process's runner. Raises RuntimeError in a process that is no worker."""
    if _runner is None:
        raise RuntimeError("attempts are spoken only in a worker that `manage.py gpu_worker` started")
    return _runner


@dataclass
class Speech:
    """What has been spoken of an attempt so far."""

    pcm: bytearray = field(default_factory=bytearray)
    first_chunk_gpu_ms: int | None = None

    @property
    def audio_ms(self) -> int:
        return pcm_duration_ms(pcm_bytes=len(self.pcm), sample_rate_hz=SAMPLE_RATE_HZ)


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
        """Speak one attempt and settle it, and bind the slot's next segment: the latter first where one waits. An
        engine's fault does not raise."""
        with self.keeper.in_use:
            handed_over = False
            if self.keeper.discard_dead():
                # Nobody's fault, and nothing was begun: others speak it.
                health.take_back(device_id=self.address.device_id, slot_number=self.address.slot_number)
            elif (process := self.keeper.process) is not None:
                handed_over = self._run(attempt_id, process)
        if not handed_over:
            self.late.make()
            self.bind_next()

    def _run(self, attempt_id: uuid.UUID, process: EngineProcess) -> bool:
        """Returns whether the slot has its next segment already."""
        try:
            work = attempts.claim_attempt(attempt_id=attempt_id)
        except Fenced:
            self._abandon(attempt_id)
            return False
        self.watch.begin(attempt_id)
        handed_over = False
        try:
            handed_over = self._speak_and_settle(work, process)
        except Fenced:
            self._fenced(attempt_id)
        finally:
            self.watch.end()
            if not handed_over:
                self._end_audio_stream(attempt_id)
        self.keeper.note_spoken()
        return handed_over

    def _fenced(self, attempt_id: uuid.UUID) -> None:
        logger.info("attempt_fenced", extra={"attempt_id": attempt_id})
        self._abandon(attempt_id)

    def _abandon(self, attempt_id: uuid.UUID) -> None:
        attempt = Attempt.objects.select_related("segment", "job__voice").filter(pk=attempt_id).first()
        if attempt is not None:
            attempts.abandon_attempt(attempt=attempt)

    def _speak_and_settle(self, work: Work, process: EngineProcess) -> bool:
        """Returns whether the slot was handed over to its next segment; this one is settled late then."""
        speech = Speech()
        try:
            request = self._build_request(work)
        except FileNotFoundError:
            attempts.fail_attempt(
                work=work, error_code="voice_deleted", error_detail="", gpu_ms=0, blame_user=True
            )
            return False
        try:
            done = self._speak(work, process, request, speech)
        except EngineCanceled as stopped:
            if self.watch.lease_lost.is_set():
                raise Fenced from stopped
            attempts.stop_attempt(
                work=work, outcome=self._outcome(work, speech, stopped.gpu_ms), error_code="canceled"
            )
        except BudgetExhausted as stopped:
            outcome = self._outcome(work, speech, stopped.gpu_ms)
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
        except EngineDied as error:
            self._lose_engine(work, "engine_died", str(error))
        except EngineHung as error:
            process.give_up(request.request_id, GIVE_UP_S)
            self._lose_engine(work, f"engine_hung_{error.kind}", str(error))
        else:
            if done.ran_out_of_memory:
                self._tell(DeviceEventKind.OUT_OF_MEMORY, "a second, smaller try went well", work)
            if self._hand_over(work):
                self.late.put(lambda: self._settle_late(work, speech, done.gpu_ms))
                return True
            attempts.finish_attempt(work=work, outcome=self._outcome(work, speech, done.gpu_ms))
        return False

    def _hand_over(self, work: Work) -> bool:
        """Give the slot its next segment, where one waits: the device is not to wait for the settlement."""
        return self.keeper.ready and (
            hand_over(
                device_id=self.address.device_id,
                slot_number=self.address.slot_number,
                attempt_id=work.attempt.pk,
            )
            is not None
        )

    def _settle_late(self, work: Work, speech: Speech, gpu_ms: int) -> None:
        try:
            attempts.finish_attempt(work=work, outcome=self._outcome(work, speech, gpu_ms))
        except Fenced:
            self._fenced(work.attempt.pk)
        finally:
            self._end_audio_stream(work.attempt.pk)

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

    def _build_request(self, work: Work) -> SpeakRequest:
        voice = work.voice
        if voice.state == VoiceState.DELETED:
            raise FileNotFoundError(voice.clip_key)
        clip = storage.read(voice.clip_key) if voice.kind == VoiceKind.CLONE else b""
        return SpeakRequest(
            request_id=str(work.attempt.pk),
            text=work.segment.text,
            language=work.job.language,
            voice=VoiceReference(
                kind=voice.kind,
                preset_key=voice.preset_key,
                reference_sha256=voice.clip_sha256,
                transcript=voice.transcript,
                language=voice.language,
            ),
            seed=work.job.seed,
            speed=work.job.speed,
            max_gpu_ms=work.segment.held_gpu_ms,
            reference_wav=clip,
        )

    def _speak(self, work: Work, engine: EngineProcess, request: SpeakRequest, speech: Speech) -> Done:
        """Relay the engine's chunks to those who listen live, and gather them. Returns the engine's own measure."""
        looked_at = time.monotonic()

        def look_for_cancel() -> None:
            nonlocal looked_at
            if time.monotonic() - looked_at < CANCEL_POLL_S:
                return
            looked_at = time.monotonic()
            wanted = self.watch.lease_lost.is_set() or self.watch.stop_wanted.is_set()
            if wanted or wakeups.is_cancel_flagged(job_id=work.job.pk):
                engine.cancel(request.request_id)

        deadline_s = DEADLINE_BASE_S + DEADLINE_FACTOR * work.segment.estimate_gpu_ms / 1000
        for event in engine.speak(
            request,
            no_progress_s=NO_PROGRESS_S,
            deadline_s=deadline_s,
            on_idle=look_for_cancel,
            on_sent=self._sent(work),
        ):
            if isinstance(event, Chunk):
                self._take_chunk(work, speech, event)
                look_for_cancel()
            else:
                return event
        raise EngineDied("the engine ended a request without saying so")

    def _sent(self, work: Work) -> Callable[[], None]:
        """What is done once the engine has its request, so that the engine does not wait for it."""

        def sent() -> None:
            wakeups.wake_job(job_id=work.job.pk)
            self.late.make()

        return sent

    def _take_chunk(self, work: Work, speech: Speech, chunk: Chunk) -> None:
        first = not speech.pcm
        speech.pcm += chunk.pcm
        self._publish(wakeups.audio_key(work.attempt.pk), {"pcm": chunk.pcm})
        if first:
            # After the listeners have it: what is written down is not what they wait for.
            speech.first_chunk_gpu_ms = chunk.gpu_ms
            attempts.note_first_chunk(attempt=work.attempt)
            wakeups.wake_job(job_id=work.job.pk)

    def _outcome(self, work: Work, speech: Speech, gpu_ms: int) -> Outcome:
        """Store what was spoken, under the attempt's own key, and measure it."""
        if not speech.pcm:
            return Outcome(gpu_ms=gpu_ms, audio_ms=0)
        pcm = bytes(speech.pcm)
        key = storage.attempt_audio_key(
            workspace_id=work.job.workspace_id, job_id=work.job.pk, attempt_id=work.attempt.pk
        )
        storage.save(key, wav_file(pcm, sample_rate_hz=SAMPLE_RATE_HZ))
        return Outcome(
            gpu_ms=gpu_ms,
            audio_ms=speech.audio_ms,
            audio_key=key,
            first_chunk_gpu_ms=speech.first_chunk_gpu_ms,
            peaks=waveform_peaks(pcm, count=PEAK_COUNT) if work.job.segment_count == 1 else None,
        )

    def _publish(self, key: str, fields: dict[str, bytes]) -> None:
        """Send to live listeners. Redis being away costs them their live audio, never the job."""
        try:
            redis_connection().xadd(key, cast(Any, fields))
        except redis.RedisError as error:
            logger.warning("publish_failed", extra={"error": type(error).__name__})

    def _end_audio_stream(self, attempt_id: uuid.UUID) -> None:
        key = wakeups.audio_key(attempt_id)
        self._publish(key, {"end": b"1"})
        with contextlib.suppress(redis.RedisError):
            redis_connection().expire(key, AUDIO_STREAM_TTL_S)


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
