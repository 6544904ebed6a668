"""Joining the model's parts: whole or not at all, also with two processes at once."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import wave
from pathlib import Path

import pytest

from tests.e2e.listening import listen
from tts.engine import weights
from tts.engine.demonstration_clip import TRANSCRIPT
from tts.engine.errors import EngineError
from tts.engine.process import PROJECT_FOLDER
from tts.engine.weights import WHOLE_BYTES, expected_sha256, joined_weights


def test_two_processes_at_once_join_one_whole_file(tmp_path: Path):
    folder = tmp_path / "a cache"
    script = f"from pathlib import Path; from tts.engine.weights import *; print(joined_weights(Path({str(folder)!r})))"
    joiners = [
        subprocess.Popen(
            [sys.executable, "-c", script], cwd=PROJECT_FOLDER, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    paths = {joiner.communicate(timeout=120)[0].strip() for joiner in joiners}
    assert [joiner.returncode for joiner in joiners] == [0, 0]
    (path,) = paths
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == expected_sha256()
    assert {file.name for file in folder.iterdir()} == {Path(path).name, "join.lock"}


def test_a_file_that_was_cut_short_is_joined_again(tmp_path: Path):
    path = joined_weights(tmp_path)
    with path.open("r+b") as file:
        file.truncate(1000)
    assert joined_weights(tmp_path).stat().st_size == WHOLE_BYTES


def test_a_damaged_part_is_noticed_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(weights, "PARTS", (*weights.PARTS[:3], weights.PARTS[0]))
    with pytest.raises(EngineError) as caught:
        joined_weights(tmp_path)
    assert caught.value.code == "model_damaged"
    assert {file.name for file in tmp_path.iterdir()} == {"join.lock"}


def test_a_missing_part_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(weights, "PARTS", ("no_such_package",))
    with pytest.raises(EngineError) as caught:
        joined_weights(tmp_path)
    assert caught.value.code == "model_missing"
    assert {file.name for file in tmp_path.iterdir()} == {"join.lock"}


@pytest.mark.slow
def test_the_demonstration_clip_is_speech_that_the_intake_takes(tmp_path: Path):
    clip = tmp_path / "clip.wav"
    made = subprocess.run(
        [sys.executable, "-m", "tts.engine.demonstration_clip", str(clip), str(tmp_path)],
        cwd=PROJECT_FOLDER,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert made.stdout.strip() == TRANSCRIPT
    with wave.open(str(clip)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 24_000)
    heard = listen(clip.read_bytes())
    assert 6.0 <= heard.seconds <= 8.0
    assert heard.speech_share > 0.6
    assert heard.loudest < 0.95
