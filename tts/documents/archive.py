"""Parts of a zip archive, read with an eye on bombs: declared sizes are looked at first and never believed."""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from typing import Final

from tts.documents.limits import (
    MAX_ENTRIES,
    MAX_PART_BYTES,
    MAX_RATIO,
    MAX_READ_BYTES,
    MAX_UNPACKED_BYTES,
    RATIO_COUNTS_FROM_BYTES,
)
from tts.documents.refusal import Reason, Refused

_ENCRYPTED_FLAG: Final = 0x1


class Archive:
    """An archive whose parts are read by name.

    Raises:
        Refused: UNREADABLE, or TOO_COMPLEX for what unpacks to too much, here and in `read`; ENCRYPTED in `read`.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
            entries = self._zip.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
            raise Refused(Reason.UNREADABLE) from error
        if len(entries) > MAX_ENTRIES or sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
            raise Refused(Reason.TOO_COMPLEX)
        self._entries = {entry.filename: entry for entry in entries}
        self._by_small_letters = {name.lower(): name for name in self._entries}
        self._left_bytes = MAX_READ_BYTES

    def __contains__(self, name: str) -> bool:
        return self._entry(name) is not None

    @property
    def names(self) -> list[str]:
        """The names of all entries."""
        return list(self._entries)

    def read(self, name: str) -> bytes:
        """Return a part; UNREADABLE where there is none."""
        entry = self._entry(name)
        if entry is None:
            raise Refused(Reason.UNREADABLE)
        if entry.flag_bits & _ENCRYPTED_FLAG:
            raise Refused(Reason.ENCRYPTED)
        _refuse_bomb(entry)
        limit = min(MAX_PART_BYTES, self._left_bytes)
        try:
            with self._zip.open(entry) as part:
                content = part.read(limit + 1)
        except (
            zipfile.BadZipFile,
            NotImplementedError,
            EOFError,
            RuntimeError,
            OSError,
            zlib.error,
        ) as error:
            raise Refused(Reason.UNREADABLE) from error
        if len(content) > limit:
            raise Refused(Reason.TOO_COMPLEX)
        self._left_bytes -= len(content)
        return content

    def _entry(self, name: str) -> zipfile.ZipInfo | None:
        found = self._entries.get(name)
        return found or self._entries.get(self._by_small_letters.get(name.lower(), ""))


def _refuse_bomb(entry: zipfile.ZipInfo) -> None:
    if entry.file_size > MAX_PART_BYTES:
        raise Refused(Reason.TOO_COMPLEX)
    if entry.file_size > RATIO_COUNTS_FROM_BYTES and entry.file_size > MAX_RATIO * max(
        1, entry.compress_size
    ):
        raise Refused(Reason.TOO_COMPLEX)


def path_from(base: str, reference: str) -> str:
    """The name of the part that `reference` in part `base` leads to, without its fragment."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), reference.partition("#")[0])).lstrip(
        "/"
    )
