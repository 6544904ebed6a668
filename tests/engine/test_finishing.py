"""Speed at the same pitch, silent ends and annotations, for engines that leave them to the pool."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.conftest import MakeRequest
from tests.engine.fake_speech_server import FakeSpeechServer, tone
from tests.engine.sounds import voice_like
from tests.engine.test_remote import StartRemote, server, speak, start_remote
from tts.engine.base import Engine, LoadedEngine, SpeakControl
from tts.engine.capabilities import Capabilities
from tts.engine.delivery import delivered
from tts.engine.errors import EngineError
from tts.engine.finishing import EDGE, Finish, silence_of
from tts.engine.pitch import pitch_statistics
from tts.engine.protocol import SpeakRequest

__all__ = ["server", "start_remote"]

RATE_HZ = 24_000


def voice(seconds: float = 3.0) -> bytes:
    sound = np.asarray(voice_like(pitch_hz=180.0, seconds=seconds))
    return bytes(np.round(np.clip(sound, -1, 1) * 20_000).astype("<i2").tobytes())


def samples_of(pcm: bytes) -> NDArray[np.float64]:
    return np.frombuffer(pcm, "<i2") / 32_768


def finished(pcm: bytes, *, speed: float = 1.0, trim: bool = True, piece: int = 4801) -> bytes:
    finish = Finish(speed=speed, trim=trim)
    return b"".join(finish.push(pcm[at : at + piece]) for at in range(0, len(pcm), piece)) + finish.finish()


@pytest.mark.parametrize("speed", [0.5, 0.8, 1.25, 2.0])
def test_another_speed_changes_the_length_and_keeps_the_pitch(speed: float):
    before, after = voice(), finished(voice(), speed=speed)
    assert len(after) / len(before) == pytest.approx(1 / speed, rel=0.01)
    pitch, changed = pitch_statistics(samples_of(before)), pitch_statistics(samples_of(after))
    assert pitch is not None
    assert changed is not None
    assert changed.median_hz == pytest.approx(pitch.median_hz, rel=0.01)


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
def test_however_a_sound_comes_the_same_leaves(speed: float):
    sound = silence_of(300) + voice(1.0) + silence_of(300)
    whole = finished(sound, speed=speed, piece=len(sound))
    assert whole == finished(sound, speed=speed, piece=333)
    assert whole == finished(sound, speed=speed, piece=24_000)


def test_silent_ends_are_cut_to_a_short_edge_and_silence_inside_stays():
    word = tone(200)
    trimmed = finished(silence_of(700) + word + silence_of(900) + word + silence_of(1_300))
    assert trimmed == bytes(2 * EDGE) + word + silence_of(900) + word + bytes(2 * EDGE)
    assert finished(silence_of(20) + word + silence_of(20)) == silence_of(20) + word + silence_of(20)


def test_noise_too_faint_to_hear_is_taken_off_without_a_step_at_the_edge():
    random = np.random.default_rng(3)
    hiss = bytes(np.round(random.normal(0, 40, RATE_HZ)).astype("<i2").tobytes())
    trimmed = np.frombuffer(finished(hiss + tone(200) + hiss), "<i2")
    assert len(trimmed) == 2 * EDGE + len(tone(200)) // 2
    assert trimmed[0] == trimmed[-1] == 0
    assert np.abs(trimmed[:EDGE]).max() > 0


def test_of_nothing_but_silence_nothing_is_left():
    assert finished(silence_of(2_000)) == b""
    assert finished(b"", speed=2.0) == b""


def test_sound_flows_while_it_is_made():
    finish = Finish(speed=0.5)
    sound = voice()
    out = 0
    for at in range(0, len(sound), 9_600):
        out += len(finish.push(sound[at : at + 9_600]))
        # All but a tenth of a second of what came, at half the speed.
        assert out >= 2 * (at + 9_600) - 2 * 4_800 * 2


class PlainEngine(Engine):
    """Says a tone for each character, with silence around it, at normal speed; knows no annotations."""

    def __init__(self) -> None:
        self.asked: list[SpeakRequest] = []

    def load(self, settings: dict[str, Any]) -> LoadedEngine:
        raise NotImplementedError

    def warm_up(self) -> None:
        raise NotImplementedError

    def speak(self, request: SpeakRequest, control: SpeakControl) -> Iterator[bytes]:
        self.asked.append(request)
        yield silence_of(500)
        yield tone(100 * len(request.text))
        yield silence_of(500)


def deliver(engine: Engine, request: SpeakRequest, **can: Any) -> bytes:
    control = SpeakControl(max_gpu_ms=10**6, canceled=threading.Event(), report_progress=lambda: None)
    return b"".join(delivered(engine, request, control, Capabilities(languages=("zh",), **can)))


def test_an_engine_that_knows_no_annotations_is_given_plain_text_from_pause_to_pause(
    make_request: MakeRequest,
):
    engine = PlainEngine()
    pcm = deliver(engine, make_request("你好[laughter][pause 1s]朋友们", speed=2.0), obeys_speed=True)
    assert [asked.text for asked in engine.asked] == ["你好", "朋友们"]
    edge = bytes(2 * EDGE)
    # The rest is as long as it is asked for, at this speed.
    assert pcm == edge + tone(200) + edge + silence_of(500) + edge + tone(300) + edge


def test_an_engine_that_ignores_the_speed_is_asked_for_none(make_request: MakeRequest):
    engine = PlainEngine()
    pcm = deliver(engine, make_request("一二三四五六七八九十", speed=2.0), obeys_speed=False)
    assert engine.asked[0].speed == 1.0
    # With an edge on either side, and what the windows at the ends add.
    assert len(pcm) / 48 == pytest.approx(500 + 50, abs=40)


def test_an_engine_that_trims_by_itself_is_not_trimmed_again(make_request: MakeRequest):
    engine = PlainEngine()
    assert deliver(engine, make_request("你好"), trims_edges=True) == silence_of(500) + tone(
        200
    ) + silence_of(500)


def test_what_holds_nothing_to_say_never_reaches_such_an_engine(make_request: MakeRequest):
    engine = PlainEngine()
    with pytest.raises(EngineError) as refused:
        deliver(engine, make_request("[pause 1s]。"))
    assert (refused.value.code, refused.value.blame) == ("text_unspeakable", "user")
    assert engine.asked == []


def test_a_speech_server_that_ignores_the_speed_is_heard_at_the_speed_asked_for(
    server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest
):
    server.silence_ms = 800
    engine = start_remote(speed=False)
    pcm, done = speak(engine, make_request("Good morning, all.", speed=2.0))
    assert "speed" not in server.requests[0]
    assert done.audio_ms == pytest.approx(900 + 50, abs=40)
    sound = samples_of(pcm)
    crossings = np.count_nonzero(np.diff(np.signbit(sound[2_400:-2_400])))
    assert crossings / 2 / (len(sound) - 4_800) * RATE_HZ == pytest.approx(440, rel=0.01)


def test_a_speech_server_never_reads_an_annotation_aloud(
    server: FakeSpeechServer, start_remote: StartRemote, make_request: MakeRequest
):
    engine = start_remote()
    speak(engine, make_request("他很[hào]学。[breath]"))
    # 耗 is read so and in no other way.
    assert server.requests[0]["input"] == "他很耗学。"
