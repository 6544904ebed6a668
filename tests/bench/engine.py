"""How fast the built-in engine speaks, and how much nearer its adaptation comes to a reference.

`rtf_zh`, `rtf_en`: device time over audio time of a sentence of about 10 s, spoken in a cloned voice, in an engine
process with two threads: the best of three, since other work on the machine only ever adds.

`similarity_gain`: the mean rise of Resemblyzer's cosine to the reference, from the unadapted voice to the adapted
one, over eleven real speakers, each with an English and a Mandarin sentence. The unadapted voice is the model's own
of the speaker's sex (jf_alpha or jm_kumo), so that choosing between the two earns nothing. `similarity_gain_nearest`
counts from the one style that the adaptation itself starts from, or the nearer of its two: what moving it adds.
"""

from __future__ import annotations

import importlib.metadata
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.bench.recordings import SPEAKERS, Speaker, ensure_recordings, reference_clip
from tts.engine.adaptation import apply_recipe, recipe_for
from tts.engine.calls import plan_calls
from tts.engine.clips import read_clip
from tts.engine.kokoro_model import KokoroModel, Sound, load_styles, vocabulary
from tts.engine.kokoro_styles import Mix, mixed_style
from tts.engine.loudness import Leveller
from tts.engine.phonemes import Phonemizer
from tts.engine.process import Done, EngineProcess, SpeakRequest, VoiceReference
from tts.engine.reference import analyse_clip
from tts.engine.weights import joined_weights

TEN_SECONDS = {
    "zh": "清晨的阳光慢慢照进窗户，楼下不知哪里开了一扇门，孩子们背着书包跑过长长的巷子，笑声一直传到河边。",
    "en": "The morning light came slowly through the window, somewhere below a door was opened, and the children "
    "ran down the long lane to the river, laughing all the way to school.",
}
SENTENCES = {
    "zh": "请你把隔壁房间那本蓝色的小书拿给我，好吗？谢谢你。",
    "en": "Would you bring me the small blue book from the other room? Thank you very much.",
}
UNADAPTED = {"female": "jf_alpha", "male": "jm_kumo"}
TRIES = 3


def run() -> dict[str, float]:
    """Measure and return the figures; prints each try and each speaker."""
    ensure_recordings()
    with tempfile.TemporaryDirectory() as folder:
        figures = {f"rtf_{language}": _real_time_factor(language, Path(folder)) for language in TEN_SECONDS}
        figures.update(_similarity(Path(folder)))
    return figures


def _real_time_factor(language: str, folder: Path) -> float:
    clip = reference_clip(SPEAKERS[0])
    engine = EngineProcess(None, "kokoro", {"cache_folder": str(folder)}, {})
    engine.start()
    try:
        engine.load(300)
        engine.warm_up(300)
        factors = []
        for number in range(TRIES):
            request = SpeakRequest(
                request_id=f"{language}-{number}",
                text=TEN_SECONDS[language],
                language=language,
                voice=VoiceReference(kind="clone"),
                seed=1,
                speed=1.0,
                max_gpu_ms=10**6,
                reference_wav=clip,
            )
            done = list(engine.speak(request, no_progress_s=120, deadline_s=600))[-1]
            assert isinstance(done, Done)
            factors.append(done.gpu_ms / done.audio_ms)
            print(f"{language}: {done.gpu_ms} ms for {done.audio_ms} ms of audio, factor {factors[-1]:.3f}")
    finally:
        engine.kill()
    return round(min(factors), 3)


class _Voices:
    """The engine's parts in this process: a sentence in any style, with and without adaptation."""

    def __init__(self, folder: Path) -> None:
        self._phonemizer = Phonemizer(folder, frozenset(vocabulary()))
        self._model = KokoroModel(joined_weights(folder), threads=2)
        self._styles = load_styles()
        self._unadapted: dict[tuple[str, str], Sound] = {}

    def unadapted(self, style: str, language: str) -> Sound:
        if (style, language) not in self._unadapted:
            self._unadapted[style, language] = self._spoken(((style, 1.0),), language, 1.0)
        return self._unadapted[style, language]

    def adapted(self, clip: bytes, language: str) -> tuple[Sound, Mix]:
        recipe = recipe_for(analyse_clip(clip))
        return apply_recipe(recipe, self._spoken(recipe.mix, language, 1 / recipe.warp)), recipe.mix

    def _spoken(self, mix: Mix, language: str, speed: float) -> Sound:
        style = mixed_style(self._styles, mix)
        calls = plan_calls(self._phonemizer.phonemes(SENTENCES[language], language))
        sound = np.concatenate([self._model.speak(call.phonemes, style, speed) for call in calls])
        return Leveller(-20.0).levelled(np.asarray(sound, np.float32))


def _similarity(folder: Path) -> dict[str, float]:
    voices, embed = _Voices(folder), _speaker_encoder()
    gains, gains_nearest = [], []
    for speaker in SPEAKERS:
        unadapted, nearest, adapted = _cosines(speaker, voices, embed)
        gains.append(adapted - unadapted)
        gains_nearest.append(adapted - nearest)
        print(
            f"{speaker.name:9} {speaker.sex:6} unadapted {unadapted:.3f}  nearest style {nearest:.3f}  "
            f"adapted {adapted:.3f}  gain {gains[-1]:+.3f}",
            flush=True,
        )
    return {
        "similarity_gain": round(float(np.mean(gains)), 3),
        "similarity_gain_nearest": round(float(np.mean(gains_nearest)), 3),
    }


def _cosines(speaker: Speaker, voices: _Voices, embed: Any) -> tuple[float, float, float]:
    """Unadapted, nearest style and adapted, each the mean over the two languages."""
    clip = reference_clip(speaker)
    reference = embed(read_clip(clip))
    found: list[tuple[float, float, float]] = []
    for language in SENTENCES:
        adapted, mix = voices.adapted(clip, language)
        nearest = max(float(reference @ embed(voices.unadapted(name, language))) for name, _ in mix)
        unadapted = float(reference @ embed(voices.unadapted(UNADAPTED[speaker.sex], language)))
        found.append((unadapted, nearest, float(reference @ embed(adapted))))
    means = np.mean(found, axis=0)
    return float(means[0]), float(means[1]), float(means[2])


def _speaker_encoder() -> Any:
    """A function from samples at 24 kHz to a speaker's embedding of length 1."""
    if "pkg_resources" not in sys.modules:
        # webrtcvad asks pkg_resources for its own version, and setuptools no longer brings that.
        shim = types.ModuleType("pkg_resources")
        shim.get_distribution = lambda name: types.SimpleNamespace(  # type: ignore[attr-defined]
            version=importlib.metadata.version(name)
        )
        sys.modules["pkg_resources"] = shim
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from resemblyzer import VoiceEncoder, preprocess_wav

        encoder = VoiceEncoder("cpu", verbose=False)

    def embed(samples: NDArray[np.float32]) -> Any:
        return encoder.embed_utterance(preprocess_wav(samples.astype(np.float32), source_sr=24_000))

    return embed
