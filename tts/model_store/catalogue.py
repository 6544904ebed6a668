"""The models that can be fetched, and what belongs to each."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

HUGGING_FACE, MODEL_SCOPE = "huggingface", "modelscope"
_COSYVOICE = ("llm.pt", "flow.pt", "hift.pt", "campplus.onnx", "CosyVoice-BlankEN/*")


@dataclass(frozen=True)
class FetchableModel:
    """`files` are the patterns of the files that its engine loads, `extras` more of them by name. `ids` by source."""

    name: str
    ids: Mapping[str, str]
    files: tuple[str, ...]
    extras: Mapping[str, tuple[str, ...]]

    def wants(self, path: str, extras: tuple[str, ...] = ()) -> bool:
        """Whether a file of the source belongs to the model, with these extras."""
        patterns = [*self.files, *(pattern for extra in extras for pattern in self.extras[extra])]
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)

    def missing(self, paths: list[str], extras: tuple[str, ...] = ()) -> list[str]:
        """The patterns that none of these files fulfils."""
        patterns = [*self.files, *(pattern for extra in extras for pattern in self.extras[extra])]
        return [pattern for pattern in patterns if not fnmatch.filter(paths, pattern)]


MODELS: Mapping[str, FetchableModel] = MappingProxyType(
    {
        model.name: model
        for model in (
            FetchableModel(
                name="cosyvoice3",
                ids={
                    MODEL_SCOPE: "FunAudioLLM/Fun-CosyVoice3-0.5B-2512",
                    HUGGING_FACE: "FunAudioLLM/Fun-CosyVoice3-0.5B-2512",
                },
                files=("cosyvoice3.yaml", "speech_tokenizer_v3.onnx", *_COSYVOICE),
                extras={"tensorrt": ("flow.decoder.estimator.fp32.onnx",)},
            ),
            FetchableModel(
                name="cosyvoice2",
                ids={MODEL_SCOPE: "iic/CosyVoice2-0.5B", HUGGING_FACE: "FunAudioLLM/CosyVoice2-0.5B"},
                files=("cosyvoice2.yaml", "speech_tokenizer_v2.onnx", *_COSYVOICE),
                extras={
                    "tensorrt": ("flow.decoder.estimator.fp32.onnx",),
                    "jit": ("flow.encoder.fp16.zip", "flow.encoder.fp32.zip"),
                },
            ),
        )
    }
)
