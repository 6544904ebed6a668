"""What the engine relies on in CosyVoice's package, and what it makes of it: on a double everywhere, and on the real
one where COSYVOICE_HOME and COSYVOICE_MODEL_DIR name it (COSYVOICE_PYTHON: its interpreter)."""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.conftest import MakeRequest
from tests.engine.fake_home import clip, fake_home, fake_model
from tests.engine.sounds import Samples
from tts.engine.cosyvoice_calls import EXIT_WEDGED
from tts.engine.process import Chunk, Done, EngineCanceled, EngineDied, EngineError, EngineProcess, Features
from tts.engine.protocol import SpeakRequest, VoiceReference

TEXT = "今天天气很好，我们去公园散步吧。"
LONG = "今天天气很好，我们去公园散步吧。然后再去书店看看，买两本新书，晚上一起吃饭。\n" * 3
REAL = bool(os.environ.get("COSYVOICE_HOME") and os.environ.get("COSYVOICE_MODEL_DIR"))
CLIP = clip(seconds=5)
# name of the class → method → the arguments that stand before the ones that we give by name
SIGNATURES = {
    "CosyVoice2": {
        "__init__": ["self", "model_dir", "load_jit", "load_trt", "load_vllm", "fp16", "trt_concurrent"]
    },
    "CosyVoice3": {"__init__": ["self", "model_dir", "load_trt", "load_vllm", "fp16", "trt_concurrent"]},
    "CosyVoiceFrontEnd": {
        "_extract_text_token": ["self", "text"],
        "frontend_zero_shot": [
            "self",
            "tts_text",
            "prompt_text",
            "prompt_wav",
            "resample_rate",
            "zero_shot_spk_id",
        ],
        "text_normalize": ["self", "text", "split", "text_frontend"],
    },
    "CosyVoice2Model": {
        "tts": [
            "self",
            "text",
            "flow_embedding",
            "llm_embedding",
            "prompt_text",
            "llm_prompt_speech_token",
            "flow_prompt_speech_token",
            "prompt_speech_feat",
            "source_speech_token",
            "stream",
            "speed",
        ]
    },
    "Qwen2Encoder": {"forward_one_step": ["self", "xs", "masks", "cache"]},
}
JOB = ["self", "text", "prompt_text", "llm_prompt_speech_token", "llm_embedding", "uuid"]


@dataclass(frozen=True)
class Installed:
    """Where a CosyVoice is."""

    home: Path
    model_dir: Path
    command: list[str] | None

    def process(self, **settings: Any) -> EngineProcess:
        folders = {"home": str(self.home), "model_dir": str(self.model_dir)}
        return EngineProcess(self.command, "cosyvoice", {**folders, **settings}, {})


@pytest.fixture(scope="module", params=["double of CosyVoice2", "double of CosyVoice3", "real"])
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    if request.param != "real":
        folder = tmp_path_factory.mktemp("cosyvoice")
        version = int(request.param[-1])
        return Installed(fake_home(folder / "home"), fake_model(folder / "model", version), None)
    if not REAL:
        pytest.skip("COSYVOICE_HOME and COSYVOICE_MODEL_DIR are not set: the real CosyVoice is not here")
    python = os.environ.get("COSYVOICE_PYTHON")
    return Installed(
        Path(os.environ["COSYVOICE_HOME"]),
        Path(os.environ["COSYVOICE_MODEL_DIR"]),
        [python, "-m", "tts.engine.host"] if python else None,
    )


@pytest.fixture(scope="module")
def engine(installed: Installed) -> Iterator[EngineProcess]:
    process = installed.process()
    process.start()
    loaded = process.load(600)
    assert loaded.engine == "cosyvoice"
    assert loaded.sample_rate_hz == 24_000
    assert loaded.engine_version[:2] in ("2-", "3-")
    process.warm_up(600)
    yield process
    assert process.kill()


def speak(engine: EngineProcess, request: SpeakRequest) -> tuple[Samples, Done, list[bytes]]:
    """What was said, how it ended, and the features that were reported."""
    pcm, features = bytearray(), []
    for event in engine.speak(request, no_progress_s=300, deadline_s=600):
        if isinstance(event, Chunk):
            pcm += event.pcm
        elif isinstance(event, Features):
            features.append(event.content)
        else:
            return np.frombuffer(bytes(pcm), "<i2"), event, features
    raise AssertionError("no end")


def voice(tenant: str = "one", **changes: str) -> VoiceReference:
    fields = {"transcript": "希望你好。", "language": "zh", "tenant": tenant, "reference_sha256": "ab" * 32}
    return VoiceReference(kind="clone", **{**fields, **changes})


def test_the_package_has_what_the_engine_calls(installed: Installed) -> None:
    package = installed.home / "cosyvoice"
    classes = {
        node.name: node
        for name in ("cli/cosyvoice.py", "cli/frontend.py", "cli/model.py", "llm/llm.py")
        for node in ast.parse((package / name).read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    for owner, methods in SIGNATURES.items():
        found = {node.name: node for node in classes[owner].body if isinstance(node, ast.FunctionDef)}
        for name, arguments in methods.items():
            assert [argument.arg for argument in found[name].args.args] == arguments, f"{owner}.{name}"
    jobs = [
        [argument.arg for argument in node.args.args]
        for owner in classes.values()
        for node in owner.body
        if isinstance(node, ast.FunctionDef) and node.name == "llm_job"
    ]
    assert jobs
    assert all(job == JOB for job in jobs)
    seed = (package / "utils" / "common.py").read_text(encoding="utf-8")
    assert "def set_all_random_seed(seed):" in seed


@pytest.mark.parametrize(
    "changes",
    [{}, {"mode": "cross_lingual"}, {"instruction": "请用四川话表达。"}, {"speed": 1.25}],
    ids=["zero-shot", "cross-lingual", "instruct", "faster"],
)
def test_each_mode_speaks_the_same_for_the_same_seed(
    engine: EngineProcess, make_request: MakeRequest, changes: dict[str, Any]
) -> None:
    request = make_request(TEXT, voice=voice(), reference_wav=CLIP, **changes)
    samples, done, _ = speak(engine, request)
    assert 1_000 < done.audio_ms < 13_000
    assert done.gpu_ms > 0
    assert done.seed in (7, 8, 9)
    assert np.abs(samples.astype(int)).max() > 1_000
    again, _, _ = speak(engine, make_request(TEXT, voice=voice(), reference_wav=CLIP, **changes))
    assert np.array_equal(again, samples)
    other, _, _ = speak(engine, make_request(TEXT, voice=voice(), reference_wav=CLIP, seed=70, **changes))
    assert not np.array_equal(other, samples)


def test_features_are_reported_once_and_speak_the_same(
    engine: EngineProcess, make_request: MakeRequest
) -> None:
    samples, _, (features,) = speak(engine, make_request(TEXT, voice=voice("new"), reference_wav=CLIP))
    _, _, again = speak(engine, make_request(TEXT, voice=voice("new"), reference_wav=CLIP))
    assert again == []
    same, _, none = speak(engine, make_request(TEXT, voice=voice("third"), features=features))
    assert none == []
    assert np.array_equal(same, samples)


def test_nothing_clicks_where_pieces_meet(engine: EngineProcess, make_request: MakeRequest) -> None:
    chunks = [
        np.frombuffer(event.pcm, "<i2").astype(int)
        for event in engine.speak(
            make_request(LONG, voice=voice(), reference_wav=CLIP), no_progress_s=300, deadline_s=900
        )
        if isinstance(event, Chunk)
    ]
    assert len(chunks) > 2
    inside = max(np.abs(np.diff(chunk)).max() for chunk in chunks)
    joints = [abs(int(after[0]) - int(before[-1])) for before, after in itertools.pairwise(chunks)]
    assert max(joints) / inside <= 1
    # And a rest between them, as the rule has it: 320 ms after a sentence, 500 ms after a paragraph.
    rests = [len(chunk) - 1 - int(np.flatnonzero(np.abs(chunk) > 40)[-1]) for chunk in chunks[:-1]]
    assert min(rests) >= 0.3 * 24_000


def test_a_canceled_speech_ends_and_the_next_one_is_whole(
    engine: EngineProcess, make_request: MakeRequest
) -> None:
    whole, _, _ = speak(engine, make_request(TEXT, voice=voice(), reference_wav=CLIP))
    long = make_request(LONG, voice=voice(), reference_wav=CLIP)
    events = engine.speak(long, no_progress_s=300, deadline_s=600)
    while not isinstance(next(events), Chunk):
        pass
    engine.cancel(long.request_id)
    with pytest.raises(EngineCanceled) as stopped:
        list(events)
    assert stopped.value.audio_ms > 0
    again, _, _ = speak(engine, make_request(TEXT, voice=voice(), reference_wav=CLIP))
    assert np.array_equal(again, whole)


def test_texts_that_break_the_package_do_not_break_the_engine(
    engine: EngineProcess, make_request: MakeRequest
) -> None:
    for text in ("……！？", "😀"):
        with pytest.raises(EngineError) as refused:
            speak(engine, make_request(text, voice=voice(), reference_wav=CLIP))
        assert (refused.value.code, refused.value.blame) == ("text_unspeakable", "user")
    for text in ("2시에 만나요.", "1.\n2.\n3.", "好", "<|endofprompt|>你好", "25 яблок"):
        samples, _, _ = speak(engine, make_request(text, voice=voice(), reference_wav=CLIP))
        assert len(samples) > 1_000


def test_newer_transformers_speak_as_the_old_ones(
    tmp_path: Path, make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoken = {}
    for version in ("4.51.3", "4.57.1"):
        folder = tmp_path / version
        folder.mkdir()
        settings = {
            "home": str(fake_home(folder / "home")),
            "model_dir": str(fake_model(folder / "model", 3)),
        }
        process = EngineProcess(None, "cosyvoice", settings, {"FAKE_TRANSFORMERS_VERSION": version})
        process.start()
        process.load(120)
        spoken[version], _, _ = speak(process, make_request(TEXT, voice=voice(), reference_wav=CLIP))
        assert process.kill()
    assert np.array_equal(spoken["4.51.3"], spoken["4.57.1"])


def test_a_wedged_model_ends_its_process(tmp_path: Path, make_request: MakeRequest) -> None:
    model = fake_model(tmp_path / "model", 3, [{"do": "wedge"}])
    settings = {"home": str(fake_home(tmp_path / "home")), "model_dir": str(model)}
    process = EngineProcess(None, "cosyvoice", {**settings, "call_deadline_s": 0.2, "wedged_s": 0.2}, {})
    process.start()
    process.load(120)
    with pytest.raises(EngineDied) as died:
        speak(process, make_request(TEXT, voice=voice(), reference_wav=CLIP))
    assert died.value.exit_code == EXIT_WEDGED
    assert process.kill()


def test_memory_that_runs_out_is_tried_once_more_in_smaller_pieces(
    tmp_path: Path, make_request: MakeRequest
) -> None:
    model = fake_model(tmp_path / "model", 3, [{"do": "llm_error", "after": 3, "memory": True, "times": 1}])
    settings = {"home": str(fake_home(tmp_path / "home")), "model_dir": str(model)}
    process = EngineProcess(None, "cosyvoice", settings, {})
    process.start()
    process.load(120)
    samples, done, _ = speak(process, make_request(TEXT, voice=voice(), reference_wav=CLIP))
    assert done.ran_out_of_memory
    assert len(samples) > 24_000
    assert process.kill()


def test_what_was_spoken_twice_is_told_of_and_not_charged(tmp_path: Path, make_request: MakeRequest) -> None:
    model = fake_model(tmp_path / "model", 3, [{"do": "never_stop", "times": 1}])
    settings = {"home": str(fake_home(tmp_path / "home")), "model_dir": str(model)}
    process = EngineProcess(None, "cosyvoice", settings, {})
    process.start()
    process.load(120)
    _, done, _ = speak(process, make_request(TEXT, voice=voice(), reference_wav=CLIP, seed=7))
    assert done.seed == 8
    assert done.written_off_ms > 0
    _, done, _ = speak(process, make_request(TEXT, voice=voice(), reference_wav=CLIP, seed=7))
    assert (done.seed, done.written_off_ms) == (7, 0)
    assert process.kill()
