"""Files over HTTP as players need them: byte ranges, validators, no cache, a name to save under."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, StreamingHttpResponse
from django.http.response import HttpResponseBase

CHUNK_BYTES = 64 * 1024
# "bytes=0-499", "bytes=500-", "bytes=-500". 18 digits are an exabyte: longer ones are not worth parsing.
ONE_RANGE = re.compile(r"bytes=\s*(\d{0,18})-(\d{0,18})\s*", re.ASCII)


class NotSatisfiable(Exception):
    """The range begins behind the end of the file."""


class FilePart:
    """`length` bytes of an open file from `start` on, in chunks. Closing it closes the file."""

    def __init__(self, file: BinaryIO, *, start: int, length: int) -> None:
        self._file = file
        self._left = length
        file.seek(start)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk = self._file.read(min(CHUNK_BYTES, self._left)) if self._left else b""
        if not chunk:
            self.close()
            raise StopIteration
        self._left -= len(chunk)
        return chunk

    def close(self) -> None:
        self._file.close()


def byte_range(header: str, size: int) -> tuple[int, int] | None:
    """The first and last byte that a Range header asks of `size` bytes; None where the answer is all of them.

    RFC 9110 lets a server ignore what it does not understand, and several ranges at once: those get all.

    Raises:
        NotSatisfiable: nothing of the range lies within the file.
    """
    found = ONE_RANGE.fullmatch(header.strip())
    if found is None:
        return None
    first, last = found.groups()
    if first:
        start = int(first)
        if last and int(last) < start:
            return None
        end = min(int(last), size - 1) if last else size - 1
    elif last:
        start, end = max(size - int(last), 0), size - 1
        if not int(last):
            raise NotSatisfiable
    else:
        return None
    if start >= size:
        raise NotSatisfiable
    return start, end


def content_disposition(filename: str, *, download: bool) -> str:
    """A Content-Disposition value with an ASCII name for old clients and the real one by RFC 5987."""
    kind = "attachment" if download else "inline"
    plain = re.sub(r"[^A-Za-z0-9 ._-]+", "_", filename)
    # RFC 5987 leaves fewer characters bare than a path does; a quote or a line break cannot pass either way.
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"


def _is_current(request: HttpRequest, etag: str) -> bool:
    given = request.headers.get("If-None-Match", "")
    return given.strip() == "*" or etag in {part.strip().removeprefix("W/") for part in given.split(",")}


def _range_applies(request: HttpRequest, etag: str) -> bool:
    """Whether If-Range, where it is given, names the file as it is now. A date never does: we send none."""
    given = request.headers.get("If-Range", "").strip()
    return not given or given == etag


def ranged_response(
    request: HttpRequest,
    *,
    open_file: Callable[[], BinaryIO],
    size: int,
    content_type: str,
    etag: str,
    filename: str,
    download: bool = False,
    storage_key: str = "",
) -> HttpResponseBase:
    """The answer to a GET or HEAD for a private file of `size` bytes: 200, 206, 304 or 416.

    `etag` is the bare value, without quotes, and must change with the content. `filename` is what the browser
    saves it as: made from ids and times, never what a user typed. `open_file` is called only when bytes are
    sent, and the file is closed with the response. Where VOICEPOOL["ACCEL_REDIRECT"] names nginx's internal
    location and `storage_key` is given, nginx sends the bytes and does the ranges.
    """
    quoted = f'"{etag}"'
    response: HttpResponseBase
    accel_prefix = settings.VOICEPOOL.get("ACCEL_REDIRECT", "")
    if _is_current(request, quoted):
        response = HttpResponseNotModified()
    elif accel_prefix and storage_key:
        response = HttpResponse(content_type=content_type)
        response["X-Accel-Redirect"] = f"{accel_prefix.rstrip('/')}/{quote(storage_key)}"
    else:
        response = _bytes_response(
            request, open_file=open_file, size=size, content_type=content_type, etag=quoted
        )
    response["ETag"] = quoted
    response["Cache-Control"] = "private, no-store"
    response["X-Content-Type-Options"] = "nosniff"
    if response.status_code in (200, 206):
        response["Content-Disposition"] = content_disposition(filename, download=download)
    return response


def _bytes_response(
    request: HttpRequest, *, open_file: Callable[[], BinaryIO], size: int, content_type: str, etag: str
) -> HttpResponseBase:
    asked = None
    if (header := request.headers.get("Range")) and request.method == "GET" and _range_applies(request, etag):
        try:
            asked = byte_range(header, size)
        except NotSatisfiable:
            refused = HttpResponse(status=416, content_type=content_type)
            refused["Content-Range"] = f"bytes */{size}"
            return refused
    start, end = asked or (0, size - 1)
    length = end - start + 1
    response: HttpResponseBase
    if request.method == "HEAD":
        response = HttpResponse(content_type=content_type)
    else:
        part = FilePart(open_file(), start=start, length=length)
        response = StreamingHttpResponse(part, content_type=content_type)
    response["Content-Length"] = str(length)
    response["Accept-Ranges"] = "bytes"
    if asked:
        response.status_code = 206
        response["Content-Range"] = f"bytes {start}-{end}/{size}"
    return response
