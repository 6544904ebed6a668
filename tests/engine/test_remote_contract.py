"""The remote engine with a real speech server: fastkokoro from the package registry (`make speech-server`), or the one
that VOICEPOOL_REMOTE_SPEECH_URL names (VOICEPOOL_REMOTE_SETTINGS: JSON for the engine)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.embedded.ports import port_of, reserve_loopback_port
from tests.engine.conftest import MakeRequest
from tests.speech_server.real import PROGRAM
from tts.canary import speak_canary
from tts.engine.errors import EngineCanceled, EngineError
from tts.engine.process import Chunk, Done, EngineProcess

START_S = 180.0
SETTINGS: dict[str, Any] = {"voices": {"xiaohe": "zf_xiaoxiao", "*": "af_heart"}, "languages": ["zh", "en"]}


@pytest.fixture(scope="module")
def speech_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, Any]]]:
    """Address and settings of a real server."""
    if url := os.environ.get("VOICEPOOL_REMOTE_SPEECH_URL"):
        yield url, json.loads(os.environ.get("VOICEPOOL_REMOTE_SETTINGS") or "{}")
        return
    if not PROGRAM.exists():
        pytest.skip("no real speech server: `make speech-server` installs one")
    folder = tmp_path_factory.mktemp("speech server")
    with reserve_loopback_port() as reserved:
        port = port_of(reserved)
    log = (folder / "log").open("wb")
    command = [sys.executable, "-m", "tests.speech_server.real", str(folder), str(port)]
    process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait_until_healthy(f"http://127.0.0.1:{port}/health", process, folder / "log")
        yield f"http://127.0.0.1:{port}", SETTINGS
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        log.close()


def _wait_until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)  # until its port answers


@pytest.fixture(scope="module")
def remote(speech_server: tuple[str, dict[str, Any]]) -> Iterator[EngineProcess]:
    url, settings = speech_server
    engine = EngineProcess(
        None, "remote", {"first_byte_s": 180.0, "idle_s": 180.0, **settings, "url": url}, {}
    )
    engine.start()
    engine.load(60)
    yield engine
    assert engine.kill()


def speak(engine: EngineProcess, request: Any) -> tuple[list[bytes], Done]:
    events = list(engine.speak(request, no_progress_s=240, deadline_s=500))
    assert isinstance(events[-1], Done)
    return [event.pcm for event in events if isinstance(event, Chunk)], events[-1]


def loudest(pcm: bytes) -> int:
    samples = array("h", pcm)
    return max(max(samples), -min(samples))


def test_a_real_server_speaks_the_test_sentence(remote: EngineProcess):
    result = speak_canary(remote, sample_rate_hz=24_000, thorough=True)
    assert result.detail == ""
    assert result.gpu_ms > 0


def test_a_real_server_speaks_at_speech_pace(remote: EngineProcess, make_request: MakeRequest):
    chunks, done = speak(
        remote, make_request("Good morning, this is a sentence of ordinary length.", language="en")
    )
    pcm = b"".join(chunks)
    assert 1_500 < done.audio_ms < 8_000
    assert done.audio_ms == round(len(pcm) / 48)
    assert 1_000 < loudest(pcm) <= 32_767


def test_a_real_server_hears_how_fast(remote: EngineProcess, make_request: MakeRequest):
    text = "This is said at two speeds."
    slow, fast = (speak(remote, make_request(text, speed=speed))[1].audio_ms for speed in (1.0, 1.6))
    assert fast < slow * 0.85


def test_a_cancel_leaves_a_real_server_ready_for_the_next(remote: EngineProcess, make_request: MakeRequest):
    request = make_request("This is a long sentence, and then another one follows. " * 5)
    with pytest.raises(EngineCanceled):
        for _ in remote.speak(
            request,
            no_progress_s=240,
            deadline_s=500,
            on_sent=lambda: remote.cancel(request.request_id),
        ):
            pass
    assert speak(remote, make_request("Hello again."))[1].audio_ms > 300


def test_a_real_servers_refusal_is_the_requests(
    speech_server: tuple[str, dict[str, Any]], make_request: MakeRequest
):
    url, settings = speech_server
    engine = EngineProcess(None, "remote", {**settings, "url": url, "extra": {"speed": "very"}}, {})
    engine.start()
    engine.load(60)
    with pytest.raises(EngineError) as refused:
        speak(engine, make_request("Hello."))
    assert (refused.value.code, refused.value.blame) == ("remote_refused", "user")
    assert engine.kill()
