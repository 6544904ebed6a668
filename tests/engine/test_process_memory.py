"""What an engine process does when memory runs out, when the device is lost, and what it says of its memory."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.engine.conftest import MakeRequest, StartEngine
from tests.engine.test_process import exists, speak
from tts.engine.errors import OUT_OF_MEMORY
from tts.engine.process import Chunk, EngineDied, EngineError, EngineHung
from tts.engine.simulated import tone, tone_period


def test_a_request_without_memory_is_tried_again_in_the_process_and_costs_one_try(
    start_simulated: StartEngine, make_request: MakeRequest, tmp_path: Path
):
    engine = start_simulated(oom_on_text="大", once_folder=str(tmp_path), ms_per_character=30)
    request = make_request("很大的一句。")
    pcm, done = speak(engine, request)
    assert done.ran_out_of_memory
    assert done.gpu_ms == 6 * 30
    assert pcm == tone(period=tone_period(text=request.text, voice_key="xiaohe", seed=7), samples=1200 * 24)
    assert not speak(engine, make_request("小"))[1].ran_out_of_memory


def test_a_request_without_memory_twice_fails_as_the_platforms_fault_and_the_engine_goes_on(
    start_simulated: StartEngine, make_request: MakeRequest
):
    engine = start_simulated(oom_on_text="大")
    with pytest.raises(EngineError) as caught:
        speak(engine, make_request("很大的一句。"))
    assert (caught.value.code, caught.value.blame) == (OUT_OF_MEMORY, "platform")
    assert "大" not in caught.value.message
    assert speak(engine, make_request("小"))[1].audio_ms == 200


def test_a_lost_device_context_ends_the_process(start_simulated: StartEngine, make_request: MakeRequest):
    engine = start_simulated(device_lost_on_text="丢")
    with pytest.raises(EngineDied) as caught:
        speak(engine, make_request("丢了。"))
    assert caught.value.exit_code == 4


def test_an_engine_says_how_much_memory_it_holds(start_simulated: StartEngine, make_request: MakeRequest):
    engine = start_simulated(leak_bytes_per_request=30_000_000)
    before = engine.stats()
    assert before["device_memory_bytes"] is None
    for _ in range(3):
        speak(engine, make_request())
    assert engine.stats()["memory_bytes"] > before["memory_bytes"] + 80_000_000


def test_a_devices_own_memory_is_told_apart(start_simulated: StartEngine, make_request: MakeRequest):
    engine = start_simulated(device_memory_bytes=3_000_000_000, leak_device_bytes_per_request=500)
    speak(engine, make_request())
    assert engine.stats()["device_memory_bytes"] == 3_000_000_500


def test_the_two_simulated_engines_differ_in_name_and_version_alone(make_request: MakeRequest):
    from tts.engine.process import EngineProcess

    spoken = []
    for name, version in (("simulated", "1"), ("simulated-b", "2")):
        engine = EngineProcess(None, name, {}, {})
        engine.start()
        try:
            loaded = engine.load(20)
            assert (loaded.engine, loaded.engine_version) == (name, version)
            spoken.append(speak(engine, make_request())[0])
        finally:
            engine.kill()
    assert spoken[0] == spoken[1]


def test_an_engine_that_is_slow_to_end_is_killed_after_the_grace(start_simulated: StartEngine):
    patient, impatient = start_simulated(close_ms=300), start_simulated(close_ms=60_000)
    patient.stop(20)
    assert patient.kill()
    impatient.stop(0.3)
    assert not exists(impatient.pid or 0)


def test_giving_up_a_request_tells_an_engine_that_is_slow_from_one_that_is_stuck(
    start_simulated: StartEngine, make_request: MakeRequest
):
    slow = start_simulated(real_time=True, ms_per_character=200, chunk_ms=200)
    request = make_request("一" * 100)
    with pytest.raises(EngineHung):
        list(slow.speak(request, no_progress_s=20, deadline_s=0.5))
    assert slow.give_up(request.request_id, 10)
    stuck = start_simulated(hang_on_text="停")
    request = make_request("停")
    events = stuck.speak(request, no_progress_s=0.3, deadline_s=20)
    assert isinstance(next(events), Chunk)
    with pytest.raises(EngineHung):
        list(events)
    assert not stuck.give_up(request.request_id, 0.3)
    os.kill(stuck.pid or 0, signal.SIGKILL)
    assert not stuck.give_up(request.request_id, 0.3)
