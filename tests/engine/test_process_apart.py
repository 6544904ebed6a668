"""An engine process and the one that started it: neither outlives, burdens or misjudges the other."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tests.engine.test_process import exists, wait_for
from tts.engine.process import PROJECT_FOLDER
from tts.engine.processor_watch import ProcessorWatch


@pytest.mark.parametrize("text", ["平静。", "停在这里。"], ids=["idle", "hanging"])
def test_an_engine_dies_with_its_parent(tmp_path: Path, text: str):
    script = textwrap.dedent(
        f"""
        import sys, time
        from tts.engine.process import EngineProcess, SpeakRequest, VoiceReference
        engine = EngineProcess(None, "simulated", {{"hang_on_text": "停"}}, {{}})
        engine.start()
        engine.load(20)
        voice = VoiceReference(kind="preset", preset_key="xiaohe")
        request = SpeakRequest(request_id="a", text={text!r}, language="", voice=voice, seed=1, speed=1.0,
                               max_gpu_ms=10**6)
        next(iter(engine.speak(request, no_progress_s=60, deadline_s=60)))
        print(engine.pid, flush=True)
        time.sleep(300)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=PROJECT_FOLDER, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert exists(pid)
        parent.kill()
        parent.wait(10)
    wait_for(lambda: not exists(pid))


def test_nothing_of_django_or_the_models_is_loaded_by_the_workers_side():
    script = (
        "import sys, tts.engine.process, tts.engine.catalogue;"
        "print(sorted({'django', 'torch', 'onnxruntime', 'numpy', 'parselmouth'} & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT_FOLDER, capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == "[]"


def test_a_long_call_that_uses_the_processor_is_no_hang_and_one_that_does_not_is() -> None:
    reports: list[float] = []
    with ProcessorWatch(lambda: reports.append(time.process_time())):
        deadline = time.monotonic() + 30
        while not reports and time.monotonic() < deadline:
            sum(range(10_000))
    assert reports
    reports.clear()
    with ProcessorWatch(lambda: reports.append(time.process_time())):
        # Longer than two looks: nothing is reported of a process that only waits.
        threading.Event().wait(2.5)
    assert not reports


def test_the_gpus_engine_is_imported_without_the_libraries_of_any_other():
    """Its own interpreter has torch and numpy, and none of what the built-in engine needs."""
    script = (
        "import sys, tts.engine.host, tts.engine.cosyvoice;"
        "print(sorted({'django', 'torch', 'onnxruntime', 'parselmouth', 'misaki'} & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT_FOLDER, capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == "[]"
