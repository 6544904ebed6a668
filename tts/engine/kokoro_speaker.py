"""Speaking with a loaded Kokoro model: text to phonemes to calls, each moved to the voice and levelled.

Imports the phonemizer's dictionaries and Praat: half of what the engine takes to load (see `kokoro`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tts.engine.adaptation import Recipe, apply_recipe, recipe_for
from tts.engine.base import SpeakControl
from tts.engine.calls import plan_calls
from tts.engine.errors import EngineError
from tts.engine.kokoro_model import SAMPLE_RATE_HZ, KokoroModel, Sound, load_styles, vocabulary
from tts.engine.kokoro_presets import PRESET_RECIPES
from tts.engine.kokoro_styles import mixed_style
from tts.engine.loudness import Leveller
from tts.engine.phonemes import Phonemizer
from tts.engine.protocol import SpeakRequest
from tts.engine.reference import FeatureCache

TARGET_LUFS = -20.0
CACHED_VOICES = 256
SLOWEST, FASTEST = 0.5, 2.0
# Two seeds read a text a little differently, as a speaker would; one seed always alike.
SEED_SPEED, SEED_SPREAD = 0.02, 0.05
# The model takes no longer the first time than later: a short sound will do. Long enough for Praat to find a pitch.
WARM_UP_TEXT = "好 a"
WARM_UP_PRESET = "xiaohe"


class KokoroSpeaker:
    """Everything but the model's session. Made while that is being made."""

    def __init__(self, cache_folder: Path) -> None:
        self._phonemizer = Phonemizer(cache_folder, frozenset(vocabulary()))
        self._styles = load_styles()
        self._features = FeatureCache(CACHED_VOICES)

    @property
    def cached_voices(self) -> int:
        return len(self._features)

    def warm_up(self, model: KokoroModel) -> None:
        """Say hello to nobody: every library has then done once what it does lazily."""
        recipe = PRESET_RECIPES[WARM_UP_PRESET]
        phonemes = self._phonemizer.phonemes(WARM_UP_TEXT, "")
        sound = model.speak(phonemes, mixed_style(self._styles, recipe.mix), FASTEST)
        Leveller(TARGET_LUFS).levelled(apply_recipe(recipe, sound))

    def speak(self, model: KokoroModel, request: SpeakRequest, control: SpeakControl) -> Iterator[bytes]:
        """See `Engine.speak`."""
        phrases = self._phonemizer.phrases(request.text, request.language)
        if not any(phrase.phonemes for phrase in phrases):
            raise EngineError("text_unspeakable", "There is nothing in this text that can be spoken.", "user")
        recipe, speed = self._reading(request)
        style = mixed_style(self._styles, recipe.mix)
        leveller = Leveller(TARGET_LUFS)
        for phrase in phrases:
            for call in plan_calls(phrase.phonemes) if phrase.phonemes else []:
                control.check()
                # The warp makes the sound shorter or longer by as much; the model makes up for it.
                sound = model.speak(call.phonemes, style, speed / recipe.warp)
                yield _pcm(leveller.levelled(apply_recipe(recipe, sound)), call.pause_ms, speed)
            if phrase.pause_after_ms:
                yield _pcm(np.zeros(0, np.float32), phrase.pause_after_ms, speed)

    def _reading(self, request: SpeakRequest) -> tuple[Recipe, float]:
        """The voice, and how this seed reads: its recipe and speed."""
        recipe = self._recipe(request)
        random = np.random.default_rng(abs(request.seed))
        speed = float(np.clip(request.speed, SLOWEST, FASTEST)) * (1 + SEED_SPEED * random.uniform(-1, 1))
        spread = recipe.spread * (1 + SEED_SPREAD * random.uniform(-1, 1))
        return dataclasses.replace(recipe, spread=spread), speed

    def _recipe(self, request: SpeakRequest) -> Recipe:
        if request.voice.kind == "clone":
            return recipe_for(self._features.features(request.reference_wav))
        if request.voice.preset_key not in PRESET_RECIPES:
            raise EngineError("voice_unknown", "This engine does not have that preset voice.")
        return PRESET_RECIPES[request.voice.preset_key]


def _pcm(sound: Sound, pause_ms: int, speed: float) -> bytes:
    """Signed 16-bit little-endian, with the pause that follows."""
    pause = np.zeros(round(pause_ms / speed * SAMPLE_RATE_HZ / 1000), np.float32)
    whole = np.concatenate([sound, pause])
    samples = np.round(np.clip(np.nan_to_num(whole), -1, 1) * 32767).astype("<i2")
    return bytes(samples.tobytes())
