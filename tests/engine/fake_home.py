"""Folders as an operator has them: a home of CosyVoice (the double's) and a model's (names with nothing inside)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.sounds import voice_like, wav_bytes

DOUBLE = Path(__file__).with_name("fake_cosyvoice")
COMMON = (
    "llm.pt",
    "flow.pt",
    "hift.pt",
    "campplus.onnx",
    "flow.decoder.estimator.fp32.onnx",
    "flow.encoder.fp16.zip",
)
LANGUAGE_MODEL = ("config.json", "vocab.json", "merges.txt", "model.safetensors")


def fake_home(folder: Path) -> Path:
    """A COSYVOICE_HOME whose package is the double."""
    folder.mkdir()
    for name in ("cosyvoice", "transformers", "torchaudio", "third_party"):
        (folder / name).symlink_to(DOUBLE / name)
    (folder / "asset").mkdir()
    (folder / "asset" / "zero_shot_prompt.wav").write_bytes(clip())
    return folder


def fake_model(folder: Path, version: int, behaviour: list[dict[str, Any]] | None = None) -> Path:
    """A COSYVOICE_MODEL_DIR, complete by name."""
    (folder / "CosyVoice-BlankEN").mkdir(parents=True)
    names = [*COMMON, f"cosyvoice{version}.yaml", f"speech_tokenizer_v{version}.onnx"]
    for name in [*names, *(f"CosyVoice-BlankEN/{name}" for name in LANGUAGE_MODEL)]:
        (folder / name).write_text("the double has no weights\n")
    (folder / "fake_behaviour.json").write_text(json.dumps(behaviour or []))
    return folder


def clip(*, seconds: float = 4.0, pitch_hz: float = 180.0) -> bytes:
    """A canonical clip of a made-up speaker."""
    return wav_bytes(np.asarray(voice_like(pitch_hz=pitch_hz, seconds=seconds)))
