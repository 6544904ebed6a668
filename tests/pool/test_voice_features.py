"""A voice is listened to once, whichever device speaks; and a receipt says which seed spoke.

With the double of CosyVoice in real engine processes, and the test as the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accounts.models import User, Workspace
from tests.engine.fake_home import fake_home, fake_model
from tests.engine.test_process import wait_for
from tests.factories import make_voice
from tests.pool.conftest import Submit, make_device
from tests.pool.test_attempts import claim_next
from tts import storage
from tts.audio.wav import read_wav
from tts.engine.process import EngineProcess
from tts.models import Attempt, Voice
from tts.selectors.jobs import receipt_of
from tts.services.attempts import finish_attempt
from tts.services.voice_features import read_features
from tts.services.voices import delete_voice
from tts.slot_engine import build_engine
from tts.speaking import Speaking, VoiceGone

TEXT = "今天天气很好，我们去公园散步吧。"
StartCosyVoice = Callable[..., EngineProcess]


@pytest.fixture
def start_cosyvoice(tmp_path: Path) -> Iterator[StartCosyVoice]:
    """Starts and loads engine processes: the same weights in different folders, as on different hosts."""
    processes: list[EngineProcess] = []

    def start(behaviour: list[dict[str, Any]] | None = None) -> EngineProcess:
        folder = tmp_path / str(len(processes))
        folder.mkdir()
        settings = {
            "home": str(fake_home(folder / "home")),
            "model_dir": str(fake_model(folder / "model", 3, behaviour)),
        }
        process = EngineProcess(None, "cosyvoice", settings, {})
        processes.append(process)
        process.start()
        process.load(120)
        return process

    yield start
    for process in processes:
        assert process.kill()


@pytest.fixture
def clone(workspace: Workspace, customer: User) -> Voice:
    return make_voice(workspace, customer, transcript="Good morning.")


@pytest.fixture
def speak(submit: Submit, clone: Voice) -> Callable[[EngineProcess], Speaking]:
    def speak_once(process: EngineProcess) -> Speaking:
        # Now: a device that was silent while its engine was loading would be given nothing.
        make_device()
        submit(TEXT, voice_id=clone.pk, seed=11)
        speaking = Speaking(claim_next(), process, wanted=lambda: False, on_sent=lambda: None)
        speaking.speak()
        finish_attempt(work=speaking.work, outcome=speaking.outcome(speaking.gpu_ms))
        return speaking

    return speak_once


def kept(voice: Voice) -> list[str]:
    assert voice.workspace_id is not None
    return storage.voice_features_keys(workspace_id=voice.workspace_id, voice_id=voice.pk)


def audio_of(speaking: Speaking) -> bytes:
    """The samples: the label in the file names its job."""
    return read_wav(storage.read(Attempt.objects.get(pk=speaking.work.attempt.pk).audio_key)).pcm


def test_a_clip_is_listened_to_once_for_all_devices(
    start_cosyvoice: StartCosyVoice, speak: Callable[[EngineProcess], Speaking], clone: Voice
) -> None:
    assert kept(clone) == []
    first = speak(start_cosyvoice())
    (key,) = kept(clone)
    assert key.startswith(f"workspaces/{clone.workspace_id}/voices/{clone.pk}/features/")
    # Another device never sees the clip.
    storage.delete(clone.clip_key)
    second = speak(start_cosyvoice())
    assert kept(clone) == [key]
    assert audio_of(second) == audio_of(first)


def test_features_that_cannot_be_read_are_computed_anew(
    start_cosyvoice: StartCosyVoice, speak: Callable[[EngineProcess], Speaking], clone: Voice
) -> None:
    first = speak(start_cosyvoice())
    (key,) = kept(clone)
    good = storage.read(key)
    storage.delete(key)
    storage.save(key, b"damaged")
    second = speak(start_cosyvoice())
    assert audio_of(second) == audio_of(first)
    assert storage.read(key) == good


def test_another_clip_or_version_has_features_of_its_own(
    start_cosyvoice: StartCosyVoice, speak: Callable[[EngineProcess], Speaking], clone: Voice
) -> None:
    process = start_cosyvoice()
    speak(process)
    assert process.loaded is not None
    assert read_features(voice=clone, engine=process.loaded)
    other = type(process.loaded)(**{**vars(process.loaded), "engine_version": "3-other"})
    assert read_features(voice=clone, engine=other) == b""
    clone.clip_sha256 = "0" * 64
    assert read_features(voice=clone, engine=process.loaded) == b""


def test_a_deleted_voice_leaves_nothing(
    start_cosyvoice: StartCosyVoice,
    speak: Callable[[EngineProcess], Speaking],
    clone: Voice,
    workspace: Workspace,
    customer: User,
    submit: Submit,
) -> None:
    process = start_cosyvoice()
    speak(process)
    assert len(kept(clone)) == 1
    delete_voice(workspace=workspace, user=customer, voice_id=clone.pk)
    assert kept(clone) == []
    assert not storage.exists(clone.clip_key)


def test_a_voice_that_is_deleted_while_it_speaks_leaves_nothing_either(
    start_cosyvoice: StartCosyVoice, clone: Voice, workspace: Workspace, customer: User, submit: Submit
) -> None:
    process = start_cosyvoice()
    make_device()
    submit(TEXT, voice_id=clone.pk)
    work = claim_next()
    speaking = Speaking(
        work,
        process,
        wanted=lambda: False,
        on_sent=lambda: delete_voice(workspace=workspace, user=customer, voice_id=clone.pk),
    )
    speaking.speak()
    assert kept(clone) == []
    clone.refresh_from_db()
    work.job.voice = work.voice
    work.voice.state = clone.state
    with pytest.raises(VoiceGone):
        Speaking(work, process, wanted=lambda: False, on_sent=lambda: None).speak()


def test_the_receipt_says_which_seed_spoke_and_what_was_not_charged(
    start_cosyvoice: StartCosyVoice, speak: Callable[[EngineProcess], Speaking]
) -> None:
    process = start_cosyvoice([{"do": "never_stop", "times": 1}])
    again = speak(process)
    receipt = receipt_of(again.work.job)
    (line,) = receipt.lines
    assert (line.seed, receipt.seed, receipt.other_seeds) == (12, 11, [12])
    assert receipt.discarded_gpu_ms == line.discarded_gpu_ms
    assert line.discarded_gpu_ms > 0
    at_once = speak(process)
    receipt = receipt_of(at_once.work.job)
    (line,) = receipt.lines
    assert receipt.other_seeds == []
    assert (line.seed, line.discarded_gpu_ms) == (11, 0)


def test_an_instruction_reaches_the_engine_word_for_word(
    start_cosyvoice: StartCosyVoice, speak: Callable[[EngineProcess], Speaking], clone: Voice, submit: Submit
) -> None:
    process = start_cosyvoice()
    plain = speak(process)
    make_device()
    told = submit(TEXT, voice_id=clone.pk, seed=11)
    type(told).objects.filter(pk=told.pk).update(mode="instruct", instruction="dialect-sichuan")
    speaking = Speaking(claim_next(), process, wanted=lambda: False, on_sent=lambda: None)
    request = speaking._request(0, TEXT)
    assert request.instruction == "请用四川话表达。"
    speaking.work.job.instruction_text = "像在讲故事"
    assert speaking._request(0, TEXT).instruction == "像在讲故事"
    speaking.work.job.instruction_text = ""
    speaking.speak()
    assert bytes(speaking._pcm) != bytes(plain._pcm)


def test_an_engine_may_have_an_interpreter_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES $COSYVOICE_HOME $SECRET_KEY $*" > {said}; exec sleep 60\n'
    )
    python.chmod(0o755)
    monkeypatch.setenv("COSYVOICE_PYTHON", str(python))
    monkeypatch.setenv("COSYVOICE_HOME", "/opt/cosyvoice")
    monkeypatch.setenv("SECRET_KEY", "not for engines")
    process = build_engine(engine="cosyvoice", visible_device="GPU-1")
    process.start()
    wait_for(said.exists)
    wait_for(lambda: said.read_text() != "")
    assert said.read_text() == "GPU-1 /opt/cosyvoice  -m tts.engine.host cosyvoice\n"
    assert process.kill()
    assert build_engine(engine="kokoro", visible_device="")._command[0] != str(python)


def test_gpus_have_settings_of_their_own_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICEPOOL_CPU_ENGINE_SETTINGS", '{"threads": 3}')
    assert build_engine(engine="kokoro", visible_device="GPU-1")._settings == {"threads": 3}
    monkeypatch.setenv("VOICEPOOL_GPU_ENGINE_SETTINGS", '{"fp16": true}')
    assert build_engine(engine="cosyvoice", visible_device="GPU-1")._settings == {"fp16": True}
    assert build_engine(engine="kokoro", visible_device="")._settings == {"threads": 3}
