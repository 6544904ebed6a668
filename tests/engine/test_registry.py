"""Engines that packages add: a real one, installed for the test, in real engine processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import MakeRequest
from tts.engine.capabilities import Capabilities, needs_of
from tts.engine.errors import EngineError
from tts.engine.process import Chunk, Done, EngineProcess
from tts.engine.registry import engine_class, engines_for, registered_engines

EXAMPLE = Path(__file__).parent / "example_plugin"
StartNamed = Callable[..., EngineProcess]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example package was installed by pip, as an operator would."""
    source = tmp_path_factory.mktemp("source") / "example"
    shutil.copytree(EXAMPLE, source)
    target = tmp_path_factory.mktemp("packages")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]
    subprocess.run([*pip, "--target", str(target), str(source)], check=True, timeout=300, capture_output=True)
    return target


def add_package(folder: Path, name: str, entries: dict[str, str], modules: dict[str, str]) -> None:
    """What an installed package is to Python: its metadata and its modules."""
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{key} = {value}\n" for key, value in entries.items())
    (about / "entry_points.txt").write_text(f"[voicepool.engines]\n{lines}")
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)


@pytest.fixture
def start_named() -> Iterator[StartNamed]:
    """Starts engine processes by name that find packages in a folder; all are killed at the end."""
    engines: list[EngineProcess] = []

    def start(name: str, packages: Path, **settings: object) -> EngineProcess:
        engine = EngineProcess(None, name, settings, {"PYTHONPATH": str(packages)})
        engines.append(engine)
        engine.start()
        return engine

    yield start
    for engine in engines:
        assert engine.kill()


def test_an_installed_package_adds_an_engine_that_speaks(
    installed: Path, start_named: StartNamed, make_request: MakeRequest
):
    engine = start_named("example-tones", installed, ms_per_letter=50)
    loaded = engine.load(60)
    assert (loaded.engine, loaded.engine_version) == ("example-tones", "1.2.0")
    assert loaded.capabilities == Capabilities(languages=("en",), modes=("preset",), gpu_ms_per_audio_s=5)
    events = list(engine.speak(make_request("abc"), no_progress_s=20, deadline_s=60))
    chunks = [event for event in events if isinstance(event, Chunk)]
    assert [len(chunk.pcm) for chunk in chunks] == [2400] * 3
    assert len({chunk.pcm for chunk in chunks}) == 3
    assert isinstance(events[-1], Done)
    assert events[-1].audio_ms == 150


def test_the_package_is_listed_without_being_imported(installed: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(installed))
    found = registered_engines()["example-tones"]
    assert (found.package, found.package_version, found.problem) == ("voicepool-example-engine", "1.2.0", "")
    assert "voicepool_example_engine" not in sys.modules
    assert found in engines_for(remote=False)


def test_a_package_does_not_take_the_place_of_a_built_in_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    add_package(
        tmp_path, "usurper", {"simulated": "usurper:Engine"}, {"usurper": "raise SystemExit('imported')"}
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    engines = registered_engines()
    assert engines["simulated"].package == ""
    assert "usurper" in engines["simulated@usurper"].problem
    assert engine_class("simulated").__module__ == "tts.engine.simulated"


def test_two_packages_with_one_name_are_both_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    add_package(tmp_path / "a", "first", {"tones": "first:Engine"}, {})
    add_package(tmp_path / "b", "second", {"tones": "second:Engine"}, {})
    monkeypatch.syspath_prepend(str(tmp_path / "a"))
    monkeypatch.syspath_prepend(str(tmp_path / "b"))
    with pytest.raises(EngineError, match="first and second") as refused:
        engine_class("tones")
    assert refused.value.code == "engine_broken"
    assert engine_class("simulated-b").__module__ == "tts.engine.simulated"


BROKEN = {
    "missing": ("no_such_module:Engine", {}, "ModuleNotFoundError"),
    "raises": ("raising:Engine", {"raising": "1 / 0"}, "ZeroDivisionError"),
    "no-class": ("plain:thing", {"plain": "thing = 3"}, "not a class of engines"),
    "no-attribute": ("empty:Engine", {"empty": ""}, "AttributeError"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_package_says_so_and_breaks_no_other(
    name: str, tmp_path: Path, start_named: StartNamed, make_request: MakeRequest
):
    target, modules, said = BROKEN[name]
    add_package(tmp_path, "broken-package", {name: target}, modules)
    with pytest.raises(EngineError, match=said) as refused:
        start_named(name, tmp_path).load(60)
    assert refused.value.code == "engine_broken"
    assert "broken-package" in refused.value.message
    other = start_named("simulated", tmp_path)
    assert other.load(60).engine == "simulated"
    assert isinstance(list(other.speak(make_request(), no_progress_s=20, deadline_s=60))[-1], Done)


def test_an_engine_that_there_is_not_is_named_with_those_that_there_are(
    tmp_path: Path, start_named: StartNamed
):
    with pytest.raises(EngineError, match=r"there are .*kokoro.*simulated") as refused:
        start_named("nothing", tmp_path).load(60)
    assert refused.value.code == "engine_unknown"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sample_rate_hz": 44_100}, "24000"),
        ({"modes": ("dance",)}, "dance"),
        ({"modes": ()}, "modes"),
        ({"languages": ("Chinese!",)}, "ISO 639"),
        ({"instructions": "free"}, "contradict"),
        ({"gpu_ms_per_audio_s": 0}, "gpu_ms_per_audio_s"),
    ],
)
def test_capabilities_that_cannot_be_true_are_refused(changes: dict[str, object], said: str):
    with pytest.raises(EngineError, match=said) as refused:
        Capabilities(**{"languages": ("zh",), **changes})  # type: ignore[arg-type]
    assert refused.value.code == "capabilities_wrong"


def test_capabilities_come_back_from_a_row_as_they_went():
    can = Capabilities(
        languages=("zh", "en"), modes=("preset", "instruct"), instructions="free", real_clone=True
    )
    assert Capabilities.from_json({**can.as_json(), "added_later": 1}) == can


def test_what_a_text_needs_is_compared_with_what_an_engine_offers():
    presets_only = Capabilities(languages=("en",)).offers()
    assert set(needs_of(voice_kind="preset", languages=("en",))) <= set(presets_only)
    assert not set(needs_of(voice_kind="clone", languages=("en",))) <= set(presets_only)
    assert not set(needs_of(voice_kind="preset", languages=("zh",))) <= set(presets_only)
