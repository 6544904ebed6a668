"""What goes wrong in CosyVoice, one after the other, and that none of it reaches a customer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.conftest import LoadCosyVoice, LoadedCosyVoice, MakeRequest
from tests.engine.fake_home import clip, fake_home, fake_model
from tts.engine.base import BudgetUsedUp, Canceled, SpeakControl
from tts.engine.cosyvoice_calls import CallLimits, ModelCalls
from tts.engine.errors import EngineError
from tts.engine.host import is_out_of_memory
from tts.engine.protocol import SpeakRequest, VoiceReference

TEXT = "今天天气很好，我们去公园散步吧。"
CLIP = clip()
DICTIONARIES = ("tts_speech_token_dict", "llm_end_dict", "hift_cache_dict")
Ask = Callable[..., SpeakRequest]


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    return {"home": str(fake_home(tmp_path / "home")), "model_dir": str(fake_model(tmp_path / "model", 3))}


@pytest.fixture
def engine(load_cosyvoice: LoadCosyVoice, folders: dict[str, str]) -> Iterator[LoadedCosyVoice]:
    loaded = load_cosyvoice(**folders)
    yield loaded
    nothing_left(loaded)


@pytest.fixture
def ask(make_request: MakeRequest) -> Ask:
    """A request for a cloned voice with a transcript."""
    voice = VoiceReference(kind="clone", transcript="希望你好。", language="zh", tenant="one")
    return lambda text=TEXT, **changes: make_request(
        text, **{"voice": voice, "reference_wav": CLIP, **changes}
    )


def control(**changes: Any) -> SpeakControl:
    given = {"max_gpu_ms": 10**9, "canceled": threading.Event(), "report_progress": lambda: None}
    return SpeakControl(**{**given, **changes})


def speak(engine: LoadedCosyVoice, request: SpeakRequest, used: SpeakControl | None = None) -> bytes:
    return b"".join(engine.speak(request, used or control()))


def nothing_left(engine: LoadedCosyVoice) -> None:
    """No thread of the model's runs, and none of its dictionaries holds anything."""
    for thread in threading.enumerate():
        if "llm_job" in thread.name:
            thread.join(20)
            assert not thread.is_alive()
    assert [getattr(engine.model, name) for name in DICTIONARIES] == [{}, {}, {}]


def plan(engine: LoadedCosyVoice, **entry: Any) -> None:
    engine.model.behaviour.planned[:] = [entry]


def test_speech_comes_as_long_as_its_text_and_silent_at_its_ends(engine: LoadedCosyVoice, ask: Ask) -> None:
    used = control()
    samples = np.frombuffer(speak(engine, ask(seed=5), used), "<i2")
    assert 3 * 24_000 < len(samples) < 5 * 24_000
    assert np.abs(samples).max() > 3000
    assert (samples[0], samples[-1]) == (0, 0)
    assert used.seed_used == 5
    assert used.clock.written_off_ms == 0


def test_one_seed_is_one_sound(engine: LoadedCosyVoice, ask: Ask) -> None:
    first = speak(engine, ask(seed=5))
    assert speak(engine, ask(seed=5)) == first
    assert speak(engine, ask(seed=6)) != first
    assert speak(engine, ask("明天天气很好，我们去公园散步吧。", seed=5)) != first


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"do": "nan"}, "speech_not_finite"),
        ({"do": "silent"}, "speech_silent"),
        ({"do": "stop_early", "after": 2}, "speech_too_short"),
        ({"do": "never_stop"}, "speech_too_long"),
        ({"do": "no_tokens"}, "speech_no_tokens"),
    ],
)
def test_what_is_no_speech_is_spoken_again_with_another_seed_twice(
    engine: LoadedCosyVoice, ask: Ask, entry: dict[str, Any], code: str
) -> None:
    right = speak(engine, ask(seed=7))
    plan(engine, **entry, times=2)
    used = control()
    assert speak(engine, ask(seed=5), used) == right
    assert used.seed_used == 7
    assert engine.stats()["spoken_again"] == 2
    plan(engine, **entry)
    with pytest.raises(EngineError) as refused:
        speak(engine, ask(seed=5))
    assert (refused.value.code, refused.value.blame) == (code, "platform")
    nothing_left(engine)


def test_what_was_not_delivered_costs_nothing(engine: LoadedCosyVoice, ask: Ask) -> None:
    plan(engine, do="slow", seconds=0.002)
    slow = control()
    slow.clock.resume()
    speak(engine, ask(), slow)
    slow.clock.pause()
    engine.model.behaviour.planned[:] = [
        {"do": "slow", "seconds": 0.002, "times": 1},
        {"do": "never_stop", "times": 1},
    ]
    twice = control()
    twice.clock.resume()
    # Its first piece goes well, its second only at the second try.
    speak(engine, ask(TEXT * 4), twice)
    twice.clock.pause()
    assert slow.clock.written_off_ms == 0
    assert twice.clock.written_off_ms > 0
    assert twice.clock.elapsed_ms() >= 0


def test_a_later_piece_that_went_wrong_has_a_seed_of_its_own(engine: LoadedCosyVoice, ask: Ask) -> None:
    right = speak(engine, ask(TEXT * 4, seed=5))
    engine.model.behaviour.planned[:] = [{"do": "", "times": 1}, {"do": "nan", "times": 1}]
    used = control()
    first, *_ = parts = list(engine.speak(ask(TEXT * 4, seed=5), used))
    assert len(parts) == 2
    assert right.startswith(first)
    assert b"".join(parts) != right
    assert used.seed_used == 6


def test_an_error_in_the_models_thread_is_an_error_and_no_shorter_speech(
    engine: LoadedCosyVoice, ask: Ask
) -> None:
    # Left alone, the double returns the audio until then as if it were all.
    plan(engine, do="llm_error", after=60)
    with pytest.raises(RuntimeError, match="told to break"):
        speak(engine, ask())
    nothing_left(engine)
    plan(engine, do="llm_error", after=0)
    with pytest.raises(RuntimeError, match="told to break"):
        speak(engine, ask())


def test_an_error_in_the_second_half_of_the_model_leaves_nothing_behind(
    engine: LoadedCosyVoice, ask: Ask
) -> None:
    plan(engine, do="flow_error")
    with pytest.raises(RuntimeError, match="told to break"):
        speak(engine, ask())
    nothing_left(engine)


def test_memory_that_runs_out_in_the_models_thread_is_seen_as_such(engine: LoadedCosyVoice, ask: Ask) -> None:
    plan(engine, do="llm_error", after=3, memory=True, times=1)
    with pytest.raises(RuntimeError) as raised:
        speak(engine, ask())
    assert is_out_of_memory(raised.value)
    del raised
    engine.free_memory()
    assert engine.stats()["cached_voices"] == 0
    # The second try takes smaller pieces.
    text = "这是一个没有标点的句子它一直说下去" * 6 + "。"
    assert len(list(engine.speak(ask(text), control(save_memory=True)))) > len(
        list(engine.speak(ask(text), control()))
    )


def test_a_cancel_is_obeyed_within_one_token(engine: LoadedCosyVoice, ask: Ask) -> None:
    used = control()
    drawn: list[int] = []
    tokens = engine.model.llm.inference

    def counted(**named: Any) -> Iterator[int]:
        for token in tokens(**named):
            drawn.append(token)
            if len(drawn) == 10:
                used.canceled.set()
            yield token

    engine.model.llm.inference = counted
    with pytest.raises(Canceled):
        speak(engine, ask(), used)
    nothing_left(engine)
    assert len(drawn) == 10


def test_a_budget_that_is_used_up_ends_the_call(engine: LoadedCosyVoice, ask: Ask) -> None:
    plan(engine, do="slow", seconds=0.02)
    used = control(max_gpu_ms=60)
    used.clock.resume()
    with pytest.raises(BudgetUsedUp):
        speak(engine, ask(), used)
    nothing_left(engine)


def test_a_speech_that_nobody_hears_any_more_is_given_up(engine: LoadedCosyVoice, ask: Ask) -> None:
    parts = engine.speak(ask(TEXT * 6), control())
    assert next(parts)
    parts.close()  # type: ignore[attr-defined]
    nothing_left(engine)


def test_a_call_that_takes_too_long_is_given_up_at_its_deadline(
    load_cosyvoice: LoadCosyVoice, folders: dict[str, str], ask: Ask
) -> None:
    engine = load_cosyvoice(**folders, call_deadline_s=0.3)
    plan(engine, do="slow", seconds=0.05)
    with pytest.raises(EngineError) as refused:
        speak(engine, ask())
    assert refused.value.code == "speech_deadline"
    # Not spoken again: another seed takes as long.
    assert engine.stats()["spoken_again"] == 1
    nothing_left(engine)


def test_a_stream_whose_thread_breaks_ends_with_the_error(
    load_cosyvoice: LoadCosyVoice, folders: dict[str, str], ask: Ask
) -> None:
    # Left alone, the double (as the real one) waits forever for the end.
    engine = load_cosyvoice(**folders, stream_tokens=True)
    plan(engine, do="llm_error", after=5)
    with pytest.raises(RuntimeError, match="told to break"):
        speak(engine, ask())
    plan(engine, do="llm_error", after=80)
    with pytest.raises(RuntimeError, match="told to break"):
        speak(engine, ask())
    nothing_left(engine)


def test_a_stream_says_what_a_whole_call_says_and_soon(
    load_cosyvoice: LoadCosyVoice, folders: dict[str, str], ask: Ask
) -> None:
    engine = load_cosyvoice(**folders, stream_tokens=True)
    text = "今天天气很好我们一起去城里的公园散步吧。"
    parts = list(engine.speak(ask(text, seed=5), control()))
    assert len(parts) > 2
    hop = engine.model.token_hop_len
    assert hop > 25
    # Each stream lengthens the model's first chunk for the next one, unless it is put back.
    assert list(engine.speak(ask(text, seed=5), control())) == parts
    # Another speed is not heard by a model that streams.
    assert len(list(engine.speak(ask(text, seed=5, speed=1.5), control()))) == 1
    samples = np.frombuffer(b"".join(parts), "<i2").astype(int)
    assert (samples[0], samples[-1]) == (0, 0)
    # And nothing clicks where one part goes over into the next.
    joints = np.cumsum([len(part) // 2 for part in parts])[:-1]
    steps = np.abs(np.diff(samples))
    assert steps[joints - 1].max() <= np.delete(steps, joints - 1).max()


def test_a_stream_that_goes_wrong_after_it_was_heard_fails(
    load_cosyvoice: LoadCosyVoice, folders: dict[str, str], ask: Ask
) -> None:
    engine = load_cosyvoice(**folders, stream_tokens=True)
    plan(engine, do="nan", times=2)
    used = control()
    assert speak(engine, ask(seed=5), used)
    assert used.seed_used == 7
    plan(engine, do="never_stop")
    heard = []
    with pytest.raises(EngineError, match="speech_too_long"):
        heard.extend(engine.speak(ask(), control()))
    nothing_left(engine)


def test_the_end_of_prompt_mark_cannot_be_spoken_and_no_text_reaches_a_log(
    engine: LoadedCosyVoice, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert speak(engine, ask("八百标兵<|endofprompt|>奔北坡。" + TEXT * 10))
    assert "标兵" not in caplog.text
    assert "天气" not in caplog.text


def test_a_wedged_call_ends_the_process_that_holds_it(engine: LoadedCosyVoice) -> None:
    """With the ending of the process replaced: `test_cosyvoice_contract` sees a real one end."""
    model = engine.model
    release, ended = threading.Event(), threading.Event()
    model.llm_job = lambda *arguments: release.wait(30)
    calls = ModelCalls(model, on_wedged=lambda: (release.set(), ended.set()))  # type: ignore[func-returns-value]
    limits = CallLimits(check=lambda: None, max_tokens=100, deadline_s=0.1, wedged_s=0.1)
    text, count = engine._parts().package.frontend._extract_text_token("好")
    with pytest.raises(Exception, match=r"deadline|no_tokens"):
        list(calls.run({"text": text, "text_len": count}, stream=False, speed=1.0, limits=limits))
    assert ended.is_set()
