"""Why a document is not read, for the readers, which know no Django; people are told by `tts.documents.errors`."""

from __future__ import annotations

import enum


class Reason(enum.Enum):
    """The codes of the refusals that the readers make."""

    EMPTY = "document_empty"
    UNREADABLE = "document_unreadable"
    ENCRYPTED = "document_encrypted"
    FORMAT_NOT_SUPPORTED = "document_format_not_supported"
    ENCODING_UNKNOWN = "document_encoding_unknown"
    TOO_COMPLEX = "document_too_complex"
    TOO_LONG = "document_too_long"
    NO_TEXT = "document_no_text"


class Refused(Exception):
    """The document is not read. `characters` is how long it is, for TOO_LONG."""

    def __init__(self, reason: Reason, *, characters: int = 0) -> None:
        self.reason = reason
        self.characters = characters
        super().__init__(reason.value)
