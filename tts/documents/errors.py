"""Why an uploaded document is refused. Every refusal has a stable code and says what to do instead."""

from __future__ import annotations

from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError, ServiceUnavailable
from tts.documents.limits import MAX_DOCUMENT_CHARACTERS, MAX_UPLOAD_BYTES
from tts.documents.refusal import Reason

FORMATS: Final = "txt, md, docx, epub"


def document_limits() -> dict[str, object]:
    """What a page says beside the field for the file."""
    return {
        "formats": FORMATS,
        "upload_limit_mib": MAX_UPLOAD_BYTES // (1024 * 1024),
        "upload_limit_bytes": MAX_UPLOAD_BYTES,
    }


class DocumentRefused(DomainError):
    """A document that is not read. Nothing of it was kept."""

    code = "document_refused"
    status = 400
    message = _("This document cannot be read. Upload another one.")
    field = "document"


class DocumentEmpty(DocumentRefused):
    code = Reason.EMPTY.value
    message = _("The file is empty.")


class DocumentTooLarge(DocumentRefused):
    code = "document_too_large"
    status = 413
    message = _(
        "The file is larger than %(maximum_mib)s MiB. Remove its pictures or divide it, and upload it again."
    )

    def __init__(self, **params: Any) -> None:
        super().__init__(maximum_mib=MAX_UPLOAD_BYTES // (1024 * 1024), **params)


class DocumentUnreadable(DocumentRefused):
    code = Reason.UNREADABLE.value
    message = _(
        "This file is damaged, or is none that is read here. Open it in the program that made it and save it anew, as "
        "docx, epub or plain text."
    )


class DocumentEncrypted(DocumentRefused):
    code = Reason.ENCRYPTED.value
    message = _(
        "This file is protected by a password or by copy protection. Save it without one where you may, and upload "
        "that."
    )


class DocumentFormatNotSupported(DocumentRefused):
    code = Reason.FORMAT_NOT_SUPPORTED.value
    message = _("This kind of file is not read here. Save it as one of these and upload that: %(formats)s.")

    def __init__(self, **params: Any) -> None:
        super().__init__(formats=FORMATS, **params)


class DocumentEncodingUnknown(DocumentRefused):
    code = Reason.ENCODING_UNKNOWN.value
    message = _(
        "It cannot be told in which encoding this text is written. Save it as UTF-8 and upload it again."
    )


class DocumentTooComplex(DocumentRefused):
    code = Reason.TOO_COMPLEX.value
    message = _(
        "Reading this file would take too much time or memory. Save its text alone, as docx, epub or plain text, and "
        "upload that."
    )


class DocumentTooLong(DocumentRefused):
    code = Reason.TOO_LONG.value
    message = _("The document has %(characters)s characters; up to %(limit)s can be read at once. Divide it.")

    def __init__(self, *, characters: int = 0, **params: Any) -> None:
        super().__init__(characters=characters, limit=MAX_DOCUMENT_CHARACTERS, **params)


class DocumentHasNoText(DocumentRefused):
    code = Reason.NO_TEXT.value
    message = _(
        "There is no text in this document. Where its pages are pictures, have their text recognised first."
    )


class DocumentsNotRead(ServiceUnavailable):
    """The platform's fault: the reading process did not start or was starved. Nothing is said about the document."""

    code = "document_reading_unavailable"
    message = _("Documents cannot be read right now. Nothing was kept. Try again in a moment.")


class TooManyDocuments(DomainError):
    code = "too_many_documents"
    status = 429
    retry_after_s = 60
    message = _("You have uploaded %(limit)s documents in a minute, as many as you may. Wait a minute.")


_REFUSALS: Final[tuple[type[DocumentRefused], ...]] = (
    DocumentEmpty,
    DocumentUnreadable,
    DocumentEncrypted,
    DocumentFormatNotSupported,
    DocumentEncodingUnknown,
    DocumentTooComplex,
    DocumentTooLong,
    DocumentHasNoText,
)
# What the reading child may answer.
REFUSAL_BY_CODE: Final[dict[str, type[DocumentRefused]]] = {refusal.code: refusal for refusal in _REFUSALS}
"""Every reason of tts.documents.refusal has its words here."""
