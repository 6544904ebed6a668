"""A sample of each preset voice for the landing page, spoken by the pool itself as the least urgent of jobs."""

from __future__ import annotations

from tts import storage
from tts.engine.catalogue import PRESET_VOICES, PresetVoice
from tts.selectors.devices import ready_device_count
from tts.selectors.voices import preset_voices
from tts.services.platform_speech import advance


def sample_text(preset: PresetVoice) -> str:
    """What the preset voice says on the landing page, in its own language."""
    if preset.language == "zh":
        return f"你好，我是{preset.chinese_name}。把文字交给我，几秒钟之后，你就能听到它的声音。"
    return f"Hello, I am {preset.english_name}. Give me a text, and a few seconds later you can hear it."


def ensure_preset_samples() -> None:
    """Store the samples that are spoken by now, and submit those that are missing, while a device takes work."""
    missing = [
        preset for preset in PRESET_VOICES if not storage.exists(storage.preset_sample_key(preset.key))
    ]
    if not missing or not ready_device_count():
        return
    voices = {voice.preset_key: voice for voice in preset_voices()}
    for preset in missing:
        if voice := voices.get(preset.key):
            advance(
                name=f"sample-{preset.key}",
                voice=voice,
                text=sample_text(preset),
                storage_key=storage.preset_sample_key(preset.key),
            )
