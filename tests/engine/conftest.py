"""Real child processes for the engine tests: the simulated engine per test, Kokoro once per session."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tts.engine.base import LoadedEngine
from tts.engine.cosyvoice import CosyVoiceEngine
from tts.engine.process import EngineProcess, SpeakRequest, VoiceReference

StartEngine = Callable[..., EngineProcess]
MakeRequest = Callable[..., SpeakRequest]


@pytest.fixture
def start_simulated() -> Iterator[StartEngine]:
    """Starts and loads simulated engines with the settings given; all are killed at the end."""
    engines: list[EngineProcess] = []

    def start(**settings: Any) -> EngineProcess:
        engine = EngineProcess(None, "simulated", settings, {})
        engines.append(engine)
        engine.start()
        engine.load(20)
        return engine

    yield start
    for engine in engines:
        assert engine.kill()


@pytest.fixture
def make_request() -> MakeRequest:
    """A request with sensible values for whatever is not given."""
    numbers = iter(range(1_000))

    def make(text: str = "你好，世界。", **changes: Any) -> SpeakRequest:
        fields: dict[str, Any] = {
            "request_id": f"request-{next(numbers)}",
            "text": text,
            "language": "",
            "voice": VoiceReference(kind="preset", preset_key="xiaohe"),
            "seed": 7,
            "speed": 1.0,
            "max_gpu_ms": 600_000,
        }
        return SpeakRequest(**{**fields, **changes})

    return make


@pytest.fixture(scope="session")
def kokoro(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """The built-in engine, loaded once, with a cache folder of its own whose name has a space."""
    folder = tmp_path_factory.mktemp("engine cache")
    engine = EngineProcess(None, "kokoro", {"cache_folder": str(folder)}, {})
    engine.start()
    engine.load(300)
    yield engine
    assert engine.kill()


class LoadedCosyVoice(CosyVoiceEngine):
    """The engine in this process, with what it said of itself when it was loaded."""

    said: LoadedEngine

    @property
    def model(self) -> Any:
        """The double's model, to look into and to plan its faults."""
        return self._parts().package.model


LoadCosyVoice = Callable[..., LoadedCosyVoice]
DOUBLED = ("cosyvoice", "transformers", "torchaudio", "matcha")


@pytest.fixture
def load_cosyvoice(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoadCosyVoice]:
    """Loads the engine here, with the settings given. The modules of its home are gone again afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in DOUBLED}

    def forget() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] in DOUBLED]:
            del sys.modules[name]

    with warnings.catch_warnings():
        # torch imports pynvml, whose package has another name by now.
        warnings.simplefilter("ignore", FutureWarning)
        importlib.import_module("torch")

    def load(**settings: Any) -> LoadedCosyVoice:
        forget()
        monkeypatch.setattr(sys, "path", [path for path in sys.path if "home" not in path])
        engine = LoadedCosyVoice()
        engine.said = engine.load(settings)
        return engine

    yield load
    forget()
    sys.modules.update(kept)
