"""What the engines can do and which voices the platform brings along. Pure: read by pages, quotes and the
agent.

What a preset is made of is the engine's own affair (`tts.engine.kokoro_presets`); here stands what people
see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from tts.engine.capabilities import CLONE, INSTRUCT, PRESET, Capabilities

if TYPE_CHECKING:
    from tts.engine.base import LoadedEngine


@dataclass(frozen=True)
class EngineDescription:
    """`gpu_ms_per_audio_s` is what a quote expects one second of speech to take, in milliseconds of the
    device."""

    key: str
    name: str
    languages: tuple[str, ...]
    real_clone: bool
    sample_rate_hz: int
    gpu_ms_per_audio_s: int
    minimum_free_memory_bytes: int
    takes_instructions: bool = False
    """Whether a sentence may say how it is to read."""
    reads_as_written: bool = False
    """Whether it is given texts with their digits and signs, not as they are spoken."""

    @property
    def capabilities(self) -> Capabilities:
        """What the engine can do, in the words that the pool reads."""
        return Capabilities(
            languages=self.languages,
            modes=(PRESET, CLONE, INSTRUCT) if self.takes_instructions else (PRESET, CLONE),
            instructions="catalogue" if self.takes_instructions else "none",
            real_clone=self.real_clone,
            sample_rate_hz=self.sample_rate_hz,
            gpu_ms_per_audio_s=self.gpu_ms_per_audio_s,
            trims_edges=True,
        )


@dataclass(frozen=True)
class PresetVoice:
    """`language` is the one that the voice is offered for; every preset speaks all of its engine's
    languages."""

    key: str
    english_name: str
    chinese_name: str
    language: str
    gender: str
    english_description: str
    chinese_description: str


def capabilities_of(loaded: LoadedEngine) -> Capabilities:
    """What a loaded engine can do: its own word, else the catalogue's, else presets in its languages.

    Raises:
        EngineError: what it says of itself cannot be true.
    """
    if loaded.capabilities is not None:
        return loaded.capabilities
    known = ENGINES.get(loaded.engine)
    if known is not None:
        return known.capabilities
    return Capabilities(languages=loaded.languages, sample_rate_hz=loaded.sample_rate_hz)


ENGINES: Mapping[str, EngineDescription] = MappingProxyType(
    {
        "cosyvoice": EngineDescription(
            key="cosyvoice",
            name="CosyVoice",
            languages=("zh", "en", "ja", "ko", "de", "es", "fr", "it", "ru"),
            real_clone=True,
            sample_rate_hz=24_000,
            # The one published figure near plain Python: a real-time factor of 0.2494 on an L20 (CosyVoice's Triton
            # page, Hugging Face backend, one request at a time).
            gpu_ms_per_audio_s=250,
            minimum_free_memory_bytes=5_000_000_000,
            takes_instructions=True,
        ),
        "kokoro": EngineDescription(
            key="kokoro",
            name="Kokoro-82M",
            languages=("zh", "en", "es", "fr", "it", "pt", "de"),
            # Pitch and timbre are moved towards the reference; the speaker is not cloned.
            real_clone=False,
            sample_rate_hz=24_000,
            gpu_ms_per_audio_s=600,
            minimum_free_memory_bytes=1_200_000_000,
        ),
        # What such a server can do is asked of it: its device says so once it has loaded.
        "remote": EngineDescription(
            key="remote",
            name="Speech server (OpenAI’s API)",
            languages=("zh", "en"),
            real_clone=False,
            sample_rate_hz=24_000,
            gpu_ms_per_audio_s=1000,
            minimum_free_memory_bytes=200_000_000,
        ),
        "simulated": EngineDescription(
            key="simulated",
            name="Simulated (tests and benchmarks only)",
            languages=("zh", "en", "es", "fr", "it", "pt", "de"),
            real_clone=False,
            sample_rate_hz=24_000,
            gpu_ms_per_audio_s=100,
            minimum_free_memory_bytes=50_000_000,
            reads_as_written=True,
        ),
        "simulated-b": EngineDescription(
            key="simulated-b",
            name="Simulated, another version (tests of model swaps only)",
            languages=("zh", "en", "es", "fr", "it", "pt", "de"),
            real_clone=False,
            sample_rate_hz=24_000,
            gpu_ms_per_audio_s=100,
            minimum_free_memory_bytes=50_000_000,
            reads_as_written=True,
        ),
    }
)

PRESET_VOICES: tuple[PresetVoice, ...] = (
    PresetVoice(
        key="xiaohe",
        english_name="Xiaohe",
        chinese_name="小荷",
        language="zh",
        gender="female",
        english_description="Clear and friendly, a young woman",
        chinese_description="清亮亲切的年轻女声",
    ),
    PresetVoice(
        key="shuyun",
        english_name="Shuyun",
        chinese_name="舒云",
        language="zh",
        gender="female",
        english_description="Warm and calm, for stories",
        chinese_description="温暖沉静的女声，适合讲故事",
    ),
    PresetVoice(
        key="zhiyuan",
        english_name="Zhiyuan",
        chinese_name="致远",
        language="zh",
        gender="male",
        english_description="Deep and steady, for narration",
        chinese_description="低沉稳重的男声，适合旁白",
    ),
    PresetVoice(
        key="emma",
        english_name="Emma",
        chinese_name="艾玛",
        language="en",
        gender="female",
        english_description="Bright and lively",
        chinese_description="明快活泼的女声",
    ),
    PresetVoice(
        key="claire",
        english_name="Claire",
        chinese_name="克莱尔",
        language="en",
        gender="female",
        english_description="Low and composed, for the news",
        chinese_description="低而从容的女声，适合播报",
    ),
    PresetVoice(
        key="henry",
        english_name="Henry",
        chinese_name="亨利",
        language="en",
        gender="male",
        english_description="Relaxed and warm",
        chinese_description="松弛温和的男声",
    ),
)
