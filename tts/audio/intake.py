"""Taking in a reference clip:

the parent's half. The file is decoded by a limited child process, never here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from tts.audio import wav
from tts.audio.errors import (
    REFUSAL_BY_CODE,
    ClipEmpty,
    ClipInspectionUnavailable,
    ClipQualityRejected,
    ClipRejected,
    ClipTooComplex,
    ClipTooLarge,
    ClipUnreadable,
)
from tts.audio.limits import (
    CANONICAL_SAMPLE_BYTES,
    CANONICAL_SAMPLE_RATE_HZ,
    CHILD_MAX_OUTPUT_BYTES,
    CHILD_READY_LINE,
    CHILD_WALL_SECONDS,
    MAX_CANONICAL_SAMPLES,
    MAX_UPLOAD_BYTES,
)
from tts.audio.quality import QualityFigures, QualityReport, Verdict

logger = logging.getLogger(__name__)

_PROJECT_ROOT: Final = Path(__file__).resolve().parents[2]
_CHILD_MODULE: Final = "tts.audio.intake_child"

# The child gets this environment and nothing of the parent's: no database address, no keys.
_CHILD_ENVIRONMENT: Final = {
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    # One thread each: the child may not start threads, and Silero's four would only spin against each other.
    "OMP_THREAD_LIMIT": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # One heap, so that the limit on address space limits what is used, not what is reserved.
    "MALLOC_ARENA_MAX": "1",
}


@dataclass(frozen=True)
class ChildUsage:
    """What the inspection cost: processor time and peak resident memory of the child."""

    cpu_ms: int
    peak_memory_bytes: int


@dataclass(frozen=True)
class InspectedClip:
    """A clip that was decoded and measured. Its report may still say `rejected`: see `require_usable`.

    `canonical_wav` is a WAV file of 24 kHz mono signed 16-bit PCM, at most 30 s, made from decoded samples
    only; `sha256` is its hex digest.
    """

    canonical_wav: bytes
    sha256: str
    duration_ms: int
    report: QualityReport
    usage: ChildUsage

    def require_usable(self) -> None:
        """Refuse a clip that was measured and found too poor.

        Raises:
            ClipQualityRejected: carries the report.
        """
        if self.report.verdict is Verdict.REJECTED:
            raise ClipQualityRejected(report=self.report)


def inspect_clip(*, source: Path) -> InspectedClip:
    """Decode and judge an uploaded file, and return its canonical PCM with a quality report.

    The kind of file is told by its content; its name does not matter. Takes about a second, at most
    `CHILD_WALL_SECONDS`, and leaves no file and no process behind.

    Raises:
        ClipRejected: one of its subclasses, each with a stable code.
        ClipInspectionUnavailable: the child process did not start or was starved; the clip was not judged.
        OSError: `source` cannot be opened.
    """
    with source.open("rb") as upload:
        status = os.fstat(upload.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("only a regular file can be inspected")
        if status.st_size == 0:
            raise ClipEmpty
        if status.st_size > MAX_UPLOAD_BYTES:
            raise ClipTooLarge
        answer = _ask_child(upload)
    return _read_answer(answer)


def _ask_child(upload: IO[bytes]) -> bytes:
    """Run the child on an open file and return what it wrote, without its `ready` line."""
    # A file rather than a pipe: what the child writes is bounded by its own limit, and nobody waits for a
    # reader.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        started = time.monotonic()
        child = subprocess.Popen(
            [sys.executable, "-s", "-m", _CHILD_MODULE, str(os.getpid())],
            stdin=upload,
            stdout=output,
            stderr=complaints,
            cwd=_PROJECT_ROOT,
            env=_CHILD_ENVIRONMENT,
            start_new_session=True,
        )
        try:
            exit_status: int | None = child.wait(timeout=CHILD_WALL_SECONDS)
        except subprocess.TimeoutExpired:
            exit_status = None
        finally:
            _end(child)
        output.seek(0)
        written = output.read(CHILD_MAX_OUTPUT_BYTES)
        if exit_status == 0 and written.startswith(CHILD_READY_LINE):
            return written[len(CHILD_READY_LINE) :]
        _explain(written=written, exit_status=exit_status, started=started, complaints=complaints)
    if not written.startswith(CHILD_READY_LINE):
        raise ClipInspectionUnavailable
    if exit_status is None or -exit_status in (
        signal.SIGXCPU,
        signal.SIGKILL,
        signal.SIGXFSZ,
        signal.SIGABRT,
    ):
        # Out of time (the kernel sends SIGKILL at the hard limit), of output, or of memory in a library that
        # aborts.
        raise ClipTooComplex
    raise ClipUnreadable


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and whatever shares its process group, and reap it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _explain(*, written: bytes, exit_status: int | None, started: float, complaints: IO[bytes]) -> None:
    """Log how the child failed.

    Before it is ready it has seen no upload, so what it says then is safe to log.
    """
    ready = written.startswith(CHILD_READY_LINE)
    complaints.seek(0)
    logger.warning(
        "clip_inspection_failed",
        extra={
            "exit_status": exit_status,
            "child_was_ready": ready,
            "waited_ms": round((time.monotonic() - started) * 1000),
            "complaint": "" if ready else complaints.read(2_000).decode(errors="replace"),
        },
    )


def _read_answer(answer: bytes) -> InspectedClip:
    """Turn the child's answer into a result.

    A child that was taken over may write anything: every value is checked.
    """
    line, _, pcm = answer.partition(b"\n")
    try:
        header: dict[str, Any] = json.loads(line)
        _report_cost(header)
        if header["outcome"] == "rejected":
            raise _refusal(header["code"], header["params"])
        usage = ChildUsage(
            cpu_ms=int(header["usage"]["cpu_ms"]), peak_memory_bytes=int(header["usage"]["peak_memory_bytes"])
        )
        figures = QualityFigures.from_dict(header["figures"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClipUnreadable from error
    samples, remainder = divmod(len(pcm), CANONICAL_SAMPLE_BYTES)
    if remainder or not 0 < samples <= MAX_CANONICAL_SAMPLES or len(pcm) != header.get("pcm_bytes"):
        raise ClipUnreadable
    canonical_wav = wav.wav_file(pcm, sample_rate_hz=CANONICAL_SAMPLE_RATE_HZ)
    return InspectedClip(
        canonical_wav=canonical_wav,
        sha256=hashlib.sha256(canonical_wav).hexdigest(),
        duration_ms=wav.pcm_duration_ms(pcm_bytes=len(pcm), sample_rate_hz=CANONICAL_SAMPLE_RATE_HZ),
        report=QualityReport.from_figures(figures),
        usage=usage,
    )


def _report_cost(header: dict[str, Any]) -> None:
    logger.info(
        "clip_inspected",
        extra={
            "outcome": str(header.get("code") or header["outcome"])[:64],
            "decoder_error": str(header.get("error", ""))[:64],
            "cpu_ms": int(header["usage"]["cpu_ms"]),
            "peak_memory_bytes": int(header["usage"]["peak_memory_bytes"]),
        },
    )


def _refusal(code: str, params: dict[str, Any]) -> ClipRejected:
    numbers = {name: value for name, value in params.items() if isinstance(value, (int, float))}
    return REFUSAL_BY_CODE[code](**numbers)
