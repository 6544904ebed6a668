"""One attempt as it is spoken: what the engine is asked, and what becomes of its chunks."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any, cast

import redis
from django.db import DatabaseError

from portal.lib.queues import redis_connection
from tts import storage
from tts.audio.aigc import label_chunk
from tts.audio.peaks import waveform_peaks
from tts.audio.speech_check import SpeechCheck, check_speech
from tts.audio.wav import pcm_duration_ms, silence, wav_file
from tts.engine.catalogue import ENGINES
from tts.engine.errors import FEATURES_UNREADABLE
from tts.engine.process import (
    BudgetExhausted,
    Chunk,
    Done,
    EngineCanceled,
    EngineDied,
    EngineError,
    EngineProcess,
    Features,
)
from tts.engine.protocol import SpeakRequest, VoiceReference
from tts.models import VoiceKind
from tts.selectors.pronunciations import dictionary
from tts.selectors.voice_versions import voice_as
from tts.services import attempts, wakeups
from tts.services.attempts import Outcome, Work
from tts.services.endings import PEAK_COUNT
from tts.services.labels import label_of
from tts.services.streams import SAMPLE_RATE_HZ
from tts.services.voice_features import drop_features, keep_features, read_features
from tts.services.yielding import may_stop_before, pieces_of, urgent_work_waits
from tts.states import VoiceState
from tts.text.annotations import silence_ms
from tts.text.estimate import estimate_audio_ms
from tts.text.instructions import sentence_of
from tts.text.pauses import pause_after_ms
from tts.text.spoken import spoken_text
from tts.version_errors import VoiceVersionNotFound

logger = logging.getLogger(__name__)

# The watchdogs: no progress for this long, or five times the estimate and a fixed part in all, is a hang.
# The settings exist for operators whose cards are slow, and for tests.
NO_PROGRESS_S = float(os.environ.get("VOICEPOOL_NO_PROGRESS_S", "20"))
DEADLINE_FACTOR = 5
DEADLINE_BASE_S = float(os.environ.get("VOICEPOOL_DEADLINE_BASE_S", "20"))
# Between two looks at the cancel flag while the engine speaks.
CANCEL_POLL_S = 0.2
AUDIO_STREAM_TTL_S = 3600


class VoiceGone(Exception):
    """The voice, or the version of it that the segment speaks with, was deleted while the segment waited."""


class Speaking:
    """Speaks one attempt with one engine process. `wanted` says whether it is to stop, `on_sent` is called when the
    engine has its (first) request."""

    def __init__(
        self, work: Work, engine: EngineProcess, *, wanted: Callable[[], bool], on_sent: Callable[[], None]
    ) -> None:
        self.work = work
        self.gpu_ms = 0
        self.rest = ""
        """What is handed back, because urgent work waits; empty when all was spoken."""
        self.ran_out_of_memory = False
        self.request_id = ""
        self._engine = engine
        self._wanted = wanted
        self._on_sent = on_sent
        self._pcm = bytearray()
        self._first_chunk_gpu_ms: int | None = None
        # The job's own, or another one where the speech before this attempt was found bad.
        self._asked_seed = attempts.seed_of(work)
        # That, or another one with which the engine had to speak a part of it again.
        self._seed: int | None = None
        self._discarded_gpu_ms = 0
        # The least of its pieces, where the engine can tell.
        self._similarity: float | None = None
        self._clip, self._features = b"", b""
        self._voice = work.voice
        self._looked_at = time.monotonic()
        self._pronunciations = dictionary(work.job.workspace_id, work.job.pronunciation_version)
        self._pieces = pieces_of(work.segment.text, job_class=work.job.job_class)

    @property
    def spoken(self) -> str:
        """The text until `rest`."""
        text = self.work.segment.text
        return text[: len(text) - len(self.rest)]

    def speak(self) -> None:
        """Speak the segment, or its beginning when urgent work waits (`rest`).

        Raises:
            VoiceGone: the voice was deleted.
            EngineCanceled, BudgetExhausted, EngineError: with what all of it has used until then.
            EngineDied, EngineHung: see EngineProcess.speak.
        """
        self._read_reference()
        for number, text in enumerate(self._pieces):
            if number:
                if may_stop_before(self._pieces, number) and urgent_work_waits():
                    self.rest = "".join(self._pieces[number:])
                    return
                self._rest_between(self._pieces[number - 1])
            try:
                done = self._speak_piece(number, text)
            except (EngineCanceled, BudgetExhausted, EngineError) as stopped:
                stopped.gpu_ms += self.gpu_ms
                raise
            self.gpu_ms += done.gpu_ms
            self.ran_out_of_memory = self.ran_out_of_memory or done.ran_out_of_memory
            self._discarded_gpu_ms += done.written_off_ms
            if self._seed in (None, self._asked_seed):
                self._seed = done.seed
            if done.similarity is not None:
                known = done.similarity if self._similarity is None else self._similarity
                self._similarity = min(known, done.similarity)

    def check(self) -> SpeechCheck:
        """What can be found in all of it without hearing it: called when the engine says that it is done."""
        said = self._pronunciations.apply(self.spoken).text
        expected_ms = (estimate_audio_ms(said) + silence_ms(said)) / self.work.job.speed
        return check_speech(
            bytes(self._pcm),
            sample_rate_hz=SAMPLE_RATE_HZ,
            expected_ms=round(expected_ms),
            similarity=self._similarity,
            may_differ=bool(self.work.job.instruction or self.work.job.instruction_text),
        )

    def outcome(self, gpu_ms: int, *, check: SpeechCheck | None = None) -> Outcome:
        """Store what was spoken, under the attempt's own key, and measure it."""
        if not self._pcm:
            return self._nothing(gpu_ms, check)
        pcm, job = bytes(self._pcm), self.work.job
        key = storage.attempt_audio_key(
            workspace_id=job.workspace_id, job_id=job.pk, attempt_id=self.work.attempt.pk
        )
        chunk = label_chunk(label_of(job.pk))
        storage.save(key, wav_file(pcm, sample_rate_hz=SAMPLE_RATE_HZ, chunk=chunk))
        return Outcome(
            gpu_ms=gpu_ms,
            audio_ms=pcm_duration_ms(pcm_bytes=len(pcm), sample_rate_hz=SAMPLE_RATE_HZ),
            audio_key=key,
            first_chunk_gpu_ms=self._first_chunk_gpu_ms,
            peaks=waveform_peaks(pcm, count=PEAK_COUNT) if job.segment_count == 1 else None,
            seed=self._seed,
            discarded_gpu_ms=self._discarded_gpu_ms,
            check=check,
            engine=self._engine.engine,
            engine_version=self._engine_version(),
        )

    def rejected(self, check: SpeechCheck) -> Outcome:
        """What was spoken and is not kept, because it was found bad."""
        return self._nothing(self.gpu_ms, check)

    def _nothing(self, gpu_ms: int, check: SpeechCheck | None) -> Outcome:
        """Device time without audio."""
        return Outcome(
            gpu_ms=gpu_ms,
            audio_ms=0,
            seed=self._seed,
            check=check,
            engine=self._engine.engine,
            engine_version=self._engine_version(),
        )

    def _engine_version(self) -> str:
        """As the device's row has it."""
        return self._engine.loaded.engine_version if self._engine.loaded else ""

    def end_live_audio(self) -> None:
        """Tell those who listen live that this attempt says no more."""
        self._publish({"end": b"1"})

    def _read_reference(self) -> None:
        """The clip that the segment was quoted with, or what this engine has computed of it before."""
        voice, engine = self.work.voice, self._engine.loaded
        if voice.state == VoiceState.DELETED:
            raise VoiceGone
        if voice.kind != VoiceKind.CLONE:
            return
        try:
            voice = self._voice = voice_as(voice, self.work.segment.voice_version)
        except VoiceVersionNotFound as error:
            raise VoiceGone from error
        self._features = read_features(voice=voice, engine=engine) if engine else b""
        if not self._features:
            self._read_clip()

    def _read_clip(self) -> None:
        try:
            self._clip = storage.read(self._voice.clip_key)
        except FileNotFoundError as error:
            raise VoiceGone from error

    def _as_spoken(self, text: str) -> str:
        description = ENGINES.get(self._engine.engine)
        if description is not None and description.reads_as_written:
            return text
        return spoken_text(
            text,
            language=self.work.job.language,
            voice_language=self._voice.language,
            pronunciations=self._pronunciations,
        )

    def _request(self, number: int, text: str) -> SpeakRequest:
        job, voice = self.work.job, self._voice
        return SpeakRequest(
            request_id=f"{self.work.attempt.pk}/{number}",
            text=self._as_spoken(text),
            language=job.language,
            voice=VoiceReference(
                kind=voice.kind,
                preset_key=voice.preset_key,
                reference_sha256=voice.clip_sha256,
                transcript=voice.transcript,
                language=voice.language,
                tenant=str(job.workspace_id),
            ),
            seed=self._asked_seed,
            speed=job.speed,
            max_gpu_ms=max(1, self.work.segment.held_gpu_ms - self.gpu_ms),
            reference_wav=self._clip,
            features=self._features,
            instruction=job.instruction_text or sentence_of(job.instruction),
        )

    def _speak_piece(self, number: int, text: str) -> Done:
        """Have a piece spoken. Features that the engine cannot read are computed anew."""
        try:
            return self._relay(number, text)
        except EngineError as error:
            engine = self._engine.loaded
            if error.code != FEATURES_UNREADABLE or not self._features or engine is None:
                raise
            drop_features(voice=self._voice, engine=engine)
            self._features = b""
            self._read_clip()
            return self._relay(number, text)

    def _relay(self, number: int, text: str) -> Done:
        """Relay the engine's chunks to those who listen live, and gather them. Returns the engine's own measure."""
        request = self._request(number, text)
        self.request_id = request.request_id
        deadline_s = DEADLINE_BASE_S + DEADLINE_FACTOR * self.work.segment.estimate_gpu_ms / 1000
        for event in self._engine.speak(
            request,
            no_progress_s=NO_PROGRESS_S,
            deadline_s=deadline_s,
            on_idle=self._look_for_cancel,
            on_sent=None if number else self._on_sent,
        ):
            if isinstance(event, Done):
                return event
            if isinstance(event, Features):
                self._keep_features(event.content)
            else:
                self._take_chunk(event)
            self._look_for_cancel()
        raise EngineDied("the engine ended a request without saying so")

    def _keep_features(self, content: bytes) -> None:
        """For the next time, on any device. A storage that refuses them costs the time to compute them again."""
        if self._engine.loaded is None:
            return
        try:
            keep_features(voice=self._voice, engine=self._engine.loaded, content=content)
        except (OSError, DatabaseError) as error:
            logger.warning("voice_features_not_kept", extra={"error": type(error).__name__})

    def _look_for_cancel(self) -> None:
        if time.monotonic() - self._looked_at < CANCEL_POLL_S:
            return
        self._looked_at = time.monotonic()
        if self._wanted() or wakeups.is_cancel_flagged(job_id=self.work.job.pk):
            self._engine.cancel(self.request_id)

    def _rest_between(self, before: str) -> None:
        """The speaker's rest between two pieces: the same as between two segments."""
        pause_ms = pause_after_ms(before, speed=self.work.job.speed)
        if pause_ms:
            self._add(silence(duration_ms=pause_ms, sample_rate_hz=SAMPLE_RATE_HZ))

    def _take_chunk(self, chunk: Chunk) -> None:
        first = not self._pcm
        self._add(chunk.pcm)
        if first:
            # After the listeners have it: what is written down is not what they wait for.
            self._first_chunk_gpu_ms = chunk.gpu_ms
            attempts.note_first_chunk(attempt=self.work.attempt)
            wakeups.wake_job(job_id=self.work.job.pk)

    def _add(self, pcm: bytes) -> None:
        at = len(self._pcm)
        self._pcm += pcm
        # Where it belongs: a listener cannot tell by counting once Redis has forgotten what came before.
        self._publish({"pcm": pcm, "at": str(at).encode()})

    def _publish(self, fields: dict[str, bytes]) -> None:
        """Send to live listeners. Redis being away costs them their live audio, never the job."""
        key = wakeups.audio_key(self.work.attempt.pk)
        pipe = redis_connection().pipeline(transaction=False)
        pipe.xadd(key, cast(Any, fields))
        # Each time: a worker that dies has no chance to say it at the end.
        pipe.expire(key, AUDIO_STREAM_TTL_S)
        try:
            pipe.execute()
        except redis.RedisError as error:
            logger.warning("publish_failed", extra={"error": type(error).__name__})
