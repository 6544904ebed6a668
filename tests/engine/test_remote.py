"""The remote engine in a real engine process, against a double that misbehaves on demand."""

from __future__ import annotations

import base64
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import MakeRequest
from tests.engine.fake_speech_server import KEY, MS_PER_CHARACTER, FakeSpeechServer, tone
from tts.engine.errors import BACKEND_GONE, BudgetExhausted, EngineCanceled, EngineError
from tts.engine.process import Chunk, Done, EngineProcess, VoiceReference

# Short where a test waits for it, generous where the machine may be slow.
LIMITS = {"connect_s": 5.0, "first_byte_s": 30.0, "idle_s": 30.0, "total_s": 60.0}
StartRemote = Callable[..., EngineProcess]


@pytest.fixture
def server() -> Iterator[FakeSpeechServer]:
    fake = FakeSpeechServer()
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def start_remote(server: FakeSpeechServer) -> Iterator[StartRemote]:
    engines: list[EngineProcess] = []

    def start(**settings: Any) -> EngineProcess:
        engine = EngineProcess(None, "remote", {"url": server.url, **LIMITS, **settings}, {})
        engines.append(engine)
        engine.start()
        engine.load(60)
        return engine

    yield start
    for engine in engines:
        assert engine.kill()


def speak(engine: EngineProcess, request: Any) -> tuple[bytes, Done]:
    events = list(engine.speak(request, no_progress_s=60, deadline_s=120))
    assert isinstance(events[-1], Done)
    return b"".join(event.pcm for event in events if isinstance(event, Chunk)), events[-1]


def failure(engine: EngineProcess, request: Any) -> EngineError:
    with pytest.raises(EngineError) as failed:
        speak(engine, request)
    return failed.value


@pytest.mark.parametrize("kind", ["pcm", "wav"])
def test_what_the_server_sends_is_what_the_customer_hears(
    kind: str, server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest
):
    engine = start_remote(format=kind)
    pcm, done = speak(engine, make_request("Good morning."))
    assert pcm == tone(13 * MS_PER_CHARACTER)
    assert done.audio_ms == 13 * MS_PER_CHARACTER
    assert done.gpu_ms >= 1
    assert server.requests == [
        {
            "model": "fake-1",
            "input": "Good morning.",
            "voice": "anna",
            "response_format": kind,
            "stream": True,
        }
    ]


def test_settings_say_how_the_server_is_asked(
    server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest
):
    engine = start_remote(
        model="other",
        voices={"xiaohe": "bert"},
        language_field="language",
        language_names={"zh": "Chinese"},
        seed_field="seed",
        extra={"task_type": "CustomVoice"},
        stream=False,
    )
    speak(engine, make_request("好", language="zh", seed=5, speed=2.0))
    assert server.requests[0] == {
        "task_type": "CustomVoice",
        "model": "other",
        "input": "好",
        "response_format": "pcm",
        "speed": 2.0,
        "voice": "bert",
        "language": "Chinese",
        "seed": 5,
    }


def test_a_clone_goes_with_its_clip_and_what_it_says(
    server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest
):
    engine = start_remote(clone=True)
    voice = VoiceReference(kind="clone", reference_sha256="ab" * 32, transcript="What I say.")
    speak(engine, make_request("Hello.", voice=voice, reference_wav=b"RIFF and so on"))
    (asked,) = server.requests
    assert asked["ref_text"] == "What I say."
    assert base64.b64decode(asked["ref_audio"].removeprefix("data:audio/wav;base64,")) == b"RIFF and so on"
    assert "voice" not in asked


def test_a_server_that_only_clones_speaks_presets_from_clips(
    server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest, tmp_path: Path
):
    (tmp_path / "xiaohe.wav").write_bytes(b"a clip")
    (tmp_path / "xiaohe.txt").write_text("它说的话\n", encoding="utf-8")
    server.voices = []
    engine = start_remote(clone=True, preset_folder=str(tmp_path))
    speak(engine, make_request("你好"))
    assert server.requests[0]["ref_text"] == "它说的话"
    assert base64.b64decode(server.requests[0]["ref_audio"].partition(",")[2]) == b"a clip"


@pytest.mark.parametrize("clones", [True, False])
def test_what_the_engine_offers_goes_by_its_settings(clones: bool, server: FakeSpeechServer):
    engine = EngineProcess(
        None,
        "remote",
        {"url": server.url, "clone": clones, "instructions": True, "languages": ["en", "fr"]},
        {},
    )
    engine.start()
    can = engine.load(60).capabilities
    assert engine.kill()
    assert can is not None
    assert can.languages == ("en", "fr")
    assert can.modes == (("preset", "clone", "instruct") if clones else ("preset", "instruct"))
    assert can.instructions == "free"


def test_the_key_is_sent_and_a_wrong_one_is_told_at_once(
    server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest
):
    server.key = KEY
    speak(start_remote(key=KEY), make_request("Hello."))
    with pytest.raises(EngineError, match="refuses the key") as refused:
        start_remote(key="wrong-key-of-mine")
    assert refused.value.code == BACKEND_GONE
    assert "wrong-key-of-mine" not in str(refused.value)


def test_no_key_and_no_text_reaches_a_log(
    server: FakeSpeechServer,
    start_remote: StartRemote,
    make_request: MakeRequest,
    capfd: pytest.CaptureFixture[str],
):
    server.key = KEY
    engine = start_remote(key=KEY)
    for text in ("status 500 of a customer", "status 400 of a customer", "json", "cut off"):
        error = failure(engine, make_request(text))
        assert "customer" not in error.message
    assert engine.kill()
    said = "".join(capfd.readouterr())
    assert "remote_failed" in said  # it did log something
    assert KEY not in said
    assert "customer" not in said


@pytest.mark.parametrize(
    ("text", "code", "blame"),
    [
        ("status 400", "remote_refused", "user"),
        ("status 422", "remote_refused", "user"),
        ("status 401", BACKEND_GONE, "platform"),
        ("status 404", BACKEND_GONE, "platform"),
        ("status 302", BACKEND_GONE, "platform"),
        ("status 500", "remote_failed", "platform"),
        ("status 503", "remote_failed", "platform"),
        ("json", "remote_broken", "platform"),
        ("cut off", "remote_broken", "platform"),
        ("broken chunks", "remote_broken", "platform"),
    ],
)
def test_each_failure_says_whose_fault_it_is(
    text: str, code: str, blame: str, start_remote: StartRemote, make_request: MakeRequest
):
    engine = start_remote()
    error = failure(engine, make_request(text))
    assert (error.code, error.blame) == (code, blame)
    assert speak(engine, make_request("Hello."))[1].audio_ms == 6 * MS_PER_CHARACTER


def test_a_busy_server_is_asked_again_and_the_wait_is_nobodys(
    server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest
):
    server.busy_answers_left = 3
    pcm, _ = speak(start_remote(), make_request("Hello."))
    assert pcm == tone(6 * MS_PER_CHARACTER)
    assert len(server.requests) == 4
    server.busy_answers_left = 1000
    error = failure(start_remote(busy_wait_s=0.3), make_request("Hello."))
    assert (error.code, error.blame) == ("remote_busy", "platform")
    assert server.busy_answers_left > 900


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("hang", {"first_byte_s": 0.5}),
        ("stops in the middle", {"idle_s": 0.5}),
        ("hang", {"total_s": 0.7}),
    ],
)
def test_every_wait_has_an_end_and_closes_the_connection(
    text: str,
    limits: dict[str, float],
    server: FakeSpeechServer,
    start_remote: StartRemote,
    make_request: MakeRequest,
):
    error = failure(start_remote(**limits), make_request(text))
    assert (error.code, error.blame) == ("remote_timeout", "platform")
    assert server.gone.wait(30)


def test_a_server_that_does_not_stop_is_stopped(
    server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest
):
    error = failure(start_remote(max_audio_s=20.0), make_request("endless"))
    assert error.code == "remote_too_large"
    assert server.gone.wait(30)


def test_a_cancel_closes_the_connection(
    server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest
):
    engine, request = start_remote(), make_request("hang")
    killer = threading.Thread(target=lambda: (_wait_for(server.requests), engine.cancel(request.request_id)))
    killer.start()
    with pytest.raises(EngineCanceled):
        speak(engine, request)
    killer.join()
    assert server.gone.wait(30)
    assert speak(engine, make_request("Hello."))[0] == tone(6 * MS_PER_CHARACTER)


def test_what_was_set_aside_ends_a_request_that_waits(
    server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest
):
    with pytest.raises(BudgetExhausted) as stopped:
        speak(start_remote(), make_request("hang", max_gpu_ms=300))
    assert stopped.value.gpu_ms >= 300
    assert server.gone.wait(30)


def test_a_server_that_has_gone_is_told_from_one_that_failed_once(
    server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest
):
    engine = start_remote()
    codes = [failure(engine, make_request("status 500")).code for _ in range(3)]
    assert codes == ["remote_failed", "remote_failed", BACKEND_GONE]
    other = start_remote()
    server.stop()
    error = failure(other, make_request("Hello."))
    assert (error.code, error.blame) == (BACKEND_GONE, "platform")


def test_a_server_that_is_not_there_is_told_at_load():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        engine = EngineProcess(None, "remote", {"url": f"http://127.0.0.1:{port}", **LIMITS}, {})
        engine.start()
        with pytest.raises(EngineError, match="does not answer") as refused:
            engine.load(60)
        assert refused.value.code == BACKEND_GONE
        assert engine.kill()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"url": "ftp://here"}, "url is such as"),
        ({"url": "http://me:pass@here"}, "without a name or key"),
        ({"no_such": 1}, "no_such"),
        ({"format": "mp3"}, "format is one of"),
        ({"clone": "yes"}, "clone"),
        ({"voices": {"*": "claire"}}, "no voice claire"),
        ({"languages": []}, "languages"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], said: str, server: FakeSpeechServer):
    engine = EngineProcess(None, "remote", {"url": server.url, **settings}, {})
    engine.start()
    with pytest.raises(EngineError, match=said):
        engine.load(60)
    assert engine.kill()


def _wait_for(filled: list[Any]) -> None:
    deadline = time.monotonic() + 60
    while not filled:
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)  # until the server has the request
