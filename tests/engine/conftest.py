"""Real child processes for the engine tests: the simulated engine per test, Kokoro once per session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

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
