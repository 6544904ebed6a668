"""The fake NVML against the real module: what the tests prove with the one must hold with the other."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import warnings
from pathlib import Path
from types import ModuleType

import pytest

from tests.pool.fake_gpus import FAKE_NVML_FOLDER
from tts.node import nvml

USED = sorted(
    {
        node.attr
        for node in ast.walk(ast.parse(Path(nvml.__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pynvml"
    }
)
STRUCTURES = ("c_nvmlMemory_t", "c_nvmlUtilization_t", "c_nvmlEventData_t")


@pytest.fixture(scope="module")
def real() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        module = importlib.import_module("pynvml")
    assert Path(module.__file__ or "").parent != FAKE_NVML_FOLDER
    return module


@pytest.fixture(scope="module")
def fake() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fake_pynvml", FAKE_NVML_FOLDER / "pynvml.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_something_is_used() -> None:
    assert {"nvmlInit", "nvmlEventSetWait_v2", "NVML_ERROR_GPU_IS_LOST", "NVMLError_Timeout"} <= set(USED)


@pytest.mark.parametrize("name", USED)
def test_what_the_agent_uses_is_the_same_in_both(name: str, real: ModuleType, fake: ModuleType) -> None:
    genuine, faked = getattr(real, name), getattr(fake, name)
    if isinstance(genuine, type):
        assert issubclass(genuine, real.NVMLError)
        assert issubclass(faked, fake.NVMLError)
    elif callable(genuine):
        shape = [
            (item.name, item.kind, item.default) for item in inspect.signature(genuine).parameters.values()
        ]
        assert [
            (item.name, item.kind, item.default) for item in inspect.signature(faked).parameters.values()
        ] == shape
    else:
        assert faked == genuine


@pytest.mark.parametrize("name", STRUCTURES)
def test_what_comes_back_has_the_same_fields(name: str, real: ModuleType, fake: ModuleType) -> None:
    fields = [field[0] for field in getattr(real, name)._fields_]
    assert [field[0] for field in getattr(fake, name)._fields_] == fields


def test_errors_are_raised_alike(real: ModuleType, fake: ModuleType) -> None:
    codes = [code for name, code in vars(fake).items() if name.startswith("NVML_ERROR_")]
    assert len(codes) > 5
    for code in codes:
        genuine, faked = real.NVMLError(code), fake.NVMLError(code)
        assert type(faked).__name__ == type(genuine).__name__
        assert faked.value == genuine.value == code


def test_a_host_without_a_driver_is_told_of_as_such() -> None:
    """The real module, on a machine without NVIDIA's library."""
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("this machine has the driver: `python deploy/gpu_check` tries it")
    with pytest.raises(nvml.NvmlUnavailable, match=r"\w"):
        nvml.Nvml()
