"""deploy/gpu_check without a GPU, and against the fake NVML with an engine that only says that it computes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from tests.pool.fake_gpus import GIB, FakeGpus
from tests.pool.processes import wait_for

ROOT = Path(__file__).resolve().parent.parent.parent
MIB = 1024**2
UUID = "GPU-aaaa"
QUICK = ("--seconds=0.3", "--every=0.1", "--recycles=2", "--megabytes=100")
# In place of the interpreter with torch: says what gpu_check's own program says once the GPU's memory is taken.
ENGINE = """#!{python} -I
import json, os, pathlib, sys, time
folder = pathlib.Path({folder!r})
(folder / "pid").write_text(str(os.getpid()))
while (folder / "pid").exists():
    time.sleep(0.01)  # until the fake NVML has taken it in
print(json.dumps({{"visible_devices": len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")),
                   "allocated_bytes": int(sys.argv[2])}}), flush=True)
time.sleep(60)  # at work until it is killed
"""


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "deploy" / "gpu_check"), *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def gpus(tmp_path: Path) -> FakeGpus:
    return FakeGpus(tmp_path / "gpus.json", uuids=[UUID, "GPU-other"])


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    file = tmp_path / "engine"
    file.write_text(ENGINE.format(python=sys.executable, folder=str(tmp_path)), encoding="utf-8")
    file.chmod(0o700)
    return file


def play_the_card(gpus: FakeGpus, folder: Path, *, engines: int, left_over: int) -> threading.Thread:
    """Take the card's memory when an engine starts and give it back, but for `left_over`, when it is gone."""

    def play() -> None:
        pid_file = folder / "pid"
        for _ in range(engines):
            pid = int(wait_for(lambda: pid_file.exists() and pid_file.read_text(), what="an engine") or 0)
            gpus.change(UUID, memory_used=1 * GIB + 300 * MIB, utilisation=100)
            pid_file.unlink()
            wait_for(lambda pid=pid: not psutil.pid_exists(pid), what="its end")  # type: ignore[misc]
            gpus.change(UUID, memory_used=1 * GIB + left_over)

    thread = threading.Thread(target=play)
    thread.start()
    return thread


def test_without_a_driver_it_says_so(gpus: FakeGpus) -> None:
    gpus.change_driver(driver_error=12)
    check = start(**gpus.environment)
    out, err = check.communicate(timeout=60)
    assert check.returncode == 2
    assert out == ""
    assert "there is no NVIDIA driver here that answers" in err
    assert "Traceback" not in err


def test_a_gpu_that_is_not_there_is_named(gpus: FakeGpus) -> None:
    check = start("--device=GPU-missing", **gpus.environment)
    _, err = check.communicate(timeout=60)
    assert check.returncode == 2
    assert "shows no GPU GPU-missing" in err


def test_it_prints_what_it_saw_as_one_line_of_json(gpus: FakeGpus, engine: Path, tmp_path: Path) -> None:
    gpus.change(UUID, power_mw=None)
    check = start(f"--device={UUID}", f"--python={engine}", *QUICK, **gpus.environment)
    card = play_the_card(gpus, tmp_path, engines=2, left_over=3 * MIB)
    out, err = check.communicate(timeout=60)
    card.join()
    assert check.returncode == 0, err
    told = json.loads(out.splitlines()[-1])
    assert (told["check"], told["passed"], told["problems"]) == ("gpu", True, [])
    assert told["driver"] == "580.65.06"
    [gpu] = told["gpus"]
    assert (gpu["uuid"], gpu["memory_total_bytes"], gpu["baseline_bytes"]) == (UUID, 24 * GIB, 1 * GIB)
    assert gpu["fault_events"] is True
    assert gpu["telemetry"]["samples"] >= 2
    assert gpu["telemetry"]["untold"] == ["power_mw"]
    assert gpu["telemetry"]["temperature_c_max"] == 40
    for recycle in gpu["recycles"]:
        assert (recycle["allocated_bytes"], recycle["used_bytes"]) == (100 * MIB, 300 * MIB)
        assert recycle["utilisation_percent"] == 100
        assert recycle["left_over_bytes"] == 3 * MIB
    assert len(gpu["recycles"]) == 2


def test_a_torch_without_cuda_is_a_problem_in_clear_words(gpus: FakeGpus) -> None:
    """The tests' own torch sees no card."""
    check = start(f"--device={UUID}", *QUICK, **gpus.environment)
    out, err = check.communicate(timeout=120)
    assert check.returncode == 1
    told = json.loads(out.splitlines()[-1])
    assert told["passed"] is False
    assert told["problems"] == [f"{UUID}: the engine did not start (status 1); its own words stand above"]
    assert "sees no CUDA device" in err
