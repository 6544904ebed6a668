"""Where files live. Keys are made here and nowhere else, from ids only: never from a name that a user chose."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import BinaryIO, cast

from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage

from portal.lib.clock import now


def job_folder(*, workspace_id: uuid.UUID, job_id: uuid.UUID) -> str:
    return f"workspaces/{workspace_id}/jobs/{job_id}"


def voice_folder(*, workspace_id: uuid.UUID, voice_id: uuid.UUID) -> str:
    return f"workspaces/{workspace_id}/voices/{voice_id}"


def voice_clip_key(*, workspace_id: uuid.UUID, voice_id: uuid.UUID) -> str:
    return f"workspaces/{workspace_id}/voices/{voice_id}/clip.wav"


def spoken_consent_key(*, workspace_id: uuid.UUID, voice_id: uuid.UUID) -> str:
    return f"workspaces/{workspace_id}/voices/{voice_id}/consent.wav"


def voice_version_folder(*, workspace_id: uuid.UUID, voice_id: uuid.UUID, version_id: uuid.UUID) -> str:
    """Of a recording after the voice's first."""
    return f"{voice_folder(workspace_id=workspace_id, voice_id=voice_id)}/versions/{version_id}"


def voice_features_key(*, workspace_id: uuid.UUID, voice_id: uuid.UUID, computed_by: str) -> str:
    """`computed_by` names an engine, its version and the clip."""
    digest = hashlib.sha256(computed_by.encode()).hexdigest()
    return f"workspaces/{workspace_id}/voices/{voice_id}/features/{digest[:32]}"


def voice_features_keys(*, workspace_id: uuid.UUID, voice_id: uuid.UUID) -> list[str]:
    """Every file that engines left of a voice."""
    folder = f"workspaces/{workspace_id}/voices/{voice_id}/features"
    return [f"{folder}/{name}" for name in _listed(folder)[1]]


def recording_keys(folder: str) -> list[str]:
    """Every clip and spoken consent in a voice's folder, of whichever version."""
    folders, names = _listed(folder)
    keys = [f"{folder}/{name}" for name in names]
    if "versions" in folders:
        for version in _listed(f"{folder}/versions")[0]:
            keys += [
                f"{folder}/versions/{version}/{name}" for name in _listed(f"{folder}/versions/{version}")[1]
            ]
    return keys


def attempt_audio_key(*, workspace_id: uuid.UUID, job_id: uuid.UUID, attempt_id: uuid.UUID) -> str:
    """One file for each attempt: a late writer can only ever overwrite its own."""
    return f"workspaces/{workspace_id}/jobs/{job_id}/attempts/{attempt_id}.wav"


def job_audio_key(*, workspace_id: uuid.UUID, job_id: uuid.UUID) -> str:
    """A new key at each call: two processes that assemble the same job never write the same file."""
    return f"workspaces/{workspace_id}/jobs/{job_id}/{uuid.uuid4()}.wav"


def rendition_key(*, workspace_id: uuid.UUID, job_id: uuid.UUID, extension: str) -> str:
    """A new key at each call, like `job_audio_key`."""
    return f"workspaces/{workspace_id}/jobs/{job_id}/renditions/{uuid.uuid4()}.{extension}"


def spoken_label_key(language: str) -> str:
    """The words "made by AI", spoken. `language` is one of ours, never what a request says."""
    return f"labels/{language}.wav"


def stored_audio_keys(*, workspace_id: uuid.UUID, job_id: uuid.UUID) -> list[str]:
    """Every file that is there of a job, also those that no row names: whoever stored them died first."""
    folder = job_folder(workspace_id=workspace_id, job_id=job_id)
    keys: list[str] = []
    for inside in (folder, f"{folder}/attempts", f"{folder}/renditions"):
        keys += [f"{inside}/{name}" for name in _listed(inside)[1]]
    return keys


def reused_audio_key(*, workspace_id: uuid.UUID, job_id: uuid.UUID) -> str:
    """A new key at each call, among the attempts' files: what a job took over from another one is its own."""
    return f"workspaces/{workspace_id}/jobs/{job_id}/attempts/{uuid.uuid4()}.wav"


def preset_sample_key(preset_key: str) -> str:
    return f"presets/{preset_key}/sample.wav"


def _listed(folder: str) -> tuple[list[str], list[str]]:
    """The folders and the files in it; none of a folder that is not there."""
    try:
        return default_storage.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return [], []


def is_filled(folder: str) -> bool:
    """Whether there is a file in the folder, or in one inside of it."""
    folders, names = _listed(folder)
    return bool(names) or any(is_filled(f"{folder}/{name}") for name in folders)


def remove_folder(folder: str) -> None:
    """Remove a folder with all that is in it; one that is gone already is no error."""
    folders, names = _listed(folder)
    for name in names:
        default_storage.delete(f"{folder}/{name}")
    for name in folders:
        remove_folder(f"{folder}/{name}")
    default_storage.delete(folder)


# Which folders are being filled by whom: one empty file for each.
_NOTES = "under-way"


@contextlib.contextmanager
def noted(folder: str) -> Iterator[None]:
    """Note that the folder is being filled; the note is durable when the block begins, and stays after it. While the
    block runs the note is locked, where storage is local: so others know that whoever fills the folder lives."""
    key = _note_key(folder)
    _save(key, ContentFile(b""))
    keep_links([key])
    path = _path_of(key)
    if path is None:  # nothing to lock
        yield
        return
    with open(path, "rb") as note:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(note, fcntl.LOCK_EX)
        yield


def noted_folders(*, older_than: timedelta) -> list[str]:
    """The folders with a note of that age that nobody holds."""
    names = _listed(_NOTES)[1]
    return [name.replace("_", "/") for name in names if _is_left(f"{_NOTES}/{name}", older_than)]


def is_noted(folder: str) -> bool:
    """Whether somebody is filling the folder, or died there."""
    return default_storage.exists(_note_key(folder))


def forget_note(folder: str) -> None:
    default_storage.delete(_note_key(folder))


def _note_key(folder: str) -> str:
    return f"{_NOTES}/{folder.replace('/', '_')}"


def _is_left(note_key: str, older_than: timedelta) -> bool:
    try:
        if default_storage.get_modified_time(note_key) > now() - older_than:
            return False
        with open(default_storage.path(note_key), "rb") as note:
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (FileNotFoundError, BlockingIOError):
        return False
    except (NotImplementedError, OSError):  # nothing is locked there: its age has to do
        return True
    return True


def save(key: str, content: bytes) -> None:
    """Store `content` under `key`, on the disk itself where storage is local, before returning."""
    _save(key, ContentFile(content))


def save_file(key: str, path: str) -> None:
    """The same with what a local file holds, which is never in memory whole."""
    with open(path, "rb") as file:
        _save(key, File(file))


@contextlib.contextmanager
def local_file(key: str) -> Iterator[str]:
    """The path of the stored file on this host: a copy for the time being where storage has no paths.

    Raises FileNotFoundError.
    """
    path = _path_of(key)
    if path is not None:
        yield path
    else:
        with open_audio(key) as stored, tempfile.NamedTemporaryFile() as copy:
            shutil.copyfileobj(stored, copy)
            copy.flush()
            yield copy.name


def _save(key: str, content: File[bytes]) -> None:
    stored = default_storage.save(key, content)
    if stored != key:
        default_storage.delete(stored)
        raise FileExistsError(key)
    path = _path_of(key)
    if path is not None:  # object storage is durable when it answers
        # The row that publishes this file is durable at its commit; the file must not be less so.
        _sync(path)


def _path_of(key: str) -> str | None:
    """Where the file lies on this host; None where storage has no paths, as object storage has none."""
    try:
        return default_storage.path(key)
    except NotImplementedError:
        return None


def _sync(path: str) -> None:
    """Have a file, or the entries of a folder, on the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def link_or_copy(source: str, target: str) -> None:
    """Give what is stored under `source` a second key that outlives the first: a hard link where storage is local (no
    byte is copied), else a copy. Raises FileNotFoundError where there is nothing, FileExistsError, OSError.

    The link is durable after `keep_links`.
    """
    old, new = _path_of(source), _path_of(target)
    if old is None or new is None:
        with open_audio(source) as file:
            _save(target, File(file))
        return
    os.makedirs(os.path.dirname(new), exist_ok=True)
    try:
        os.link(old, new)
    except OSError as error:
        if isinstance(error, FileNotFoundError | FileExistsError):
            raise
        # A file system without hard links, or one whose limit of them is reached.
        with open(old, "rb") as file:
            _save(target, File(file))


def keep_links(targets: Iterable[str]) -> None:
    """Have the folders of linked files on the disk itself: once for all of a job's."""
    paths = (_path_of(target) for target in targets)
    for folder in {os.path.dirname(path) for path in paths if path is not None}:
        _sync(folder)


def read(key: str) -> bytes:
    with default_storage.open(key, "rb") as file:
        return cast(bytes, file.read())


def open_audio(key: str) -> BinaryIO:
    """The stored file, open for reading, seekable. Raises FileNotFoundError."""
    return cast(BinaryIO, default_storage.open(key, "rb"))


def size_of(key: str) -> int:
    return default_storage.size(key)


def exists(key: str) -> bool:
    return default_storage.exists(key)


def delete(key: str) -> None:
    """Remove the file; one that is gone already is no error."""
    if key:
        default_storage.delete(key)
