"""The life and death of engine processes, with real ones."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import MakeRequest, StartEngine
from tts.engine.process import (
    BudgetExhausted,
    Chunk,
    Done,
    EngineCanceled,
    EngineDied,
    EngineError,
    EngineHung,
    EngineProcess,
    SpeakRequest,
    VoiceReference,
)
from tts.engine.simulated import tone, tone_period


def speak(engine: EngineProcess, request: SpeakRequest) -> tuple[bytes, Done]:
    """Everything that one request brings: the PCM of its chunks, which come in order, and its end."""
    events = list(engine.speak(request, no_progress_s=20, deadline_s=60))
    *chunks, done = events
    assert isinstance(done, Done)
    assert [chunk.sequence for chunk in chunks if isinstance(chunk, Chunk)] == list(range(len(chunks)))
    return b"".join(chunk.pcm for chunk in chunks if isinstance(chunk, Chunk)), done


def listen(events: Iterator[Chunk | Done], hear: Callable[[Chunk | Done], None]) -> None:
    """Pass every event to `hear`, until the request ends."""
    for event in events:
        hear(event)


def exists(pid: int) -> bool:
    """Whether a process runs: a zombie that nobody reaps here counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition: Callable[[], bool], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_a_request_is_spoken_in_chunks_with_exact_figures(
    start_simulated: StartEngine, make_request: MakeRequest
):
    engine = start_simulated(ms_per_character=25, audio_ms_per_character=200, chunk_ms=400)
    request = make_request("一二三四五六七", seed=11)
    pcm, done = speak(engine, request)
    assert done.gpu_ms == 7 * 25
    assert done.audio_ms == 7 * 200
    assert done.seed == 11
    assert done.peak_memory_bytes > 1_000_000
    expected = tone_period(text=request.text, voice_key="xiaohe", seed=11)
    assert pcm == tone(period=expected, samples=1400 * 24)


def test_an_engine_that_takes_no_instructions_refuses_one_and_goes_on(
    start_simulated: StartEngine, make_request: MakeRequest
):
    engine = start_simulated()
    with pytest.raises(EngineError) as refused:
        speak(engine, make_request(instruction="请用四川话表达。"))
    assert (refused.value.code, refused.value.blame) == ("mode_not_supported", "platform")
    assert speak(engine, make_request())[1].audio_ms > 0


def test_each_text_voice_and_seed_has_a_tone_of_its_own(
    start_simulated: StartEngine, make_request: MakeRequest
):
    engine = start_simulated()
    other_voice = VoiceReference(kind="clone", reference_sha256="cd" * 32)
    requests = [make_request(), make_request("再见。"), make_request(seed=8), make_request(voice=other_voice)]
    assert len({speak(engine, request)[0] for request in requests}) == 4
    assert speak(engine, requests[0])[0] == speak(engine, requests[0])[0]


def test_jitter_is_the_same_for_the_same_seed(start_simulated: StartEngine, make_request: MakeRequest):
    engine = start_simulated(ms_per_character=100, jitter_percent=50)
    first, again, other = (
        speak(engine, make_request("一二三四五六七八九十", seed=seed))[1].gpu_ms for seed in (1, 1, 2)
    )
    assert first == again != other
    assert 500 <= first <= 1500


def test_a_loaded_engine_says_what_it_is():
    engine = EngineProcess(None, "simulated", {}, {})
    engine.start()
    try:
        loaded = engine.load(20)
        assert (loaded.engine, loaded.sample_rate_hz) == ("simulated", 24_000)
        assert "zh" in loaded.languages
        engine.warm_up(20)
        assert engine.stats()["requests"] == 0
        assert engine.alive
    finally:
        engine.stop(5)
    assert not engine.alive
    assert not exists(engine.pid or 0)


def test_the_engine_sees_none_of_the_portals_secrets(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET_KEY", "hidden")
    engine = EngineProcess(None, "simulated", {}, {"CUDA_VISIBLE_DEVICES": "GPU-7"})
    engine.start()
    try:
        engine.load(20)
        environment = Path(f"/proc/{engine.pid}/environ").read_bytes().split(b"\0")
    finally:
        engine.kill()
    assert b"CUDA_VISIBLE_DEVICES=GPU-7" in environment
    assert not [
        entry for entry in environment if entry.startswith((b"SECRET_KEY", b"DATABASE_URL", b"REDIS_URL"))
    ]


def test_a_setting_that_is_unknown_is_an_error(start_simulated: StartEngine):
    with pytest.raises(EngineError) as caught:
        start_simulated(colour="blue")
    assert (caught.value.code, caught.value.blame) == ("setting_unknown", "platform")


def test_an_engine_that_cannot_load_says_so(start_simulated: StartEngine):
    with pytest.raises(EngineError) as caught:
        start_simulated(error_on_load=True)
    assert caught.value.code == "model_damaged"


def test_an_engine_that_nobody_knows_is_refused_by_name():
    engine = EngineProcess(None, "no-such-engine", {}, {})
    engine.start()
    try:
        with pytest.raises(EngineError, match="no-such-engine") as caught:
            engine.load(20)
        assert caught.value.code == "engine_unknown"
    finally:
        assert engine.kill()


def test_loading_for_too_long_is_a_hang():
    engine = EngineProcess(None, "simulated", {"load_ms": 60_000}, {})
    engine.start()
    with pytest.raises(EngineHung):
        engine.load(0.5)
    assert engine.alive
    assert engine.kill()


def test_kill_9_in_the_middle_of_speech_is_noticed(start_simulated: StartEngine, make_request: MakeRequest):
    engine = start_simulated(real_time=True, ms_per_character=1000)
    events = engine.speak(make_request("一二三四五六七八九十"), no_progress_s=20, deadline_s=60)
    assert isinstance(next(events), Chunk)
    os.kill(engine.pid or 0, signal.SIGKILL)
    with pytest.raises(EngineDied) as caught:
        list(events)
    assert caught.value.exit_code == -signal.SIGKILL
    assert not engine.alive
    with pytest.raises(EngineDied):
        list(engine.speak(make_request(), no_progress_s=20, deadline_s=60))


def test_an_engine_that_crashes_on_a_text_is_noticed(start_simulated: StartEngine, make_request: MakeRequest):
    engine = start_simulated(crash_on_text="毒")
    events = engine.speak(make_request("一句有毒的话。"), no_progress_s=20, deadline_s=60)
    assert isinstance(next(events), Chunk)
    with pytest.raises(EngineDied):
        list(events)


def test_a_misbehaviour_can_be_meant_once(
    start_simulated: StartEngine, make_request: MakeRequest, tmp_path: Path
):
    settings = {"crash_on_text": "毒", "once_folder": str(tmp_path)}
    with pytest.raises(EngineDied):
        speak(start_simulated(**settings), make_request("毒"))
    assert speak(start_simulated(**settings), make_request("毒"))[1].audio_ms == 200


def test_silence_for_too_long_is_a_hang_and_the_process_can_be_killed(
    start_simulated: StartEngine, make_request: MakeRequest
):
    engine = start_simulated(hang_on_text="停")
    request = make_request("停在这里不动。")
    idle_calls: list[float] = []
    events = engine.speak(
        request, no_progress_s=0.6, deadline_s=60, on_idle=lambda: idle_calls.append(time.monotonic())
    )
    with pytest.raises(EngineHung) as caught:
        list(events)
    assert caught.value.kind == "no_progress"
    assert caught.value.after_s < 5
    assert len(idle_calls) >= 4
    assert engine.alive
    assert engine.kill()
    assert not exists(engine.pid or 0)


def test_a_deadline_holds_however_lively_the_engine_is(
    start_simulated: StartEngine, make_request: MakeRequest
):
    engine = start_simulated(real_time=True, ms_per_character=200, chunk_ms=50)
    with pytest.raises(EngineHung) as caught:
        list(engine.speak(make_request("一" * 200), no_progress_s=20, deadline_s=0.8))
    assert caught.value.kind == "deadline"


def test_a_stopped_engine_that_reads_nothing_is_a_hang_too(
    start_simulated: StartEngine, make_request: MakeRequest
):
    """A clip does not fit into a pipe: whoever waits for it to be read must not wait for ever."""
    engine = start_simulated()
    os.kill(engine.pid or 0, signal.SIGSTOP)
    clip = VoiceReference(kind="clone", reference_sha256="ef" * 32)
    request = make_request(voice=clip, reference_wav=bytes(1_440_000))
    with pytest.raises(EngineHung):
        list(engine.speak(request, no_progress_s=0.5, deadline_s=10))
    assert engine.kill()


def test_a_large_clip_reaches_the_engine(start_simulated: StartEngine, make_request: MakeRequest):
    request = make_request(
        voice=VoiceReference(kind="clone", reference_sha256="ef" * 32), reference_wav=os.urandom(1_440_000)
    )
    assert speak(start_simulated(), request)[1].audio_ms == 1200


def test_a_cancel_stops_the_speech_and_the_engine_goes_on(
    start_simulated: StartEngine, make_request: MakeRequest
):
    engine = start_simulated(real_time=True, ms_per_character=100, chunk_ms=200)
    request = make_request("一" * 100)
    chunks: list[Chunk | Done] = []

    def cancel_after_two(event: Chunk | Done) -> None:
        chunks.append(event)
        if len(chunks) == 2:
            threading.Thread(target=engine.cancel, args=(request.request_id,)).start()

    with pytest.raises(EngineCanceled) as caught:
        listen(engine.speak(request, no_progress_s=20, deadline_s=60), cancel_after_two)
    assert caught.value.audio_ms == 200 * len(chunks) < 20_000
    assert caught.value.gpu_ms >= 200
    assert speak(engine, make_request("好"))[1].audio_ms == 200


def test_on_idle_may_cancel(start_simulated: StartEngine, make_request: MakeRequest):
    engine = start_simulated(real_time=True, ms_per_character=500, chunk_ms=200)
    request = make_request("一" * 100)
    with pytest.raises(EngineCanceled):
        list(
            engine.speak(
                request,
                no_progress_s=20,
                deadline_s=60,
                on_idle=lambda: engine.cancel(request.request_id) and None,
            )
        )


def test_a_cancel_for_another_request_changes_nothing(
    start_simulated: StartEngine, make_request: MakeRequest
):
    engine = start_simulated()
    assert engine.cancel("long-gone")
    assert speak(engine, make_request())[1].audio_ms == 1200


def test_a_consumer_that_gives_up_leaves_the_engine_usable(
    start_simulated: StartEngine, make_request: MakeRequest
):
    engine = start_simulated(real_time=True, ms_per_character=100, chunk_ms=200)
    events = engine.speak(make_request("一" * 200), no_progress_s=20, deadline_s=60)
    assert isinstance(next(events), Chunk)
    events.close()  # type: ignore[attr-defined]
    request = make_request("二三")
    pcm, done = speak(engine, request)
    assert done.audio_ms == 400
    assert pcm == tone(period=tone_period(text="二三", voice_key="xiaohe", seed=7), samples=400 * 24)


def test_a_used_up_budget_keeps_what_was_spoken(start_simulated: StartEngine, make_request: MakeRequest):
    engine = start_simulated(ms_per_character=100, audio_ms_per_character=200, chunk_ms=200)
    chunks: list[Chunk | Done] = []
    events = engine.speak(make_request("一" * 20, max_gpu_ms=450), no_progress_s=20, deadline_s=60)
    with pytest.raises(BudgetExhausted) as caught:
        listen(events, chunks.append)
    assert len(chunks) == 5
    assert (caught.value.gpu_ms, caught.value.audio_ms) == (500, 1000)
    assert [chunk.gpu_ms for chunk in chunks] == [100, 200, 300, 400, 500]


def test_a_budget_of_nothing_speaks_nothing(start_simulated: StartEngine, make_request: MakeRequest):
    with pytest.raises(BudgetExhausted) as caught:
        list(start_simulated().speak(make_request(max_gpu_ms=0), no_progress_s=20, deadline_s=60))
    assert (caught.value.gpu_ms, caught.value.audio_ms) == (0, 0)


@pytest.mark.parametrize("blame", ["user", "platform"])
def test_a_refusal_says_whose_fault_it_is_and_the_engine_goes_on(
    start_simulated: StartEngine, make_request: MakeRequest, blame: str
):
    engine = start_simulated(error_on_text="不行", error_blame=blame)
    with pytest.raises(EngineError) as caught:
        speak(engine, make_request("这个不行。"))
    assert (caught.value.code, caught.value.blame) == ("told_to_fail", blame)
    assert speak(engine, make_request("这个行。"))[1].audio_ms == 800


def test_prints_do_not_break_frames(start_simulated: StartEngine, make_request: MakeRequest):
    engine = start_simulated(print_on_text="打印")
    assert speak(engine, make_request("打印一下"))[1].audio_ms == 800
    assert speak(engine, make_request("再来"))[1].audio_ms == 400


def test_a_child_that_does_not_speak_the_protocol_is_killed(tmp_path: Path):
    script = tmp_path / "not_an_engine.py"
    script.write_text("import time; print('Downloading 17 files', flush=True); time.sleep(60)")
    engine = EngineProcess([sys.executable, str(script)], "any", {}, {})
    engine.start()
    with pytest.raises(EngineDied, match="protocol"):
        engine.load(20)
    assert not engine.alive


def test_kill_takes_the_whole_process_group(tmp_path: Path):
    helper = tmp_path / "helper.pid"
    script = tmp_path / "with_a_helper.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import pathlib, subprocess, time
            child = subprocess.Popen(["sleep", "300"])
            pathlib.Path({str(helper)!r}).write_text(str(child.pid))
            time.sleep(300)
            """
        )
    )
    engine = EngineProcess([sys.executable, str(script)], "any", {}, {})
    engine.start()
    wait_for(lambda: helper.exists() and helper.read_text() != "")
    pid = int(helper.read_text())
    assert exists(pid)
    assert engine.kill()
    wait_for(lambda: not exists(pid))


def test_a_leader_that_leaves_children_behind_counts_as_dead(tmp_path: Path):
    """The pipe stays open in the child: only the process itself tells."""
    script = tmp_path / "leaves_a_child.py"
    script.write_text("import subprocess; subprocess.Popen(['sleep', '300'])")
    engine = EngineProcess([sys.executable, str(script)], "any", {}, {})
    engine.start()
    with pytest.raises(EngineDied):
        engine.load(20)


def test_stop_waits_for_an_orderly_end_and_kills_what_does_not(
    start_simulated: StartEngine, make_request: MakeRequest
):
    orderly = start_simulated()
    orderly.stop(5)
    assert orderly.kill()
    hanging = start_simulated(hang_on_text="停")
    events = hanging.speak(make_request("停"), no_progress_s=20, deadline_s=60)
    assert isinstance(next(events), Chunk)
    hanging.stop(0.3)
    assert not exists(hanging.pid or 0)
    with pytest.raises(EngineDied):
        list(events)
