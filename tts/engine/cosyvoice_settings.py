"""The settings of the CosyVoice engine, and the combinations that are known to go wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tts.engine.errors import EngineError

# CosyVoice itself cuts Chinese at 80 characters and other text at 80 tokens.
PIECE_CHARACTERS = 80


@dataclass(frozen=True)
class CosyVoiceSettings:
    """`home` is a checkout of CosyVoice's repository, `model_dir` a folder with its weights; both default to the
    variables COSYVOICE_HOME and COSYVOICE_MODEL_DIR."""

    home: str = ""
    model_dir: str = ""
    fp16: bool = False
    load_trt: bool = False
    """TensorRT for the flow. Writes a plan into `model_dir` that fits one kind of GPU only."""
    load_vllm: bool = False
    """vLLM for the language model. It takes no seed: the same request then sounds different each time."""
    load_jit: bool = False
    """TorchScript for the flow's encoder (CosyVoice2 only)."""
    bistream: bool = False
    """Text that arrives while it is spoken. Refused: such a call has no end of its own."""
    stream_tokens: bool = False
    """Send audio while a piece is being made, not piece by piece: sooner, but what is wrong is heard as well."""
    text_frontend: bool = False
    """Have CosyVoice's own normaliser read numbers and signs too; our texts come normalised."""
    piece_characters: int = PIECE_CHARACTERS
    """The most characters of Chinese (or tokens of another script, about three characters each) in one call."""
    preset_folder: str = ""
    """Clips for the platform's preset voices: KEY.wav beside KEY.txt with what it says."""
    cached_voices: int = 64
    call_deadline_s: float = 120.0
    """A call of the model that takes longer is given up."""
    wedged_s: float = 15.0
    """A call that goes on for so much longer ends the process."""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> CosyVoiceSettings:
        """
        Raises:
            EngineError: `setting_unknown`, `setting_wrong`, `setting_forbidden`.
        """
        known = {field.name: field for field in fields(cls)}
        if unknown := set(given) - set(known):
            raise EngineError("setting_unknown", f"The CosyVoice engine has no setting {sorted(unknown)}.")
        for name, value in given.items():
            wanted = type(known[name].default)
            if type(value) is not wanted and not (wanted is float and type(value) is int):
                raise EngineError("setting_wrong", f"The setting {name} must be a {wanted.__name__}.")
        settings = cls(
            **{
                "home": os.environ.get("COSYVOICE_HOME", ""),
                "model_dir": os.environ.get("COSYVOICE_MODEL_DIR", ""),
                **given,
            }
        )
        settings._refuse_what_is_wrong()
        return settings

    def _refuse_what_is_wrong(self) -> None:
        for name, variable in (("home", "COSYVOICE_HOME"), ("model_dir", "COSYVOICE_MODEL_DIR")):
            folder = str(getattr(self, name))
            if not folder:
                raise EngineError("setting_wrong", f"Set {name} or {variable} to a folder.")
            # CosyVoice would take anything else for the name of a model to download.
            if not Path(folder).is_dir():
                raise EngineError("model_missing", f"{name} names {folder!r}, which is no folder.")
        if not 20 <= self.piece_characters <= 2 * PIECE_CHARACTERS:
            raise EngineError("setting_wrong", f"piece_characters must be 20 to {2 * PIECE_CHARACTERS}.")
        if min(self.call_deadline_s, self.wedged_s) <= 0 or self.cached_voices < 1:
            raise EngineError("setting_wrong", "Limits of time and of cached voices must be above 0.")
        if self.bistream:
            raise _forbidden("bistream: such a call ends only when the model likes it to.")

    def refuse_for(self, version: int, *, has_gpu: bool) -> None:
        """Refuse what this version of CosyVoice cannot do, or does wrong.

        Raises:
            EngineError: `setting_forbidden` with the reason.
        """
        if version == 3 and self.load_trt and self.fp16:
            raise _forbidden(
                "load_trt with fp16 on CosyVoice3: its audio is silent or NaN. Use load_trt alone."
            )
        if version == 3 and self.load_jit:
            raise _forbidden("load_jit on CosyVoice3, which has none.")
        if self.load_vllm and self.load_jit:
            raise _forbidden("load_vllm with load_jit: nobody has tried them together.")
        if self.stream_tokens and self.load_vllm:
            raise _forbidden("stream_tokens with load_vllm: its streams break.")
        if self.stream_tokens and version == 2:
            raise _forbidden("stream_tokens on CosyVoice2: the same seed sounds different each time.")
        wanted = [name for name in ("fp16", "load_trt", "load_vllm", "load_jit") if getattr(self, name)]
        if wanted and not has_gpu:
            raise _forbidden(f"{', '.join(wanted)} without a GPU.")

    def model_arguments(self, version: int) -> dict[str, Any]:
        """What the model's class is called with. An argument that it does not know would be a TypeError."""
        arguments: dict[str, Any] = {
            "model_dir": self.model_dir,
            "load_trt": self.load_trt,
            "load_vllm": self.load_vllm,
            "fp16": self.fp16,
            "trt_concurrent": 1,  # one request at a time
        }
        return arguments if version == 3 else {**arguments, "load_jit": self.load_jit}


def _forbidden(what: str) -> EngineError:
    return EngineError("setting_forbidden", f"CosyVoice cannot be loaded with {what}")
