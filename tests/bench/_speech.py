"""Speech of the built-in engine for benchmarks: through its process, as a worker asks for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tts.engine.catalogue import PRESET_VOICES
from tts.engine.process import Chunk, EngineProcess, SpeakRequest, VoiceReference

SAMPLE_RATE_HZ = 24_000


@contextlib.contextmanager
def engine(cache_folder: Path | None = None) -> Iterator[EngineProcess]:
    """The built-in engine, loaded and warm."""
    settings = {"cache_folder": str(cache_folder)} if cache_folder else {}
    process = EngineProcess(None, "kokoro", settings, {})
    process.start()
    try:
        process.load(300)
        process.warm_up(300)
        yield process
    finally:
        process.kill()


def chunks_of(process: EngineProcess, text: str, *, language: str = "", speed: float = 1.0) -> list[bytes]:
    """The chunks in which the engine delivers a segment."""
    preset = next(each for each in PRESET_VOICES if each.language == (language or "zh"))
    request = SpeakRequest(
        request_id="bench",
        text=text,
        language=language,
        voice=VoiceReference(kind="preset", preset_key=preset.key),
        seed=1,
        speed=speed,
        max_gpu_ms=10**7,
    )
    events = process.speak(request, no_progress_s=300, deadline_s=1200)
    return [event.pcm for event in events if isinstance(event, Chunk)]
