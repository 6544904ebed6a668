"""The test sentence: what an engine has to speak before customers' texts are given to it."""

from __future__ import annotations

import sys
import uuid
from array import array
from dataclasses import dataclass

from tts.audio.wav import pcm_duration_ms
from tts.engine.capabilities import Capabilities
from tts.engine.catalogue import PRESET_VOICES
from tts.engine.process import Chunk, Done, EngineError, EngineFailure, EngineProcess
from tts.engine.protocol import SpeakRequest, VoiceReference

# For engines that know no Chinese.
ENGLISH_TEXT = "It is a fine day today."
# On a CPU it is the warm-up as well, and whoever starts the stack waits for it: two short sounds, spoken fast.
SHORT_TEXT, SHORT_SPEED = "好 a", 2.0
TEXT, SPEED = "你好，今天天气很好。", 1.0
# What such texts may take to say, from the fastest speaker to the slowest engine.
SHORT_AUDIO_MS = (100, 8_000)
AUDIO_MS = (800, 15_000)
NO_PROGRESS_S = 60.0
DEADLINE_S = 120.0
MAX_GPU_MS = 120_000
# -50 dB under full scale: no voice is that soft. And no voice stands at full scale half of the time; numbers that are
# not finite end up there, or as silence.
SILENCE = 100
FULL_SCALE = 32_700
MAX_FULL_SCALE_SHARE = 0.5


@dataclass(frozen=True)
class CanaryResult:
    """How it went. `detail` says what was wrong, "" when nothing was."""

    gpu_ms: int
    audio_ms: int
    detail: str

    @property
    def passed(self) -> bool:
        return not self.detail


def speak_canary(
    engine: EngineProcess, *, sample_rate_hz: int, thorough: bool, capabilities: Capabilities | None = None
) -> CanaryResult:
    """Have a loaded engine speak the test sentence and look at what comes. Never raises for the engine's faults.

    `capabilities`: what it says that it can do; without Chinese it speaks an English sentence. `thorough`: a whole
    sentence, for devices that somebody had reason to doubt or that cost much when they are wrong.
    """
    is_chinese = capabilities is None or "zh" in capabilities.languages
    language = "zh" if is_chinese else "en"
    text = (TEXT if thorough else SHORT_TEXT) if is_chinese else ENGLISH_TEXT
    request = SpeakRequest(
        request_id=f"canary-{uuid.uuid4()}",
        text=text,
        language=language,
        voice=VoiceReference(kind="preset", preset_key=PRESET_VOICES[0].key, language=language),
        seed=1,
        speed=SPEED if thorough else SHORT_SPEED,
        max_gpu_ms=MAX_GPU_MS,
    )
    pcm, gpu_ms = bytearray(), 0
    try:
        for event in engine.speak(request, no_progress_s=NO_PROGRESS_S, deadline_s=DEADLINE_S):
            if isinstance(event, Chunk):
                pcm += event.pcm
            elif isinstance(event, Done):
                gpu_ms = event.gpu_ms
    except EngineFailure as error:
        gpu_ms = error.gpu_ms if isinstance(error, EngineError) else 0
        return CanaryResult(gpu_ms=gpu_ms, audio_ms=0, detail=f"{type(error).__name__}: {error}")
    audio_ms = pcm_duration_ms(pcm_bytes=len(pcm), sample_rate_hz=sample_rate_hz)
    shortest, longest = AUDIO_MS if thorough else SHORT_AUDIO_MS
    detail = fault_in(bytes(pcm), audio_ms=audio_ms, shortest_ms=shortest, longest_ms=longest)
    return CanaryResult(gpu_ms=gpu_ms, audio_ms=audio_ms, detail=detail)


def fault_in(pcm: bytes, *, audio_ms: int, shortest_ms: int, longest_ms: int) -> str:
    """What is wrong with these samples (mono, signed 16-bit little-endian); "" when nothing is."""
    if len(pcm) % 2:
        return "half a sample"
    if not shortest_ms <= audio_ms <= longest_ms:
        return f"{audio_ms} ms of audio"
    samples = array("h")
    samples.frombytes(pcm)
    if sys.byteorder == "big":
        samples.byteswap()
    if max(max(samples), -min(samples)) < SILENCE:
        return "silence"
    if sum(abs(sample) >= FULL_SCALE for sample in samples) > MAX_FULL_SCALE_SHARE * len(samples):
        return "noise at full scale"
    return ""
