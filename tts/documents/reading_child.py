"""The child process that touches an untrusted document: `python -m tts.documents.reading_child PARENT_PID`.

It locks itself in (portal.lib.confinement) with what `limits.py` grants, reads the file on its standard input, and
answers with one line of JSON. It imports no Django.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import zipfile
from typing import Any

from portal.lib.confinement import READY_LINE, lock_in
from tts.documents.blocks import Document
from tts.documents.encodings import load_codecs
from tts.documents.epub import CONTAINER
from tts.documents.limits import (
    CHILD_CPU_SECONDS,
    CHILD_MAX_OUTPUT_BYTES,
    CHILD_WORKING_MEMORY_BYTES,
    MAX_UPLOAD_BYTES,
)
from tts.documents.reading import read_document
from tts.documents.refusal import Reason, Refused


def main() -> int:
    """Read the document on standard input; 0 whenever an answer was written, a refusal included."""
    upload, answer = sys.stdin.buffer, sys.stdout.buffer
    _rehearse()
    lock_in(
        parent_pid=int(sys.argv[1]),
        cpu_seconds=CHILD_CPU_SECONDS,
        memory_bytes=CHILD_WORKING_MEMORY_BYTES,
        output_bytes=CHILD_MAX_OUTPUT_BYTES,
    )
    answer.write(READY_LINE)
    answer.flush()
    said = _read(upload.read(MAX_UPLOAD_BYTES + 1))
    answer.write(json.dumps(said, ensure_ascii=False).encode("utf-8", errors="replace"))
    answer.flush()
    return 0


def _read(content: bytes) -> dict[str, Any]:
    try:
        return _as_json(read_document(content))
    except Refused as refusal:
        return {"code": refusal.reason.value, "characters": refusal.characters}
    except (MemoryError, RecursionError):
        return {"code": Reason.TOO_COMPLEX.value, "characters": 0}
    except Exception as error:
        # Whatever a hostile file provokes in a reader is the file's fault. The parent logs the name.
        return {"code": Reason.UNREADABLE.value, "characters": 0, "error": type(error).__name__}


def _as_json(document: Document) -> dict[str, Any]:
    return {
        "title": document.title,
        "encoding": document.encoding,
        "chapters": [[chapter.title, chapter.body] for chapter in document.chapters],
    }


def _rehearse() -> None:
    """Read made-up documents, so that what libraries load on first use is there before the doors close."""
    load_codecs()
    parts = {
        CONTAINER: '<container><rootfile full-path="package"/></container>',
        "package": '<package><manifest><item id="a" href="a" media-type="text/html"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>',
        "a": "<html><body><h1>A</h1><p>b&nbsp;c</p></body></html>",
    }
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with contextlib.suppress(Refused):
        read_document(book.getvalue())


if __name__ == "__main__":
    sys.exit(main())
