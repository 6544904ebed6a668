"""One file from a source: gone on with where it was cut off, checked when it is whole."""

from __future__ import annotations

import http.client
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tts.model_store.errors import ChecksumWrong, SourceUnreachable, SourceWrong
from tts.model_store.sources import RemoteFile

logger = logging.getLogger(__name__)

BLOCK_BYTES = 1024 * 1024
# A connection that brings nothing for so long is given up, and the next one goes on from there.
IDLE_S = 60.0
# So many in a row that brought nothing at all; one that brought something begins the count anew.
TRIES = 6
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
Report = Callable[[int], None]


def fetch_file(
    file: RemoteFile, target: Path, *, report: Report, pause: Callable[[float], None] = time.sleep
) -> None:
    """Have the file at `target`, whole and checked. What an earlier try left in `target`.part is gone on with.

    `report` is called with how many bytes are there. `pause` waits between two tries.

    Raises:
        SourceUnreachable: what came is kept. SourceWrong, ChecksumWrong.
    """
    part = target.with_name(target.name + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    for is_last in (False, True):
        _complete(file, part, report, pause)
        if _checksum(file, part) == file.expected:
            part.replace(target)
            return
        # Damaged on its way, or the rest of another version: from the beginning, once.
        part.unlink()
        if is_last:
            raise ChecksumWrong(f"{file.path} does not have the checksum that its source gives, twice.")
        logger.warning("model_file_damaged %s", file.path)


def is_whole(file: RemoteFile, target: Path) -> bool:
    """Whether the file is there with the right length. Its content was checked before it got its name."""
    return target.is_file() and target.stat().st_size == file.size_bytes


def _complete(file: RemoteFile, part: Path, report: Report, pause: Callable[[float], None]) -> None:
    """Bring the part to the file's length."""
    failures, pause_s = 0, FIRST_PAUSE_S
    part.touch()
    while True:
        have = part.stat().st_size
        if have > file.size_bytes:
            part.unlink()
            part.touch()
            continue
        report(have)
        if have == file.size_bytes:
            return
        why = _go_on(file, part, have, report)
        if part.stat().st_size > have:
            failures, pause_s = 0, FIRST_PAUSE_S
            continue
        failures += 1
        if failures >= TRIES:
            raise SourceUnreachable(
                f"{file.path}: {why}. {have} of {file.size_bytes} bytes are kept; run the command again to go on."
            )
        pause(pause_s)
        pause_s = min(LONGEST_PAUSE_S, pause_s * 2)


def _go_on(file: RemoteFile, part: Path, have: int, report: Report) -> str:
    """Add what one connection brings; why it ended."""
    headers = {"Range": f"bytes={have}-"} if have else {}
    # urllib takes the header along to where it is redirected: both hubs keep large files elsewhere.
    request = urllib.request.Request(file.url, headers={**headers, "Accept-Encoding": "identity"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=IDLE_S) as answer:  # noqa: S310 - the source's own address
            if have and not _goes_on_at(answer, have):
                # It sends the whole: then the part is of no use.
                part.write_bytes(b"")
                have = 0
            with part.open("ab") as written:
                while block := answer.read1(BLOCK_BYTES):
                    written.write(block[: file.size_bytes - have])
                    have += len(block)
                    report(min(have, file.size_bytes))
                    if have >= file.size_bytes:
                        return "complete"
        return "the connection was cut"
    except urllib.error.HTTPError as error:
        if error.code == 416:
            part.write_bytes(b"")
        if error.code in (401, 403, 404, 410):
            raise SourceWrong(f"{file.url} answers {error.code}.") from error
        return f"the source answers {error.code}"
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"


def _goes_on_at(answer: http.client.HTTPResponse, have: int) -> bool:
    begins = (answer.headers.get("Content-Range") or "").removeprefix("bytes ").partition("-")[0]
    return answer.status == 206 and begins == str(have)


def _checksum(file: RemoteFile, part: Path) -> str:
    made = file.hasher()
    with part.open("rb") as content:
        while block := content.read(BLOCK_BYTES):
            made.update(block)
    return made.hexdigest()
