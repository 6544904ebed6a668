"""Loading CosyVoice: what is refused, and that loading changes nothing else in the process."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import LoadCosyVoice
from tests.engine.fake_home import fake_home, fake_model
from tts.engine.cosyvoice_install import check_torchaudio, needs_patch, no_network, version_number
from tts.engine.cosyvoice_settings import CosyVoiceSettings
from tts.engine.errors import EngineError


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    return {"home": str(fake_home(tmp_path / "home")), "model_dir": str(fake_model(tmp_path / "model", 3))}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"colour": "red"}, "setting_unknown"),
        ({"fp16": "yes"}, "setting_wrong"),
        ({"cached_voices": True}, "setting_wrong"),
        ({"cached_voices": 0}, "setting_wrong"),
        ({"piece_characters": 500}, "setting_wrong"),
        ({"call_deadline_s": 0}, "setting_wrong"),
        ({"bistream": True}, "setting_forbidden"),
        ({"model_dir": "FunAudioLLM/Fun-CosyVoice3-0.5B-2512"}, "model_missing"),
        ({"home": ""}, "setting_wrong"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_is_loaded(
    folders: dict[str, str], given: dict[str, Any], code: str
) -> None:
    with pytest.raises(EngineError) as refused:
        CosyVoiceSettings.read({**folders, **given})
    assert refused.value.code == code


def test_the_folders_come_from_the_environment(
    folders: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYVOICE_HOME", folders["home"])
    monkeypatch.setenv("COSYVOICE_MODEL_DIR", folders["model_dir"])
    read = CosyVoiceSettings.read({"call_deadline_s": 60})
    assert (read.home, read.model_dir, read.call_deadline_s) == (folders["home"], folders["model_dir"], 60)


@pytest.mark.parametrize(
    ("version", "given", "allowed"),
    [
        (3, {"load_trt": True, "fp16": True}, False),
        (2, {"load_trt": True, "fp16": True}, True),
        (3, {"load_trt": True}, True),
        (3, {"fp16": True}, True),
        (3, {"load_jit": True}, False),
        (2, {"load_jit": True}, True),
        (2, {"load_jit": True, "load_vllm": True}, False),
        (3, {"load_vllm": True}, True),
        (3, {"load_vllm": True, "stream_tokens": True}, False),
        (3, {"stream_tokens": True}, True),
        (2, {"stream_tokens": True}, False),
    ],
)
def test_combinations_that_go_wrong_are_forbidden(
    folders: dict[str, str], version: int, given: dict[str, Any], allowed: bool
) -> None:
    settings = CosyVoiceSettings.read({**folders, **given})
    if allowed:
        settings.refuse_for(version, has_gpu=True)
    else:
        with pytest.raises(EngineError, match="setting_forbidden"):
            settings.refuse_for(version, has_gpu=True)


@pytest.mark.parametrize("name", ["fp16", "load_trt", "load_vllm"])
def test_what_needs_a_gpu_is_refused_without_one(folders: dict[str, str], name: str) -> None:
    with pytest.raises(EngineError, match=f"{name} without a GPU"):
        CosyVoiceSettings.read({**folders, name: True}).refuse_for(3, has_gpu=False)


def test_only_what_a_version_knows_is_passed_to_it(folders: dict[str, str]) -> None:
    settings = CosyVoiceSettings.read(folders)
    assert "load_jit" not in settings.model_arguments(3)
    assert settings.model_arguments(2)["load_jit"] is False


@pytest.mark.parametrize(
    "missing",
    [
        "llm.pt",
        "flow.pt",
        "hift.pt",
        "campplus.onnx",
        "speech_tokenizer_v3.onnx",
        "cosyvoice3.yaml",
        "CosyVoice-BlankEN/vocab.json",
        "CosyVoice-BlankEN/config.json",
    ],
)
def test_a_missing_file_is_named(
    folders: dict[str, str], load_cosyvoice: LoadCosyVoice, missing: str
) -> None:
    (Path(folders["model_dir"]) / missing).unlink()
    with pytest.raises(EngineError) as refused:
        load_cosyvoice(**folders)
    assert refused.value.code == "model_missing"
    assert missing in refused.value.message


def test_a_file_that_was_cut_to_nothing_is_missing(
    folders: dict[str, str], load_cosyvoice: LoadCosyVoice
) -> None:
    (Path(folders["model_dir"]) / "llm.pt").write_text("")
    with pytest.raises(EngineError, match=r"llm\.pt"):
        load_cosyvoice(**folders)


def test_a_home_without_its_submodule_is_refused(
    folders: dict[str, str], load_cosyvoice: LoadCosyVoice
) -> None:
    (Path(folders["home"]) / "third_party").unlink()
    with pytest.raises(EngineError, match="submodules"):
        load_cosyvoice(**folders)


def test_the_first_cosyvoice_is_never_loaded(folders: dict[str, str], load_cosyvoice: LoadCosyVoice) -> None:
    (Path(folders["model_dir"]) / "cosyvoice.yaml").write_text("x")
    with pytest.raises(EngineError, match="model_unknown"):
        load_cosyvoice(**folders)


@pytest.mark.parametrize(
    ("version", "patched"), [("4.51.3", False), ("4.52.4", False), ("4.53.1", True), ("4.57.1", True)]
)
def test_newer_transformers_are_patched(version: str, patched: bool) -> None:
    assert needs_patch(version) is patched


def test_transformers_that_nobody_verified_are_refused() -> None:
    with pytest.raises(EngineError, match="library_unfit"):
        needs_patch("5.0.0")


def test_torchaudio_that_cannot_read_files_is_refused() -> None:
    check_torchaudio("2.3.1+cu121")
    with pytest.raises(EngineError, match="torchcodec"):
        check_torchaudio("2.9.0")
    assert version_number("2.10.0a1+git") == (2, 10)


def test_loading_leaves_the_logger_as_it_was(folders: dict[str, str], load_cosyvoice: LoadCosyVoice) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    load_cosyvoice(**folders)
    assert (root.level, list(root.handlers)) == before


def test_loading_reaches_no_network(folders: dict[str, str], load_cosyvoice: LoadCosyVoice) -> None:
    # The double asks a hub for its normaliser, as wetext does, and goes on without.
    assert load_cosyvoice(**folders).stats()["text_frontend"] == ""
    with pytest.raises(EngineError, match="text_frontend"):
        load_cosyvoice(**folders, text_frontend=True)


def test_without_network_means_this_machine_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, no_network():
        socket.create_connection(server.getsockname(), timeout=5).close()
        with socket.socket() as outward, pytest.raises(ConnectionRefusedError):
            outward.connect(("192.0.2.1", 443))
        with pytest.raises(socket.gaierror):
            socket.getaddrinfo("example.org", 443)
    assert socket.getaddrinfo("127.0.0.1", 443)


def test_the_version_follows_from_weights_and_settings(
    folders: dict[str, str], load_cosyvoice: LoadCosyVoice, tmp_path: Path
) -> None:
    first = load_cosyvoice(**folders).said
    assert first.engine_version.startswith("3-")
    assert load_cosyvoice(**folders).said == first
    (Path(folders["model_dir"]) / "llm.pt").write_text("other weights")
    assert load_cosyvoice(**folders).said.engine_version != first.engine_version
    two = load_cosyvoice(home=folders["home"], model_dir=str(fake_model(tmp_path / "two", 2))).said
    assert two.engine_version.startswith("2-")
    assert (two.sample_rate_hz, two.engine) == (24_000, "cosyvoice")
