"""The optimised graph of the model: kept, the same to the ear and to the byte, and never in the way."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from tts.engine.kokoro_model import KokoroModel, load_styles
from tts.engine.kokoro_session import optimised_path
from tts.engine.process import PROJECT_FOLDER
from tts.engine.weights import joined_weights

pytestmark = pytest.mark.slow

SPEAK = """
import sys
from pathlib import Path
from tts.engine.kokoro_model import KokoroModel
KokoroModel(Path(sys.argv[1]), 1)
"""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return joined_weights(tmp_path_factory.mktemp("weights"))


@pytest.fixture
def own(weights: Path, tmp_path: Path) -> Path:
    """The weights in a folder with nothing else."""
    path = tmp_path / weights.name
    path.hardlink_to(weights)
    return path


def spoken(weights: Path) -> bytes:
    return KokoroModel(weights, 2).speak("ni↓xau↓", load_styles()["jf_alpha"], 2.0).tobytes()


def names(weights: Path) -> set[str]:
    return {file.name for file in weights.parent.iterdir()}


def test_the_first_session_keeps_its_graph_and_the_next_one_speaks_the_same_bytes(own: Path):
    first = spoken(own)
    assert names(own) == {own.name, optimised_path(own).name, "optimise.lock"}
    kept = optimised_path(own).stat().st_mtime_ns
    own.unlink()  # so that only the graph can be what speaks
    assert spoken(own) == first
    assert optimised_path(own).stat().st_mtime_ns == kept


def test_a_damaged_graph_is_made_anew(own: Path):
    first = spoken(own)
    graph = optimised_path(own)
    whole = graph.stat().st_size
    for size in (0, 1000, whole - 10):
        with graph.open("r+b") as file:
            file.truncate(size)
        assert spoken(own) == first
        assert graph.stat().st_size == whole
    graph.write_bytes(b"no graph at all")
    assert spoken(own) == first
    assert graph.stat().st_size == whole


def test_two_processes_at_once_keep_one_whole_graph(own: Path):
    makers = [subprocess.Popen([sys.executable, "-c", SPEAK, str(own)], cwd=PROJECT_FOLDER) for _ in range(2)]
    assert [maker.wait(120) for maker in makers] == [0, 0]
    assert names(own) == {own.name, optimised_path(own).name, "optimise.lock"}
    own.unlink()
    assert spoken(own)


def test_while_another_process_writes_the_graph_a_session_does_without(own: Path):
    with own.with_name("optimise.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert spoken(own)
        assert not optimised_path(own).exists()
    assert spoken(own)
    assert optimised_path(own).exists()


def test_what_a_killed_writer_left_is_written_over(own: Path):
    optimised_path(own).with_suffix(".part").write_bytes(b"half a graph")
    assert spoken(own)
    assert names(own) == {own.name, optimised_path(own).name, "optimise.lock"}


def test_a_folder_that_cannot_be_written_to_costs_time_only(own: Path):
    own.with_name("optimise.lock").mkdir()  # not to be opened, whoever runs the tests
    assert spoken(own)
    assert names(own) == {own.name, "optimise.lock"}


def test_a_graph_that_cannot_be_saved_costs_time_only(own: Path):
    optimised_path(own).with_suffix(".part").mkdir()
    assert spoken(own)
    assert not optimised_path(own).exists()
