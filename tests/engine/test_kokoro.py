"""The built-in engine, for real: one process for all tests."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from tests.e2e.listening import listen
from tests.engine.conftest import MakeRequest
from tests.engine.sounds import SAMPLE_RATE_HZ, Samples, speak, voice_like, wav_bytes
from tts.engine.adaptation import recipe_for
from tts.engine.catalogue import ENGINES, PRESET_VOICES
from tts.engine.errors import EngineError
from tts.engine.kokoro_presets import PRESET_RECIPES
from tts.engine.loudness import loudness
from tts.engine.phonemes import LANGUAGES
from tts.engine.pitch import pitch_statistics
from tts.engine.process import BudgetExhausted, Chunk, EngineCanceled, EngineProcess, VoiceReference
from tts.engine.reference import FeatureCache, analyse_clip

pytestmark = pytest.mark.slow

SENTENCE = "今天天气很好，我们一起去公园散步吧。"
# How fast the presets speak Mandarin, characters a second: less than half of that or more than twice is no speech.
SLOWEST_CHARACTERS_PER_S, FASTEST_CHARACTERS_PER_S = 2.0, 9.0


def floats(samples: Samples) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return (samples / 32768).astype(np.float32)


def speech_s(samples: Samples) -> float:
    """Seconds of speech, as Silero's detector hears them, after FFmpeg's resampling: the engine uses neither."""
    heard = listen(wav_bytes(samples))
    return heard.speech_share * heard.seconds


def clone(clip: bytes) -> VoiceReference:
    return VoiceReference(kind="clone", reference_sha256=hashlib.sha256(clip).hexdigest())


def test_a_sentence_is_speech_at_a_listening_level(kokoro: EngineProcess, make_request: MakeRequest):
    chunks, done = speak(kokoro, make_request(SENTENCE))
    sound = np.concatenate(chunks)
    assert done.audio_ms == -(-len(sound) * 1000 // SAMPLE_RATE_HZ)
    assert done.gpu_ms > 0
    assert SLOWEST_CHARACTERS_PER_S < len(SENTENCE) / (done.audio_ms / 1000) < FASTEST_CHARACTERS_PER_S
    assert speech_s(sound) > 0.7 * done.audio_ms / 1000
    level = loudness(floats(sound))
    assert level is not None
    assert -21.5 < level < -18.5
    assert np.abs(sound).max() <= 0.9 * 32767


def test_the_first_chunk_is_short_and_all_begin_and_end_in_silence(
    kokoro: EngineProcess, make_request: MakeRequest
):
    chunks, done = speak(kokoro, make_request(SENTENCE * 3, speed=1.5))
    assert len(chunks) >= 3
    assert len(chunks[0]) / SAMPLE_RATE_HZ < done.audio_ms / 1000 / 3
    for chunk in chunks:
        # A step at a joint is a click: 1 % of full scale is below hearing.
        assert abs(int(chunk[0])) < 328
        assert abs(int(chunk[-1])) < 328


def test_the_same_request_gives_the_same_bytes_and_another_seed_another_reading(
    kokoro: EngineProcess, make_request: MakeRequest
):
    first, again, other = (
        np.concatenate(speak(kokoro, make_request("你好，世界。", seed=seed))[0]).tobytes()
        for seed in (5, 5, 6)
    )
    assert first == again
    assert first != other


def test_300_characters_without_a_mark_are_spoken_in_full(kokoro: EngineProcess, make_request: MakeRequest):
    """The longest segment there is. test_phonemes has 720: what reaches the model there is complete as well."""
    text = "我们在山里走了很久才看见那条河" * 20
    assert len(text) == 300
    chunks, done = speak(kokoro, make_request(text, speed=2.0))
    _, short = speak(kokoro, make_request(text[:30], speed=2.0))
    # Ten times the text takes about ten times as long: nothing is left out, nothing said twice.
    assert 8.5 < done.audio_ms / short.audio_ms < 11.5
    assert speech_s(np.concatenate(chunks)) > 0.8 * done.audio_ms / 1000


def test_half_the_speed_takes_about_twice_as_long(kokoro: EngineProcess, make_request: MakeRequest):
    fast, slow = (
        speak(kokoro, make_request("请把门关上。", speed=speed))[1].audio_ms for speed in (1.4, 0.7)
    )
    assert 1.6 < slow / fast < 2.4


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("请打开OpenAI的API文档，version 2.0。", "zh"),
        ("Please say 你好 to Mr. Wang at 3:30.", "en"),
        ("¿Dónde está la biblioteca?", "es"),
        ("Où est la bibliothèque ?", ""),
    ],
    ids=["zh with en", "en with zh", "es", "fr detected"],
)
def test_other_languages_and_mixtures_are_speech(
    kokoro: EngineProcess, make_request: MakeRequest, text: str, language: str
):
    chunks, done = speak(kokoro, make_request(text, language=language))
    assert done.audio_ms > 1000
    assert speech_s(np.concatenate(chunks)) > 0.6 * done.audio_ms / 1000


@pytest.mark.parametrize(
    ("text", "language", "code"),
    [
        ("こんにちは、元気ですか。", "", "language_not_supported"),
        ("안녕하세요", "", "language_not_supported"),
        ("Привет", "", "language_not_supported"),
        ("你好", "ja", "language_not_supported"),
        ("……！？", "", "text_unspeakable"),
        ("😀🎉", "", "text_unspeakable"),
    ],
)
def test_what_cannot_be_spoken_is_refused_as_the_users_fault(
    kokoro: EngineProcess, make_request: MakeRequest, text: str, language: str, code: str
):
    with pytest.raises(EngineError) as caught:
        speak(kokoro, make_request(text, language=language))
    assert (caught.value.code, caught.value.blame) == (code, "user")
    assert text not in caught.value.message


def test_every_preset_of_the_catalogue_is_a_voice_of_its_own(
    kokoro: EngineProcess, make_request: MakeRequest
):
    sounds = set()
    for preset in PRESET_VOICES:
        voice = VoiceReference(kind="preset", preset_key=preset.key)
        text = "你好。" if preset.language == "zh" else "Hello."
        chunks, _ = speak(kokoro, make_request(text, voice=voice))
        sounds.add(np.concatenate(chunks).tobytes())
    assert len(sounds) == len(PRESET_VOICES) == 6


def test_an_unknown_preset_is_the_platforms_fault(kokoro: EngineProcess, make_request: MakeRequest):
    with pytest.raises(EngineError) as caught:
        speak(kokoro, make_request(voice=VoiceReference(kind="preset", preset_key="nobody")))
    assert (caught.value.code, caught.value.blame) == ("voice_unknown", "platform")


@pytest.mark.parametrize("pitch_hz", [110.0, 300.0])
def test_the_pitch_moves_to_the_references(kokoro: EngineProcess, make_request: MakeRequest, pitch_hz: float):
    clip = wav_bytes(voice_like(pitch_hz=pitch_hz, seconds=5))
    chunks, _ = speak(kokoro, make_request(SENTENCE, voice=clone(clip), reference_wav=clip))
    spoken = pitch_statistics(floats(np.concatenate(chunks)))
    assert spoken is not None
    assert abs(12 * np.log2(spoken.median_hz / pitch_hz)) < 2.5


def test_a_clip_without_a_pitch_still_makes_a_voice(kokoro: EngineProcess, make_request: MakeRequest):
    noise = np.random.default_rng(3).normal(0, 60, 4 * SAMPLE_RATE_HZ).astype(np.int16)
    clip = wav_bytes(noise)
    chunks, done = speak(kokoro, make_request("你好，世界。", voice=clone(clip), reference_wav=clip))
    sound = np.concatenate(chunks)
    assert speech_s(sound) > 0.5 * done.audio_ms / 1000
    assert np.abs(sound).max() <= 0.9 * 32767


def test_a_silent_clip_is_refused(kokoro: EngineProcess, make_request: MakeRequest):
    clip = wav_bytes(np.zeros(4 * SAMPLE_RATE_HZ, np.int16))
    with pytest.raises(EngineError) as caught:
        speak(kokoro, make_request(voice=clone(clip), reference_wav=clip))
    assert (caught.value.code, caught.value.blame) == ("clip_silent", "user")


def test_a_clip_that_is_no_wav_is_the_platforms_fault(kokoro: EngineProcess, make_request: MakeRequest):
    with pytest.raises(EngineError) as caught:
        speak(kokoro, make_request(voice=clone(b"x"), reference_wav=b"x"))
    assert (caught.value.code, caught.value.blame) == ("clip_unreadable", "platform")


def test_a_cancel_is_obeyed_between_two_calls(kokoro: EngineProcess, make_request: MakeRequest):
    request = make_request(SENTENCE * 10)
    events = kokoro.speak(request, no_progress_s=120, deadline_s=300)
    assert isinstance(next(events), Chunk)
    assert kokoro.cancel(request.request_id)
    with pytest.raises(EngineCanceled) as caught:
        list(events)
    assert 0 < caught.value.audio_ms < 20_000


def test_a_used_up_budget_ends_the_speech_and_keeps_what_was_said(
    kokoro: EngineProcess, make_request: MakeRequest
):
    # Enough to begin: the first call takes longer than that, and is spoken to its end.
    events = kokoro.speak(make_request(SENTENCE * 10, max_gpu_ms=300), no_progress_s=120, deadline_s=300)
    chunk = next(events)
    assert isinstance(chunk, Chunk)
    with pytest.raises(BudgetExhausted) as caught:
        list(events)
    assert caught.value.audio_ms == -(-len(chunk.pcm) // 2 * 1000 // SAMPLE_RATE_HZ)


def test_the_engine_has_what_the_catalogue_promises():
    assert ENGINES["kokoro"].languages == LANGUAGES
    assert set(PRESET_RECIPES) == {preset.key for preset in PRESET_VOICES}


def test_features_are_kept_for_the_clips_used_last():
    cache = FeatureCache(2)
    clips = [wav_bytes(voice_like(pitch_hz=pitch, seconds=2)) for pitch in (120, 180, 240)]
    first = cache.features(clips[0])
    assert cache.features(clips[0]) is first
    for clip in clips[1:]:
        cache.features(clip)
    assert len(cache) == 2
    assert cache.features(clips[0]) is not first


def test_a_quiet_clip_gives_the_same_recipe_as_a_loud_one():
    loud = voice_like(pitch_hz=170, seconds=4)
    recipes = [recipe_for(analyse_clip(wav_bytes(clip))) for clip in (loud, (loud / 40).astype(np.int16))]
    assert recipes[0].mix == recipes[1].mix
    assert recipes[0].to_hz == pytest.approx(recipes[1].to_hz, rel=0.01)
    assert np.allclose(recipes[0].gain_db, recipes[1].gain_db, atol=1.5)
