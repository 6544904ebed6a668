"""The engine process of a slot, known without Django.

Loading a model is the slowest part of a worker's start. So `manage.py gpu_worker` starts its engine process before
anything else, and imports Django while the engine loads.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

from tts.engine.process import EngineProcess

# Set by the node's agent for the workers of a remote device.
REMOTE_URL_VARIABLE = "VOICEPOOL_REMOTE_URL"
KEY_FILE_VARIABLE = "VOICEPOOL_REMOTE_KEY_FILE"

_early: EngineProcess | None = None


def build_engine(*, engine: str, visible_device: str) -> EngineProcess:
    """The engine process of a slot, not started yet. `visible_device`: a GPU's UUID, or "" on a CPU."""
    settings = json.loads(_settings(on_gpu=bool(visible_device)) or "{}")
    if url := os.environ.get(REMOTE_URL_VARIABLE):
        # The key goes through the pipe to the engine process, so that no list of processes or variables shows it.
        settings = json.loads(os.environ.get("VOICEPOOL_REMOTE_SETTINGS") or "{}")
        settings = {**settings, "url": url, "key": _remote_key()}
    environment = {"CUDA_VISIBLE_DEVICES": visible_device}
    return EngineProcess(command=_command(engine), engine=engine, settings=settings, environment=environment)


def _settings(*, on_gpu: bool) -> str | None:
    found = os.environ.get("VOICEPOOL_GPU_ENGINE_SETTINGS") if on_gpu else None
    return os.environ.get("VOICEPOOL_CPU_ENGINE_SETTINGS") if found is None else found


def _command(engine: str) -> list[str] | None:
    """An interpreter of the engine's own, where it needs packages that do not fit beside ours; None is this one."""
    python = os.environ.get("COSYVOICE_PYTHON") if engine == "cosyvoice" else None
    return [python, "-m", "tts.engine.host"] if python else None


def _remote_key() -> str:
    """The variable, or the content of the file that a second one names (as portal.lib.env, which needs Django)."""
    key = os.environ.get("VOICEPOOL_REMOTE_KEY")
    if key is not None:
        return key
    path = os.environ.get(KEY_FILE_VARIABLE)
    return Path(path).read_text(encoding="utf-8").strip() if path else ""


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", required=True)
    parser.add_argument("--visible-device", default="")


def start_early(arguments: Sequence[str]) -> None:
    """Start and begin to load the engine that the worker's command line names; `take_early` hands it over.

    On a command line without an engine nothing is started: the command itself says what is wrong with it.
    """
    global _early
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add_engine_arguments(parser)
    try:
        given, _ = parser.parse_known_args(arguments)
    except argparse.ArgumentError:
        return
    _early = build_engine(engine=given.engine, visible_device=given.visible_device)
    _early.start()
    _early.begin_loading()


def take_early() -> EngineProcess | None:
    """The engine process that `start_early` started; it now belongs to the caller."""
    global _early
    taken, _early = _early, None
    return taken
