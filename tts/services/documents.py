"""Documents that become texts. Nothing of them is stored."""

from __future__ import annotations

import tempfile

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from accounts.models import Workspace
from portal.lib.throttling import count_try
from tts.documents.blocks import Document
from tts.documents.errors import DocumentTooLarge, TooManyDocuments
from tts.documents.intake import open_document
from tts.documents.limits import MAX_UPLOAD_BYTES


def read_document(*, workspace: Workspace, upload: UploadedFile[bytes]) -> Document:
    """Return the chapters of an upload. Takes about a second: a child process reads it.

    Raises:
        TooManyDocuments: the workspace has had its documents for this minute.
        DocumentRefused, DocumentsNotRead: see tts.documents.errors.
    """
    size_bytes = upload.size or 0
    if size_bytes > MAX_UPLOAD_BYTES:
        raise DocumentTooLarge
    if not count_try(scope="documents", setting="DOCUMENTS_PER_MINUTE", who=f"workspace:{workspace.pk}"):
        raise TooManyDocuments(limit=settings.VOICEPOOL["DOCUMENTS_PER_MINUTE"])
    with tempfile.TemporaryFile() as copy:
        for chunk in upload.chunks():
            copy.write(chunk)
        copy.flush()
        copy.seek(0)
        return open_document(copy, size_bytes=size_bytes, name=upload.name or "")
