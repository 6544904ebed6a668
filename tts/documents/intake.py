"""Reading an uploaded document: the parent's half. The file is looked into by a limited child process, never here."""

from __future__ import annotations

import json
import logging
from typing import IO, Any, Final

from portal.lib.confinement import ask_child
from tts.documents.blocks import Chapter, Document
from tts.documents.errors import (
    REFUSAL_BY_CODE,
    DocumentEmpty,
    DocumentEncodingUnknown,
    DocumentsNotRead,
    DocumentTooComplex,
    DocumentTooLarge,
    DocumentTooLong,
    DocumentUnreadable,
)
from tts.documents.limits import (
    CHILD_MAX_OUTPUT_BYTES,
    CHILD_WALL_SECONDS,
    MAX_CHAPTERS,
    MAX_DOCUMENT_CHARACTERS,
    MAX_DOCUMENT_TITLE_CHARACTERS,
    MAX_UPLOAD_BYTES,
)

logger = logging.getLogger(__name__)

_ARCHIVE_NAMES: Final = (".docx", ".epub")
_CHILD_MODULE: Final = "tts.documents.reading_child"


def open_document(upload: IO[bytes], *, size_bytes: int, name: str) -> Document:
    """Return the chapters of an open file on a disk. Takes about a second; nothing of it is kept or logged.

    What kind it is is told by its content. `name`, what it was called, only tells the remains of an archive from a
    text.

    Raises:
        DocumentRefused: one of its subclasses, each with a stable code.
        DocumentsNotRead: the child process did not start or was starved; the file was not judged.
    """
    if size_bytes == 0:
        raise DocumentEmpty
    if size_bytes > MAX_UPLOAD_BYTES:
        raise DocumentTooLarge
    answer = ask_child(
        _CHILD_MODULE, upload, wall_seconds=CHILD_WALL_SECONDS, output_bytes=CHILD_MAX_OUTPUT_BYTES
    )
    if answer.is_whole:
        return _read_answer(answer.content, is_text_expected=not name.lower().endswith(_ARCHIVE_NAMES))
    logger.warning("document_reading_failed", extra=answer.log_facts)
    if not answer.ready:
        raise DocumentsNotRead
    raise DocumentTooComplex if answer.ran_out else DocumentUnreadable


def _read_answer(content: bytes, *, is_text_expected: bool) -> Document:
    """Turn the child's answer into a document. A child that was taken over may write anything: all is checked."""
    try:
        said: dict[str, Any] = json.loads(content)
        if "code" in said:
            _refuse(said, is_text_expected=is_text_expected)
        document = Document(
            title=_text(said["title"], MAX_DOCUMENT_TITLE_CHARACTERS),
            encoding=_text(said["encoding"], 20),
            chapters=tuple(
                Chapter(
                    title=_text(title, MAX_DOCUMENT_TITLE_CHARACTERS),
                    body=_text(body, MAX_DOCUMENT_CHARACTERS),
                )
                for title, body in said["chapters"]
            ),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DocumentUnreadable from error
    characters = sum(len(chapter.body) for chapter in document.chapters)
    # A line end for each paragraph is on top of what the readers count.
    if not 0 < len(document.chapters) <= MAX_CHAPTERS or characters > 2 * MAX_DOCUMENT_CHARACTERS:
        raise DocumentUnreadable
    # Only plain texts have an encoding: this one is no archive at all, and what is left of it is no text to be spoken.
    if document.encoding and not is_text_expected:
        logger.info("document_refused", extra={"code": DocumentUnreadable.code, "reader_error": ""})
        raise DocumentUnreadable
    logger.info("document_read", extra={"chapters": len(document.chapters), "characters": characters})
    return document


def _refuse(said: dict[str, Any], *, is_text_expected: bool) -> None:
    refusal = REFUSAL_BY_CODE[said["code"]]
    if refusal is DocumentEncodingUnknown and not is_text_expected:
        refusal = DocumentUnreadable
    logger.info(
        "document_refused", extra={"code": refusal.code, "reader_error": str(said.get("error", ""))[:64]}
    )
    if refusal is DocumentTooLong:
        raise DocumentTooLong(characters=int(said["characters"]))
    raise refusal


def _text(value: Any, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise ValueError("not a text of that length")
    return value
