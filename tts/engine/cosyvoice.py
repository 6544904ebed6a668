"""The engine for GPUs: CosyVoice3, and CosyVoice2, in an interpreter of its own.

Settings: `tts.engine.cosyvoice_settings`. What goes wrong in CosyVoice and what is done about it stands in the modules
beside this one: `cosyvoice_install` (loading), `cosyvoice_calls` (threads, ends, what is left behind),
`cosyvoice_text` (prompts), `cosyvoice_voices` (speaker features), `cosyvoice_check` (what was made).
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from tts.engine.base import Engine, LoadedEngine, SpeakControl
from tts.engine.catalogue import ENGINES
from tts.engine.cosyvoice_calls import ModelCalls
from tts.engine.cosyvoice_install import fingerprint, import_package, model_version, no_network, quiet
from tts.engine.cosyvoice_likeness import Likeness
from tts.engine.cosyvoice_settings import PIECE_CHARACTERS, CosyVoiceSettings
from tts.engine.cosyvoice_speaker import CosyVoiceSpeaker, Reading
from tts.engine.cosyvoice_text import likely_language, mode_of, pieces_of, prompt_for
from tts.engine.cosyvoice_voices import VoiceCache, VoiceFeatures, extract, extract_file, from_bytes, to_bytes
from tts.engine.errors import EngineError
from tts.engine.protocol import SpeakRequest, VoiceReference

logger = logging.getLogger("tts.engine.cosyvoice")

TEXT_FRONTENDS = ("wetext", "ttsfrd")
# CosyVoice's own example: a young woman, and what she says. The platform's first preset voice, where nothing else is
# given, and what the engine warms up with.
EXAMPLE_PRESET = "xiaohe"
EXAMPLE_CLIP = Path("asset") / "zero_shot_prompt.wav"
EXAMPLE_TRANSCRIPT = "希望你以后能够做的比我还好呦。"
WARM_UP_TEXT = "你好，今天天气很好。"
WARM_UP_MS = 10**9


@dataclass(frozen=True)
class _Loaded:
    settings: CosyVoiceSettings
    version: int
    package: Any
    speaker: CosyVoiceSpeaker


class CosyVoiceEngine(Engine):
    """See the module."""

    takes_instructions = True
    reads_annotations = True

    def __init__(self) -> None:
        self._loaded: Optional[_Loaded] = None
        self._voices = VoiceCache(1)
        self._presets: dict[str, tuple[VoiceFeatures, VoiceReference]] = {}
        self._torch: Any = None
        self._requests = 0
        self._likeness: Optional[Likeness] = None

    def load(self, settings: dict[str, Any]) -> LoadedEngine:
        read = CosyVoiceSettings.read(settings)
        version = model_version(read)
        try:
            self._torch = importlib.import_module("torch")
        except ImportError as error:
            raise EngineError("library_missing", "CosyVoice needs torch.") from error
        has_gpu = bool(self._torch.cuda.is_available())
        read.refuse_for(version, has_gpu=has_gpu)
        self.works_on_cpu = not has_gpu
        with no_network():
            module = import_package(read)
            with quiet():
                package = module.AutoModel(**read.model_arguments(version))
        if read.text_frontend and package.frontend.text_frontend not in TEXT_FRONTENDS:
            # CosyVoice goes on without one and says nothing.
            raise EngineError(
                "library_missing", "text_frontend is set, but neither wetext nor ttsfrd could be loaded."
            )
        speaker = CosyVoiceSpeaker(
            package=package,
            calls=ModelCalls(package.model),
            set_seed=importlib.import_module("cosyvoice.utils.common").set_all_random_seed,
            settings=read,
        )
        self._voices = VoiceCache(read.cached_voices)
        self._loaded = _Loaded(settings=read, version=version, package=package, speaker=speaker)
        return LoadedEngine(
            engine="cosyvoice",
            engine_version=f"{version}-{fingerprint(read, version)}",
            sample_rate_hz=int(package.sample_rate),
            languages=ENGINES["cosyvoice"].languages,
        )

    def warm_up(self) -> None:
        control = SpeakControl(
            max_gpu_ms=WARM_UP_MS, canceled=threading.Event(), report_progress=lambda: None
        )
        voice = VoiceReference(kind="preset", preset_key=EXAMPLE_PRESET)
        request = SpeakRequest(
            request_id="warm-up",
            text=WARM_UP_TEXT,
            language="zh",
            voice=voice,
            seed=1,
            speed=1.0,
            max_gpu_ms=WARM_UP_MS,
        )
        for _ in self.speak(request, control):
            pass

    def speak(self, request: SpeakRequest, control: SpeakControl) -> Iterator[bytes]:
        loaded = self._parts()
        self._requests += 1
        self._likeness = None
        features, voice = self._voice(request, control)
        language = request.language or likely_language(request.text)
        mode = mode_of(request, voice)
        characters = loaded.settings.piece_characters
        pieces = pieces_of(
            loaded.speaker.normalised(request.text, language),
            version=loaded.version,
            language=language,
            speed=request.speed,
            # Memory grows with the length of a call.
            characters=min(characters, PIECE_CHARACTERS // 2) if control.save_memory else characters,
        )
        reading = Reading(
            prompt=prompt_for(
                mode, version=loaded.version, transcript=voice.transcript, instruction=request.instruction
            ),
            features=features,
            seed=request.seed,
            speed=request.speed,
        )
        likeness = self._likeness = Likeness(loaded.package.frontend, features.embedding)
        for pcm in loaded.speaker.speak(pieces, reading, control):
            likeness.hear(pcm)
            yield pcm

    def similarity(self) -> float | None:
        return self._likeness.value() if self._likeness is not None else None

    def stats(self) -> dict[str, Any]:
        loaded = self._parts()
        return {
            **super().stats(),
            "requests": self._requests,
            "cached_voices": len(self._voices),
            "spoken_again": loaded.speaker.spoken_again,
            "text_frontend": str(loaded.package.frontend.text_frontend),
        }

    def device_memory_bytes(self) -> int | None:
        return int(self._torch.cuda.memory_reserved()) if self._on_gpu() else None

    def peak_memory_bytes(self) -> int:
        return int(self._torch.cuda.max_memory_reserved()) if self._on_gpu() else super().peak_memory_bytes()

    def free_memory(self) -> None:
        self._voices.clear()
        self._presets.clear()
        gc.collect()
        if self._on_gpu():
            self._torch.cuda.empty_cache()

    def _on_gpu(self) -> bool:
        return self._torch is not None and bool(self._torch.cuda.is_available())

    def _parts(self) -> _Loaded:
        if self._loaded is None:
            raise EngineError("not_loaded", "The engine was asked to speak before it was loaded.")
        return self._loaded

    # --- voices ------------------------------------------------------------------------------------------------

    def _voice(self, request: SpeakRequest, control: SpeakControl) -> tuple[VoiceFeatures, VoiceReference]:
        if request.voice.kind != "clone":
            return self._preset(request.voice.preset_key)
        package = self._parts().package
        # By what the bytes are where they are at hand, not by what a caller says that they are.
        wav, stored = request.reference_wav, request.features
        clip = hashlib.sha256(wav).hexdigest() if wav else request.voice.reference_sha256
        key = VoiceCache.key(tenant=request.voice.tenant, clip_sha256=clip)
        features = self._voices.get(key)
        if features is None:
            if stored:
                features = from_bytes(stored, device=package.frontend.device)
            else:
                features = extract(package.frontend, wav)
                control.report_features(to_bytes(features))
            self._voices.put(key, features)
        return features, request.voice

    def _preset(self, key: str) -> tuple[VoiceFeatures, VoiceReference]:
        if key not in self._presets:
            path, transcript = self._preset_clip(key)
            features = extract_file(self._parts().package.frontend, str(path))
            voice = VoiceReference(kind="preset", preset_key=key, transcript=transcript)
            language = likely_language(transcript)
            self._presets[key] = (features, VoiceReference(**{**vars(voice), "language": language}))
        return self._presets[key]

    def _preset_clip(self, key: str) -> tuple[Path, str]:
        settings = self._parts().settings
        # A key comes from our own catalogue; a name with a folder in it does not.
        if settings.preset_folder and key.isidentifier():
            clip = Path(settings.preset_folder) / f"{key}.wav"
            if clip.is_file():
                with contextlib.suppress(FileNotFoundError):
                    return clip, clip.with_suffix(".txt").read_text(encoding="utf-8").strip()
                return clip, ""
        example = Path(settings.home) / EXAMPLE_CLIP
        if key == EXAMPLE_PRESET and example.is_file():
            return example, EXAMPLE_TRANSCRIPT
        raise EngineError("voice_unknown", "This engine does not have that preset voice.")
