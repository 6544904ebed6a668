"""The folder of models: each in a folder of its own, which appears whole or not at all.

MODELS/cosyvoice3/           with model.json: where it came from, and every file's length and checksum
MODELS/.cosyvoice3.part/     while it is being fetched
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tts.model_store.catalogue import FetchableModel
from tts.model_store.errors import AlreadyFetching, ChecksumWrong, ModelStoreError, NoRoom, SourceWrong
from tts.model_store.fetching import BLOCK_BYTES, fetch_file, is_whole
from tts.model_store.sources import RemoteFile, is_safe

MANIFEST = "model.json"
# What must stay free beside the model.
SPARE_BYTES = 256 * 1024 * 1024
# Called with the path, how many bytes of all are there, and how many they are.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class StoredFile:
    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class StoredModel:
    """A model that is here. `problem` says what is wrong with it as far as lengths tell; "" where nothing is."""

    name: str
    folder: Path
    source: str
    revision: str
    fetched_at: str
    files: tuple[StoredFile, ...]
    problem: str = ""

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.files)

    @property
    def version(self) -> str:
        """Tells two contents apart: the first letters of a checksum of all checksums."""
        lines = "".join(f"{one.path} {one.sha256}\n" for one in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()[:12]


def stored_models(root: Path) -> list[StoredModel]:
    """The models in a folder, by name. Reads the manifests and the files' lengths, not their content."""
    if not root.is_dir():
        return []
    found = [_stored(folder) for folder in sorted(root.iterdir()) if (folder / MANIFEST).is_file()]
    return [one for one in found if one is not None]


def fetch_model(
    *,
    root: Path,
    model: FetchableModel,
    source: str,
    revision: str,
    files: Sequence[RemoteFile],
    extras: tuple[str, ...] = (),
    progress: Progress,
) -> StoredModel:
    """Have the model in `root`, from what a source lists. Goes on with what an earlier try left.

    Raises:
        ModelStoreError: see its subclasses. A model that was here before is untouched.
    """
    wanted = [one for one in files if model.wants(one.path, extras)]
    if missing := model.missing([one.path for one in wanted], extras):
        raise SourceWrong(f"The source does not have {', '.join(missing)} of {model.name}.")
    with _part_folder(root, model.name) as part:
        whole = sum(one.size_bytes for one in wanted)
        _check_room(root, whole - sum(_bytes_there(one, part) for one in wanted))
        done = 0
        for one in wanted:
            if not is_whole(one, part / one.path):
                before = done
                fetch_file(
                    one,
                    part / one.path,
                    report=lambda have, path=one.path, before=before: progress(path, before + have, whole),  # type: ignore[misc]
                )
            done += one.size_bytes
            progress(one.path, done, whole)
        return _publish(root, part, model.name, f"{source}:{model.ids[source]}", revision)


def copy_model(
    *, root: Path, model: FetchableModel, folder: Path, extras: tuple[str, ...] = (), progress: Progress
) -> StoredModel:
    """Have the model in `root` from a folder: where nothing can be fetched. What its manifest says, if it has one, is
    checked.

    Raises:
        ModelStoreError: see its subclasses. A model that was here before is untouched.
    """
    if not folder.is_dir():
        raise SourceWrong(f"There is no folder {folder}.")
    paths = sorted(one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file())
    wanted = [path for path in paths if model.wants(path, extras)]
    if missing := model.missing(wanted, extras):
        raise SourceWrong(f"{folder} does not have {', '.join(missing)} of {model.name}.")
    known = _stored(folder) if (folder / MANIFEST).is_file() else None
    expected = {one.path: one.sha256 for one in known.files} if known else {}
    with _part_folder(root, model.name) as part:
        whole, done = sum((folder / path).stat().st_size for path in wanted), 0
        _check_room(root, whole)
        for path in wanted:
            (part / path).parent.mkdir(parents=True, exist_ok=True)
            made = hashlib.sha256()
            with (folder / path).open("rb") as read, (part / path).open("wb") as written:
                while block := read.read(BLOCK_BYTES):
                    made.update(block)
                    written.write(block)
                    done += len(block)
                    progress(path, done, whole)
            if expected.get(path, made.hexdigest()) != made.hexdigest():
                (part / path).unlink()
                raise ChecksumWrong(f"{path} in {folder} does not have the checksum of its {MANIFEST}.")
        origin = known.source if known else f"folder:{folder.name}"
        return _publish(root, part, model.name, origin, known.revision if known else "")


def verify_model(stored: StoredModel, *, progress: Progress) -> list[str]:
    """The files whose content is not what it was when they came. Reads all of them."""
    wrong, done = [], 0
    for one in stored.files:
        path = stored.folder / one.path
        if not path.is_file() or sha256_of(path) != one.sha256:
            wrong.append(one.path)
        done += one.size_bytes
        progress(one.path, done, stored.size_bytes)
    return wrong


def sha256_of(path: Path) -> str:
    made = hashlib.sha256()
    with path.open("rb") as content:
        while block := content.read(BLOCK_BYTES):
            made.update(block)
    return made.hexdigest()


@contextlib.contextmanager
def _part_folder(root: Path, name: str) -> Iterator[Path]:
    """The folder in which the model is put together, for one process at a time."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / f".{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise AlreadyFetching(f"{name} is being fetched into {root} by another process.") from error
        part = root / f".{name}.part"
        part.mkdir(exist_ok=True)
        yield part


def _check_room(root: Path, needed: int) -> None:
    free = shutil.disk_usage(root).free
    if free < needed + SPARE_BYTES:
        raise NoRoom(f"{needed} bytes are needed in {root}, and {SPARE_BYTES} more; {free} are free.")


def _bytes_there(one: RemoteFile, part: Path) -> int:
    for path in (part / one.path, part / f"{one.path}.part"):
        if path.is_file():
            return min(path.stat().st_size, one.size_bytes)
    return 0


def _publish(root: Path, part: Path, name: str, source: str, revision: str) -> StoredModel:
    """Give the folder its name; the one that had it goes."""
    for left in part.rglob("*.part"):
        left.unlink()
    paths = sorted(one for one in part.rglob("*") if one.is_file() and one.name != MANIFEST)
    files = [
        StoredFile(one.relative_to(part).as_posix(), one.stat().st_size, sha256_of(one)) for one in paths
    ]
    manifest = {
        "model": name,
        "source": source,
        "revision": revision,
        "fetched_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),  # noqa: UP017 - as engines read it
        "files": [asdict(one) for one in files],
    }
    (part / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    for path in [*paths, part / MANIFEST]:
        with path.open("rb") as written:
            os.fsync(written.fileno())
    target, old = root / name, root / f".{name}.old"
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    part.rename(target)
    shutil.rmtree(old, ignore_errors=True)
    made = _stored(target)
    if made is None:
        raise ModelStoreError(f"{target} cannot be read.")
    return made


def _stored(folder: Path) -> StoredModel | None:
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = tuple(
            StoredFile(str(one["path"]), int(one["size_bytes"]), str(one["sha256"]))
            for one in manifest["files"]
        )
        name, source = str(manifest["model"]), str(manifest["source"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    lacking = [
        one.path
        for one in files
        if not is_safe(one.path)
        or not (folder / one.path).is_file()
        or (folder / one.path).stat().st_size != one.size_bytes
    ]
    return StoredModel(
        name=name,
        folder=folder,
        source=source,
        revision=str(manifest.get("revision", "")),
        fetched_at=str(manifest.get("fetched_at", "")),
        files=files,
        problem=f"missing or cut: {', '.join(lacking)}" if lacking else "",
    )
