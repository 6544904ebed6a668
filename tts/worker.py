"""The serial worker of one device slot: an RQ worker that holds no model, beside an engine process that does."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import redis
from django.db import DatabaseError, close_old_connections

from portal.lib.queues import redis_connection
from tts import storage
from tts.audio.peaks import waveform_peaks
from tts.audio.wav import pcm_duration_ms, wav_file
from tts.engine.process import (
    BudgetExhausted,
    Chunk,
    Done,
    EngineCanceled,
    EngineDied,
    EngineError,
    EngineHung,
    EngineProcess,
)
from tts.engine.protocol import SpeakRequest, VoiceReference
from tts.models import Attempt, DeviceSlot, VoiceKind
from tts.services import attempts, devices, wakeups
from tts.services.attempts import Fenced, Outcome, Work
from tts.services.bind import bind_next
from tts.services.endings import PEAK_COUNT
from tts.services.streams import SAMPLE_RATE_HZ
from tts.slot_engine import build_engine
from tts.slot_worker import SlotAddress, SlotWorker
from tts.states import LEASE_RENEWAL_SECONDS, VoiceState

logger = logging.getLogger(__name__)

LOAD_TIMEOUT_S = 300.0
WARM_UP_TIMEOUT_S = 120.0
# The watchdogs: no progress for this long, or five times the estimate and a fixed part in all, is a hang.
# The setting exists for operators whose cards are slow, and for tests.
NO_PROGRESS_S = float(os.environ.get("VOICEPOOL_NO_PROGRESS_S", "20"))
DEADLINE_FACTOR = 5
DEADLINE_BASE_S = 20.0
# Between two looks at the cancel flag while the engine speaks.
CANCEL_POLL_S = 0.2
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
    """Speaks attempts one after the other in an engine process, which it replaces when it dies or hangs."""

    def __init__(
        self, *, address: SlotAddress, worker_name: str, engine_factory: Callable[[], EngineProcess]
    ) -> None:
        self.address = address
        self.worker_name = worker_name
        self._engine_factory = engine_factory
        self._engine: EngineProcess | None = None
        self._engine_version = ""
        self._ready = False
        self._attempt_id: uuid.UUID | None = None
        self._lease_lost = threading.Event()
        self._stopping = threading.Event()
        self._beat = threading.Thread(target=self._beat_forever, name="lease", daemon=True)

    # --- the engine's life -------------------------------------------------------------------------------------

    def start(self, engine: EngineProcess | None = None) -> None:
        """Load and warm the engine, then offer the slot. `engine`: one that was started (not loaded) already."""
        self._beat.start()
        self._bring_up(engine)

    def _bring_up(self, engine: EngineProcess | None = None) -> None:
        self._engine = engine or self._engine_factory()
        if engine is None:
            self._engine.start()
        loaded = self._engine.load(LOAD_TIMEOUT_S)
        self._engine_version = loaded.engine_version
        self._engine.warm_up(WARM_UP_TIMEOUT_S)
        self._offer_slot()

    def _offer_slot(self) -> None:
        engine = self._live_engine()
        taken = devices.slot_ready(
            device_id=self.address.device_id,
            epoch=self.address.epoch,
            slot_number=self.address.slot_number,
            worker_name=self.worker_name,
            worker_pid=os.getpid(),
            engine_pid=engine.pid or 0,
            engine_version=self._engine_version,
        )
        if not taken:
            raise SupersededError
        self._ready = True
        logger.info(
            "slot_ready", extra={"device_id": self.address.device_id, "slot": self.address.slot_number}
        )
        self.bind_next()

    def _live_engine(self) -> EngineProcess:
        if self._engine is None:
            raise RuntimeError("the engine is started before anything is asked of it")
        return self._engine

    def _replace_engine(self) -> None:
        """Kill what is left of the engine and start a fresh one. The slot is not offered meanwhile."""
        self._ready = False
        devices.slot_not_ready(
            device_id=self.address.device_id,
            epoch=self.address.epoch,
            slot_number=self.address.slot_number,
            restarted=True,
        )
        if self._engine is not None and not self._engine.kill():
            # Not dead 10 s after SIGKILL: the driver holds it. Only the agent and an operator can help.
            raise EngineUnkillableError
        self._bring_up()

    def stop(self) -> None:
        """Take the slot out and end the engine."""
        self._ready = False
        self._stopping.set()
        with contextlib.suppress(DatabaseError):
            devices.slot_not_ready(
                device_id=self.address.device_id,
                epoch=self.address.epoch,
                slot_number=self.address.slot_number,
            )
        if self._engine is not None:
            self._engine.stop(3.0)

    def bind_next(self) -> None:
        """Give this slot its next segment, when it is free."""
        slot = (
            DeviceSlot.objects.select_related("device")
            .filter(
                device_id=self.address.device_id, number=self.address.slot_number, attempt_id__isnull=True
            )
            .first()
        )
        if slot is not None and self._ready:
            bind_next(slot=slot)

    # --- beats -------------------------------------------------------------------------------------------------

    def _beat_forever(self) -> None:
        """Renew the lease and the slot's heartbeat every 2 s. Losing either means that somebody else goes on."""
        while not self._stopping.wait(LEASE_RENEWAL_SECONDS):
            attempt_id = self._attempt_id
            try:
                close_old_connections()
                alive = devices.slot_heartbeat(
                    device_id=self.address.device_id,
                    epoch=self.address.epoch,
                    slot_number=self.address.slot_number,
                    ready=self._ready,
                )
                if not alive:
                    logger.error("worker_superseded", extra={"device_id": self.address.device_id})
                    os._exit(EXIT_SUPERSEDED)
                # The attempt may have been settled between the two reads: then its lease is nobody's business.
                if (
                    attempt_id
                    and not attempts.renew_lease(attempt_id=attempt_id)
                    and self._attempt_id == attempt_id
                ):
                    self._lease_lost.set()
            except DatabaseError as error:
                logger.warning("beat_failed", extra={"error": type(error).__name__})

    # --- one attempt -------------------------------------------------------------------------------------------

    def run(self, attempt_id: uuid.UUID) -> None:
        """Speak one attempt and settle it; then bind the slot's next segment. An engine's fault does not raise."""
        try:
            work = attempts.claim_attempt(attempt_id=attempt_id)
        except Fenced:
            self._abandon(attempt_id)
            self.bind_next()
            return
        self._lease_lost.clear()
        self._attempt_id = attempt_id
        replace = False
        try:
            replace = self._speak_and_settle(work)
        except Fenced:
            logger.info("attempt_fenced", extra={"attempt_id": attempt_id})
            self._abandon(attempt_id)
        finally:
            self._attempt_id = None
            self._end_audio_stream(attempt_id)
        if replace:
            self._replace_engine()
        else:
            self.bind_next()

    def _abandon(self, attempt_id: uuid.UUID) -> None:
        attempt = Attempt.objects.select_related("segment", "job__voice").filter(pk=attempt_id).first()
        if attempt is not None:
            attempts.abandon_attempt(attempt=attempt)

    def _speak_and_settle(self, work: Work) -> bool:
        """Returns whether the engine process has to be replaced."""
        speech = Speech()
        try:
            request = self._build_request(work)
        except FileNotFoundError:
            attempts.fail_attempt(
                work=work, error_code="voice_deleted", error_detail="", gpu_ms=0, blame_user=True
            )
            return False
        try:
            done = self._speak(work, request, speech)
        except EngineCanceled as stopped:
            if self._lease_lost.is_set():
                raise Fenced from stopped
            attempts.stop_attempt(
                work=work, outcome=self._outcome(work, speech, stopped.gpu_ms), error_code="canceled"
            )
        except BudgetExhausted as stopped:
            outcome = self._outcome(work, speech, stopped.gpu_ms)
            attempts.stop_attempt(work=work, outcome=outcome, error_code="budget_exhausted")
        except EngineError as error:
            attempts.fail_attempt(
                work=work,
                error_code=error.code,
                error_detail=error.message,
                gpu_ms=error.gpu_ms,
                blame_user=error.blame == "user",
            )
        except (EngineDied, EngineHung) as error:
            code = "engine_died" if isinstance(error, EngineDied) else f"engine_hung_{error.kind}"
            with contextlib.suppress(Fenced):
                attempts.fail_attempt(
                    work=work, error_code=code, error_detail=str(error), gpu_ms=0, blame_user=False
                )
            return True
        else:
            attempts.finish_attempt(work=work, outcome=self._outcome(work, speech, done.gpu_ms))
        return False

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

    def _speak(self, work: Work, request: SpeakRequest, speech: Speech) -> Done:
        """Relay the engine's chunks to those who listen live, and gather them. Returns the engine's own measure."""
        engine, looked_at = self._live_engine(), time.monotonic()

        def look_for_cancel() -> None:
            nonlocal looked_at
            if time.monotonic() - looked_at < CANCEL_POLL_S:
                return
            looked_at = time.monotonic()
            if self._lease_lost.is_set() or wakeups.is_cancel_flagged(job_id=work.job.pk):
                engine.cancel(request.request_id)

        deadline_s = DEADLINE_BASE_S + DEADLINE_FACTOR * work.segment.estimate_gpu_ms / 1000
        for event in engine.speak(
            request, no_progress_s=NO_PROGRESS_S, deadline_s=deadline_s, on_idle=look_for_cancel
        ):
            if isinstance(event, Chunk):
                self._take_chunk(work, speech, event)
                look_for_cancel()
            else:
                return event
        raise EngineDied("the engine ended a request without saying so")

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


class SupersededError(Exception):
    """A newer incarnation of the device's agent has started its own worker for this slot."""


class EngineUnkillableError(Exception):
    """The engine process did not die within 10 s of SIGKILL."""


EXIT_SUPERSEDED = 71
EXIT_UNKILLABLE = 72


def serve_slot(
    *, address: SlotAddress, engine: str, visible_device: str, started: EngineProcess | None = None
) -> int:
    """Serve one slot until told to stop; returns the process's exit code."""
    global _runner
    name = f"device-{address.device_id}-slot-{address.slot_number}-{secrets.token_hex(4)}-{os.getpid()}"
    _runner = Runner(
        address=address,
        worker_name=name,
        engine_factory=lambda: build_engine(engine=engine, visible_device=visible_device),
    )
    try:
        _runner.start(started)
        # Built only now: RQ registers its worker at once, and a worker that is not ready must not be seen.
        SlotWorker(address=address, name=name).work(with_scheduler=False, logging_level="WARNING")
    except SupersededError:
        return EXIT_SUPERSEDED
    except EngineUnkillableError:
        return EXIT_UNKILLABLE
    finally:
        _runner.stop()
    return 0
