"""What CosyVoice takes from a reference clip, computed once: kept on the device, and as bytes for shared storage."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import os
import tempfile
import wave
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tts.engine.clips import QUIETEST_PEAK, SAMPLE_RATE_HZ, read_clip
from tts.engine.errors import FEATURES_UNREADABLE, EngineError

SHORTEST_S = 1.0
FORM = 1
"""Of the bytes in storage. Another form has another number."""
ARRAYS = {"speech_token": (2, "int32"), "speech_feat": (3, "float32"), "embedding": (2, "float32")}


@dataclass(frozen=True)
class VoiceFeatures:
    """Tensors on the model's device: the clip's tokens (1, T), its spectrum (1, 2T, 80), the speaker (1, 192)."""

    speech_token: Any
    speech_token_length: Any
    speech_feat: Any
    speech_feat_length: Any
    embedding: Any

    @property
    def prompt_s(self) -> float:
        """The clip's length: 25 tokens a second."""
        return int(self.speech_token.shape[1]) / 25


def extract(frontend: Any, wav: bytes) -> VoiceFeatures:
    """The features of a canonical clip, by CosyVoice's own frontend.

    Raises:
        EngineError: `clip_unreadable`; `clip_too_short`, `clip_silent` with blame "user".
    """
    samples = read_clip(wav)
    if len(samples) < SHORTEST_S * SAMPLE_RATE_HZ:
        raise EngineError("clip_too_short", "The reference clip is shorter than a second.", "user")
    if float(np.abs(samples).max()) < QUIETEST_PEAK:
        raise EngineError("clip_silent", "The reference clip is silent. Record it again.", "user")
    with file_with(samples) as path:
        return extract_file(frontend, path)


def extract_file(frontend: Any, path: str) -> VoiceFeatures:
    """The same of a file: any form that the frontend reads, 16 kHz or more, at most 30 s."""
    # With an empty transcript: what depends on words is made for each call.
    taken = frontend.frontend_zero_shot("", "", path, SAMPLE_RATE_HZ, "")
    return VoiceFeatures(
        speech_token=taken["flow_prompt_speech_token"],
        speech_token_length=taken["flow_prompt_speech_token_len"],
        speech_feat=taken["prompt_speech_feat"],
        speech_feat_length=taken["prompt_speech_feat_len"],
        embedding=taken["flow_embedding"],
    )


@contextlib.contextmanager
def file_with(samples: Any) -> Iterator[str]:
    """The frontend opens a path, three times; anything else it cannot read."""
    kept = np.round(samples * 32767).astype("<i2")
    descriptor, path = tempfile.mkstemp(suffix=".wav", prefix="voicepool-clip-")
    try:
        with os.fdopen(descriptor, "wb") as file, wave.open(file, "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(SAMPLE_RATE_HZ)
            writer.writeframes(kept.tobytes())
        yield path
    finally:
        os.unlink(path)


def to_bytes(features: VoiceFeatures) -> bytes:
    """For storage: numbers only, so that reading them back runs no code."""
    file = io.BytesIO()
    arrays = {name: getattr(features, name).detach().cpu().numpy() for name in ARRAYS}
    np.savez(file, form=np.array(FORM), **arrays)
    return file.getvalue()


def from_bytes(stored: bytes, *, device: Any) -> VoiceFeatures:
    """
    Raises:
        EngineError: `features_unreadable`: they are damaged or of another form, and are to be made anew.
    """
    try:
        with np.load(io.BytesIO(stored), allow_pickle=False) as archive:
            if int(archive["form"]) != FORM:
                raise ValueError("another form")
            arrays = {name: archive[name] for name in ARRAYS}
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise EngineError(FEATURES_UNREADABLE, "The voice's stored features cannot be read.") from error
    if any(array.ndim != ARRAYS[name][0] or array.dtype != ARRAYS[name][1] for name, array in arrays.items()):
        raise EngineError(FEATURES_UNREADABLE, "The voice's stored features have another shape.")
    torch = importlib.import_module("torch")
    tensors = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
    return VoiceFeatures(
        speech_token_length=_length(torch, tensors["speech_token"], device),
        speech_feat_length=_length(torch, tensors["speech_feat"], device),
        **tensors,
    )


def _length(torch: Any, tensor: Any, device: Any) -> Any:
    return torch.tensor([tensor.shape[1]], dtype=torch.int32).to(device)


class VoiceCache:
    """The features of the voices used last, on the device. By tenant and clip: no tenant finds another's.

    Never CosyVoice's own dictionary of speakers, which has no limit and is written whole beside the weights.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._features: OrderedDict[str, VoiceFeatures] = OrderedDict()

    @staticmethod
    def key(*, tenant: str, clip_sha256: str) -> str:
        return hashlib.sha256(f"{tenant}\0{clip_sha256}".encode()).hexdigest()

    def get(self, key: str) -> VoiceFeatures | None:
        features = self._features.get(key)
        if features is not None:
            self._features.move_to_end(key)
        return features

    def put(self, key: str, features: VoiceFeatures) -> None:
        self._features[key] = features
        self._features.move_to_end(key)
        while len(self._features) > self._size:
            self._features.popitem(last=False)

    def clear(self) -> None:
        self._features.clear()

    def __len__(self) -> int:
        return len(self._features)
