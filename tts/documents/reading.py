"""From an uploaded file to its chapters: what kind it is is told by its content, never by its name."""

from __future__ import annotations

from typing import Final

from tts.documents.archive import Archive
from tts.documents.blocks import Document
from tts.documents.docx import is_docx, read_docx
from tts.documents.epub import is_epub, read_epub
from tts.documents.plain import read_plain
from tts.documents.refusal import Reason, Refused

_ARCHIVE: Final = b"PK\x03\x04"
# What Word writes where a document has a password, and what it wrote before 2007.
_OLD_CONTAINER: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PASSWORD: Final = "EncryptedPackage".encode("utf-16-le")


def read_document(content: bytes) -> Document:
    """Return title and chapters of a file.

    Raises:
        Refused
    """
    if content.startswith(_OLD_CONTAINER):
        raise Refused(Reason.ENCRYPTED if _PASSWORD in content else Reason.FORMAT_NOT_SUPPORTED)
    if not content.startswith(_ARCHIVE):
        return read_plain(content)
    archive = Archive(content)
    if is_epub(archive):
        return read_epub(archive)
    if is_docx(archive):
        return read_docx(archive)
    raise Refused(Reason.FORMAT_NOT_SUPPORTED)
