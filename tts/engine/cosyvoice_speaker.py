"""Speaking pieces with a loaded CosyVoice: each once, or again with another seed where it went wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tts.engine.base import SpeakControl
from tts.engine.cosyvoice_calls import CallFailed, CallLimits, ModelCalls, Sound, TokenCheck
from tts.engine.cosyvoice_check import SAMPLE_RATE_HZ, check_numbers, check_speech, most_tokens
from tts.engine.cosyvoice_settings import CosyVoiceSettings
from tts.engine.cosyvoice_text import Piece, Prompt, model_inputs
from tts.engine.cosyvoice_voices import VoiceFeatures
from tts.engine.edges import faded, pcm_of, trimmed
from tts.engine.errors import EngineError
from tts.engine.loudness import Leveller, limited

logger = logging.getLogger("tts.engine.cosyvoice")

TARGET_LUFS = -20.0
TRIES = 3
SEEDS = 2**31
# What streamed speech ends with is noise now and then; it is faded out.
TAIL_MS = 40
# Where another seed will not help: it took too long once already.
NOT_AGAIN = frozenset({"deadline"})
# CosyVoice's normaliser reads everything else as English.
NORMALISED_LANGUAGES = frozenset({"zh", "en"})


@dataclass(frozen=True)
class Reading:
    """How all pieces of one request are spoken."""

    prompt: Prompt
    features: VoiceFeatures
    seed: int
    speed: float


class CosyVoiceSpeaker:
    """See the module."""

    def __init__(
        self,
        *,
        package: Any,
        calls: ModelCalls,
        set_seed: Callable[[int], None],
        settings: CosyVoiceSettings,
    ) -> None:
        self.spoken_again = 0
        """Pieces that went wrong and were spoken with another seed."""
        self._frontend = package.frontend
        self._calls = calls
        self._set_seed = set_seed
        self._settings = settings

    def normalised(self, text: str, language: str) -> str:
        """The text as CosyVoice's own normaliser reads it, where that is wanted and it knows the language."""
        if not self._settings.text_frontend or language not in NORMALISED_LANGUAGES or "<|" in text:
            return text
        try:
            return str(self._frontend.text_normalize(text, split=False, text_frontend=True))
        except Exception as error:
            # It breaks on some texts that the model reads well.
            logger.warning("engine_text_frontend_failed %s", type(error).__name__)
            return text

    def speak(self, pieces: Sequence[Piece], reading: Reading, control: SpeakControl) -> Iterator[bytes]:
        """PCM, piece by piece, with the pauses between them; token by token where the settings say so.

        Raises:
            EngineError: `speech_…` after the last try of a piece.
        """
        # While it streams the model does not hear of the speed.
        stream = self._settings.stream_tokens and reading.speed == 1.0
        leveller = Leveller(TARGET_LUFS)
        for piece in pieces:
            control.check()
            if not piece.text:
                yield pcm_of(np.zeros(0, np.float32), pause_ms=piece.pause_ms)
            elif stream:
                yield from self._streamed(piece, reading, control)
            else:
                sound = self._whole(piece, reading, control)
                yield pcm_of(leveller.levelled(trimmed(sound)), pause_ms=piece.pause_ms)

    def _whole(self, piece: Piece, reading: Reading, control: SpeakControl) -> Sound:
        """The sound of a piece, checked."""
        failed = CallFailed("")
        for number in range(TRIES):
            began_ms = control.clock.elapsed_ms()
            seed = (reading.seed + number) % SEEDS
            try:
                parts = list(self._call(piece, reading, control, seed=seed, stream=False))
                sound = np.concatenate(parts) if parts else np.zeros(0, np.float32)
                check_speech(sound, text_tokens=self._tokens(piece.text), speed=reading.speed)
            except CallFailed as error:
                failed = error
                self._note(error, control, began_ms)
                if error.reason in NOT_AGAIN:
                    break
                continue
            control.note_seed(seed)
            return sound
        raise _given_up(failed)

    def _streamed(self, piece: Piece, reading: Reading, control: SpeakControl) -> Iterator[bytes]:
        """As `_whole`, but what has been sent stays sent: only a piece that fails before its first sound has another
        try."""
        for number in range(TRIES):
            began_ms = control.clock.elapsed_ms()
            seed = (reading.seed + number) % SEEDS
            sent = 0
            try:
                for pcm in self._chunks(piece, reading, control, seed):
                    sent += len(pcm)
                    yield pcm
            except CallFailed as error:
                self._note(error, control, began_ms)
                if sent or number + 1 == TRIES or error.reason in NOT_AGAIN:
                    raise _given_up(error) from error
                continue
            control.note_seed(seed)
            return

    def _chunks(self, piece: Piece, reading: Reading, control: SpeakControl, seed: int) -> Iterator[bytes]:
        """A streamed piece in chunks, faded in and out; its last milliseconds wait until it is known to be over."""
        tail_samples = TAIL_MS * SAMPLE_RATE_HZ // 1000
        heard: list[Sound] = []
        tail = np.zeros(0, np.float32)
        for part in self._call(piece, reading, control, seed=seed, stream=True):
            check_numbers(part)
            heard.append(part)
            sound = np.concatenate([tail, faded(part, out_ms=0) if len(heard) == 1 else part])
            tail = sound[max(0, len(sound) - tail_samples) :]
            if len(sound) > len(tail):
                yield pcm_of(limited(sound[: len(sound) - len(tail)]))
        whole = np.concatenate(heard) if heard else tail
        check_speech(whole, text_tokens=self._tokens(piece.text), speed=1.0)
        yield pcm_of(limited(faded(tail, in_ms=0, out_ms=TAIL_MS)), pause_ms=piece.pause_ms)

    def _call(
        self, piece: Piece, reading: Reading, control: SpeakControl, *, seed: int, stream: bool
    ) -> Iterator[Sound]:
        inputs = model_inputs(self._frontend, reading.prompt, piece.text, reading.features)
        limits = CallLimits(
            check=TokenCheck(control.check, control.must_stop),
            max_tokens=most_tokens(
                int(inputs["text"].shape[1]),
                prompt_s=reading.features.prompt_s,
                with_trt=self._settings.load_trt,
            ),
            deadline_s=self._settings.call_deadline_s,
            wedged_s=self._settings.wedged_s,
        )
        # Right before the call: loading and whatever came before have used the generator.
        self._set_seed(seed)
        yield from self._calls.run(inputs, stream=stream, speed=reading.speed, limits=limits)

    def _tokens(self, text: str) -> int:
        tokens, _ = self._frontend._extract_text_token(text)
        return int(tokens.shape[1])

    def _note(self, error: CallFailed, control: SpeakControl, began_ms: int) -> None:
        """Nobody pays for what was not delivered."""
        logger.warning("engine_spoke_wrong %s", error.reason)
        self.spoken_again += 1
        control.clock.write_off(began_ms)


def _given_up(error: CallFailed) -> EngineError:
    return EngineError(f"speech_{error.reason}", "The model did not speak this text right.")
