"""`python -m tts.engine.demonstration_clip OUT.wav [CACHE_FOLDER]`: a reference clip of nobody in particular.

The demonstration needs a voice to clone, and the tree carries no recordings. So the built-in engine speaks, moved far
from every preset: between a man's voice and a woman's, with a pitch and a vocal tract that no preset has. 24 kHz,
mono, 16 bits, 6 to 8 s, the same bytes each time on one machine. What is said goes to standard output.
"""

from __future__ import annotations

import sys
import wave
from pathlib import Path

import numpy as np

from tts.engine.adaptation import Recipe, apply_recipe
from tts.engine.kokoro_model import SAMPLE_RATE_HZ, KokoroModel, Sound, load_styles, vocabulary
from tts.engine.kokoro_styles import Mix, mixed_measure, mixed_style
from tts.engine.loudness import Leveller
from tts.engine.phonemes import Phonemizer
from tts.engine.spectrum import CENTRES_HZ
from tts.engine.weights import default_cache_folder, joined_weights

TRANSCRIPT = "大家好，这是我自己的声音。I am reading this sentence at home, so that you can hear how I speak."
SENTENCES = (
    "大家好，这是我自己的声音。",
    "I am reading this sentence at home, so that you can hear how I speak.",
)
MIX: Mix = (("jm_kumo", 0.5), ("jf_nezumi", 0.5))
PITCH_HZ, WARP, SPREAD = 152.0, 1.08, 1.45
# A presence that none of the styles has: around 2.5 kHz, as a small room and a near microphone give.
PRESENCE_HZ, PRESENCE_DB = 2500.0, 6.0
LEVEL_LUFS = -22.0
PAUSE_MS = 350


def demonstration_sound(cache_folder: Path) -> Sound:
    """The samples of the clip. Loads the model: some seconds and half a gigabyte."""
    phonemizer = Phonemizer(cache_folder, frozenset(vocabulary()))
    model = KokoroModel(joined_weights(cache_folder), threads=2)
    style = mixed_style(load_styles(), MIX)
    recipe = Recipe(
        mix=MIX,
        warp=WARP,
        from_hz=mixed_measure(MIX).pitch_hz * WARP,
        to_hz=PITCH_HZ,
        spread=SPREAD,
        gain_db=PRESENCE_DB * np.exp(-np.square(np.log2(CENTRES_HZ / PRESENCE_HZ)) / 0.5),
    )
    leveller = Leveller(LEVEL_LUFS)
    pause = np.zeros(PAUSE_MS * SAMPLE_RATE_HZ // 1000, np.float32)
    parts: list[Sound] = []
    for sentence in SENTENCES:
        spoken = model.speak(phonemizer.phonemes(sentence, ""), style, 1 / WARP)
        parts += [pause, leveller.levelled(apply_recipe(recipe, spoken))]
    return np.concatenate([*parts, pause])


def write_clip(path: Path, cache_folder: Path) -> None:
    """Write the clip to `path`."""
    sound = demonstration_sound(cache_folder)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE_HZ)
        file.writeframes(np.round(np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())


if __name__ == "__main__":
    write_clip(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else default_cache_folder())
    sys.stdout.write(TRANSCRIPT + "\n")
