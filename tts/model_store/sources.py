"""What a hub has of a model: its files with their lengths and checksums. Both hubs' public interfaces, no account."""

from __future__ import annotations

import hashlib
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from tts.model_store.catalogue import HUGGING_FACE, MODEL_SCOPE
from tts.model_store.errors import SourceUnreachable, SourceWrong

ENDPOINTS: Mapping[str, str] = MappingProxyType(
    {HUGGING_FACE: "https://huggingface.co", MODEL_SCOPE: "https://modelscope.cn"}
)
REVISIONS: Mapping[str, str] = MappingProxyType({HUGGING_FACE: "main", MODEL_SCOPE: "master"})
ANSWER_S = 30.0
MAX_LISTING_BYTES = 16 * 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class RemoteFile:
    """`path` is relative to the model's folder. It has a `sha256`, or, small and on Hugging Face, a `git_sha1`; the
    other is ""."""

    path: str
    size_bytes: int
    url: str
    sha256: str = ""
    git_sha1: str = ""

    def hasher(self) -> hashlib._Hash:
        """A hash to be fed with the file's content."""
        if self.sha256:
            return hashlib.sha256()
        # Git names a file by its length and content; it is a checksum here, not a seal.
        made = hashlib.sha1(usedforsecurity=False)
        made.update(b"blob %d\0" % self.size_bytes)
        return made

    @property
    def expected(self) -> str:
        return self.sha256 or self.git_sha1


def list_files(*, source: str, model_id: str, revision: str = "", endpoint: str = "") -> list[RemoteFile]:
    """All files of a model at a source, by path. `endpoint` is another address of the same interface: a mirror.

    Raises:
        SourceUnreachable, SourceWrong.
    """
    base = (endpoint or ENDPOINTS[source]).rstrip("/")
    revision = urllib.parse.quote(revision or REVISIONS[source], safe="")
    if source == HUGGING_FACE:
        listing = _json(f"{base}/api/models/{model_id}/tree/{revision}?recursive=true")
        found = [_hugging_face(one, f"{base}/{model_id}/resolve/{revision}/") for one in _list(listing)]
    else:
        listing = _json(f"{base}/api/v1/models/{model_id}/repo/files?Revision={revision}&Recursive=true")
        data = listing.get("Data") if isinstance(listing, dict) else None
        files = data.get("Files") if isinstance(data, dict) else None
        found = [_model_scope(one, f"{base}/models/{model_id}/resolve/{revision}/") for one in _list(files)]
    return sorted((one for one in found if one is not None), key=lambda one: one.path)


def _hugging_face(one: Mapping[str, Any], base: str) -> RemoteFile | None:
    if one.get("type") != "file":
        return None
    large = one.get("lfs")
    sha256 = str(large.get("oid", "")).removeprefix("sha256:") if isinstance(large, dict) else ""
    return _file(one.get("path"), one.get("size"), base, sha256, "" if sha256 else str(one.get("oid", "")))


def _model_scope(one: Mapping[str, Any], base: str) -> RemoteFile | None:
    if one.get("Type") != "blob":
        return None
    return _file(one.get("Path"), one.get("Size"), base, str(one.get("Sha256", "")), "")


def _file(path: Any, size: Any, base: str, sha256: str, git_sha1: str) -> RemoteFile:
    """A listed file, once nothing in it can do harm."""
    if not isinstance(path, str) or not is_safe(path):
        raise SourceWrong(f"The source lists a file with an impossible path: {path!r}.")
    if type(size) is not int or size < 0:
        raise SourceWrong(f"The source does not say how long {path} is.")
    if not (_SHA256.fullmatch(sha256) or _SHA1.fullmatch(git_sha1)):
        raise SourceWrong(f"The source gives no checksum of {path}.")
    return RemoteFile(path, size, base + urllib.parse.quote(path), sha256, git_sha1)


def is_safe(path: str) -> bool:
    """Whether a path stays inside of the folder that it is relative to."""
    parts = PurePosixPath(path).parts
    return (
        bool(parts)
        and not path.startswith("/")
        and ".." not in parts
        and "\\" not in path
        and "\0" not in path
    )


def _list(found: Any) -> list[Mapping[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise SourceWrong("The source does not list the model's files as expected.")
    return found


def _json(url: str) -> Any:
    try:
        with urllib.request.urlopen(urllib.request.Request(url), timeout=ANSWER_S) as answer:  # noqa: S310 - http(s)
            content = answer.read(MAX_LISTING_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise SourceWrong(f"{url} answers {error.code}. Is the model's name right?") from error
    except (OSError, ValueError) as error:
        raise SourceUnreachable(
            f"{url} cannot be reached ({error}). Behind a firewall: --from FOLDER."
        ) from error
    try:
        return json.loads(content)
    except ValueError as error:
        raise SourceWrong(f"{url} does not answer with JSON.") from error
