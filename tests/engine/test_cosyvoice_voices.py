"""The features of voices: computed once, kept apart, read back as they were."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from tests.engine.conftest import LoadCosyVoice, LoadedCosyVoice, MakeRequest
from tests.engine.fake_home import clip, fake_home, fake_model
from tests.engine.test_cosyvoice_faults import control, nothing_left, speak
from tts.engine.cosyvoice_voices import VoiceCache
from tts.engine.errors import EngineError
from tts.engine.protocol import SpeakRequest, VoiceReference, encode_frame, read_frame

TEXT = "今天天气很好，我们去公园散步吧。"
CLIP = clip()


@pytest.fixture(params=[2, 3])
def engine(load_cosyvoice: LoadCosyVoice, tmp_path: Path, request: pytest.FixtureRequest) -> LoadedCosyVoice:
    model = fake_model(tmp_path / "model", request.param)
    return load_cosyvoice(home=str(fake_home(tmp_path / "home")), model_dir=str(model), cached_voices=2)


def voice(tenant: str = "one", sha256: str = "ab" * 32) -> VoiceReference:
    return VoiceReference(
        kind="clone", transcript="希望你好。", language="zh", tenant=tenant, reference_sha256=sha256
    )


def test_features_serve_in_place_of_the_clip(
    engine: LoadedCosyVoice, make_request: MakeRequest, load_cosyvoice: LoadCosyVoice
) -> None:
    reported: list[bytes] = []
    first = speak(
        engine,
        make_request(TEXT, voice=voice(), reference_wav=CLIP),
        control(report_features=reported.append),
    )
    (features,) = reported
    assert len(features) < len(CLIP)
    engine.free_memory()
    used = control(report_features=reported.append)
    assert speak(engine, make_request(TEXT, voice=voice(), features=features), used) == first
    assert reported == [features]


def test_features_are_computed_once_for_each_tenant_and_not_kept_forever(
    engine: LoadedCosyVoice, make_request: MakeRequest
) -> None:
    reported: list[bytes] = []
    for tenant in ("one", "one", "two", "three", "one"):
        request = make_request(TEXT, voice=voice(tenant), reference_wav=CLIP)
        speak(engine, request, control(report_features=reported.append))
    # The last one again: only two are kept.
    assert len(reported) == 4
    assert len(set(reported)) == 1
    assert engine.stats()["cached_voices"] == 2
    # CosyVoice's own dictionary would be kept, and written beside the weights.
    assert engine._parts().package.list_available_spks() == []
    assert not (Path(engine._parts().settings.model_dir) / "spk2info.pt").exists()


def test_an_instruction_is_heard_with_a_voice_that_is_cached(
    engine: LoadedCosyVoice, make_request: MakeRequest, tmp_path: Path
) -> None:
    plain = make_request(TEXT, voice=voice(), reference_wav=CLIP)
    spoken = speak(engine, plain)
    told = make_request(TEXT, voice=voice(), reference_wav=CLIP, instruction="请用四川话表达。")
    instructed = speak(engine, told)
    assert instructed != spoken
    assert speak(engine, told) == instructed
    assert instructed != speak(
        engine, make_request(TEXT, voice=voice(), reference_wav=CLIP, instruction="请用广东话表达。")
    )


def test_speech_is_what_the_package_itself_makes_of_the_same_prompt(
    engine: LoadedCosyVoice, make_request: MakeRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own inputs to the model are those of CosyVoice's methods, in each mode."""
    parts = engine._parts()
    given: list[dict[str, object]] = []
    tts = parts.package.model.tts
    monkeypatch.setattr(parts.package.model, "tts", lambda **named: (given.append(named), tts(**named))[1])
    path = tmp_path / "clip.wav"
    path.write_bytes(CLIP)
    system = "You are a helpful assistant." if parts.version == 3 else ""
    end = "<|endofprompt|>" if parts.version == 3 else ""
    asked = [
        {"mode": "zero_shot"},
        {"mode": "cross_lingual"},
        {"instruction": "请用四川话表达。"},
    ]
    for changes in asked:
        speak(engine, make_request(TEXT, voice=voice(), reference_wav=CLIP, **changes))
    package = parts.package
    list(package.inference_zero_shot(TEXT, f"{system}{end}希望你好。", str(path), text_frontend=False))
    list(package.inference_cross_lingual(f"{system}{end}{TEXT}", str(path), text_frontend=False))
    # Each version is asked for a dialect as its own example asks.
    sentence = "请用四川话表达。" if parts.version == 3 else "用四川话说这句话"
    instruction = f"{system}{' ' if system else ''}{sentence}<|endofprompt|>"
    list(package.inference_instruct2(TEXT, instruction, str(path), text_frontend=False))
    ours, theirs = given[:3], given[3:]
    for one, other in zip(ours, theirs, strict=True):
        tensors = {name: value for name, value in other.items() if hasattr(value, "shape")}
        # Without prompt speech the model is given none by either.
        assert {name for name in one if hasattr(one[name], "shape")} == set(tensors)
        for name, value in tensors.items():
            assert one[name].equal(value), name  # type: ignore[attr-defined]


@pytest.mark.parametrize("damage", ["nothing", "text", "pickle", "form", "shape"])
def test_stored_features_that_cannot_be_read_are_told_of(
    engine: LoadedCosyVoice, make_request: MakeRequest, damage: str
) -> None:
    file = io.BytesIO()
    token, feat, speaker = (
        np.zeros((1, 9), "int32"),
        np.zeros((1, 18, 80), "float32"),
        np.zeros((1, 192), "float32"),
    )
    good = {"form": np.array(1), "speech_token": token, "speech_feat": feat, "embedding": speaker}
    changed = {
        "pickle": {"embedding": np.array([{}], object)},
        "form": {"form": np.array(2)},
        "shape": {"speech_feat": feat[0]},
    }
    np.savez(file, **{**good, **changed.get(damage, {})})  # type: ignore[arg-type]
    stored = {"nothing": b"\0", "text": b"no archive"}.get(damage, file.getvalue())
    with pytest.raises(EngineError) as refused:
        speak(engine, make_request(TEXT, voice=voice(), features=stored))
    assert refused.value.code == "features_unreadable"
    assert refused.value.blame == "platform"


@pytest.mark.parametrize(
    ("wav", "code", "blame"),
    [
        (clip(seconds=0.5), "clip_too_short", "user"),
        (b"RIFF", "clip_unreadable", "platform"),
        (b"", "clip_unreadable", "platform"),
    ],
)
def test_clips_that_no_voice_can_be_taken_from_are_refused(
    engine: LoadedCosyVoice, make_request: MakeRequest, wav: bytes, code: str, blame: str
) -> None:
    with pytest.raises(EngineError) as refused:
        speak(engine, make_request(TEXT, voice=voice(), reference_wav=wav))
    assert (refused.value.code, refused.value.blame) == (code, blame)
    nothing_left(engine)


def test_a_clip_of_thirty_seconds_is_taken_and_a_longer_one_cut(
    engine: LoadedCosyVoice, make_request: MakeRequest
) -> None:
    assert speak(engine, make_request(TEXT, voice=voice(), reference_wav=clip(seconds=30)))
    assert speak(engine, make_request(TEXT, voice=voice("two"), reference_wav=clip(seconds=31)))


def test_preset_voices_have_clips_of_the_operators(
    load_cosyvoice: LoadCosyVoice, make_request: MakeRequest, tmp_path: Path
) -> None:
    presets = tmp_path / "presets"
    presets.mkdir()
    (presets / "henry.wav").write_bytes(clip(pitch_hz=110))
    (presets / "henry.txt").write_text("Good morning.\n")
    engine = load_cosyvoice(
        home=str(fake_home(tmp_path / "home")),
        model_dir=str(fake_model(tmp_path / "model", 3)),
        preset_folder=str(presets),
    )
    spoken = {
        key: speak(engine, make_request(TEXT, voice=VoiceReference(kind="preset", preset_key=key)))
        for key in ("henry", "xiaohe")
    }
    assert spoken["henry"] != spoken["xiaohe"]
    for key in ("zhiyuan", "../presets/henry", ""):
        with pytest.raises(EngineError, match="voice_unknown"):
            speak(engine, make_request(TEXT, voice=VoiceReference(kind="preset", preset_key=key)))


def test_one_tenants_voice_is_no_others() -> None:
    keys = {VoiceCache.key(tenant=tenant, clip_sha256=clip) for tenant in ("a", "ab") for clip in ("bc", "c")}
    assert len(keys) == 4


def test_features_travel_in_place_of_the_clip(make_request: MakeRequest) -> None:
    request = make_request(
        TEXT, voice=voice(), features=b"numbers", instruction="请用四川话表达。", mode="instruct"
    )
    frame = read_frame(io.BytesIO(encode_frame(request.to_header(), request.payload)))
    assert frame is not None
    assert SpeakRequest.from_frame(frame) == request


def test_the_likeness_of_what_was_spoken_is_measured_by_the_frontends_encoder(
    engine: LoadedCosyVoice, make_request: MakeRequest
) -> None:
    assert engine.similarity() is None
    speak(engine, make_request(TEXT, voice=voice(), reference_wav=CLIP))
    own = engine.similarity()
    engine.model.behaviour.planned = [{"do": "other_speaker"}]
    speak(engine, make_request(TEXT, voice=voice(), reference_wav=CLIP))
    other = engine.similarity()
    assert own is not None
    assert other is not None
    assert other < 0.31 < own <= 1
    engine.model.behaviour.planned = []
    speak(engine, make_request("好。", voice=voice(), reference_wav=CLIP))
    # Too little to tell.
    assert engine.similarity() is None


def test_no_file_of_what_was_spoken_is_left(
    engine: LoadedCosyVoice, make_request: MakeRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spoken"))
    (tmp_path / "spoken").mkdir()
    speak(engine, make_request(TEXT, voice=voice(), reference_wav=CLIP))
    assert engine.similarity() is not None
    assert list((tmp_path / "spoken").iterdir()) == []
