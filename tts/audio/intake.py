"""Taking in a reference clip:

the parent's half. The file is decoded by a limited child process, never here.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from portal.lib.confinement import ask_child
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
    CHILD_WALL_SECONDS,
    MAX_CANONICAL_SAMPLES,
    MAX_UPLOAD_BYTES,
)
from tts.audio.quality import QualityFigures, QualityReport, Verdict

logger = logging.getLogger(__name__)

_CHILD_MODULE: Final = "tts.audio.intake_child"


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
    answer = ask_child(
        _CHILD_MODULE, upload, wall_seconds=CHILD_WALL_SECONDS, output_bytes=CHILD_MAX_OUTPUT_BYTES
    )
    if answer.is_whole:
        return answer.content
    logger.warning("clip_inspection_failed", extra=answer.log_facts)
    if not answer.ready:
        raise ClipInspectionUnavailable
    raise ClipTooComplex if answer.ran_out else ClipUnreadable


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
