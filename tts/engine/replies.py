"""What an engine's frames mean to the worker: a chunk, the end, or one of the ends that are no success."""

from __future__ import annotations

from dataclasses import dataclass

from tts.engine.errors import BudgetExhausted, EngineCanceled, EngineError
from tts.engine.protocol import Frame


@dataclass(frozen=True)
class Chunk:
    """PCM (signed 16-bit little-endian, mono, the engine's rate), numbered from 0 within its request.

    `gpu_ms` is what the request had used when the chunk was made.
    """

    sequence: int
    pcm: bytes
    gpu_ms: int = 0


@dataclass(frozen=True)
class Features:
    """What the engine computed of the reference clip: for `SpeakRequest.features`, and this version of it only."""

    content: bytes


@dataclass(frozen=True)
class Done:
    """The request was spoken in full. `gpu_ms` is the engine's own measure, `audio_ms` that of all chunks
    together. `ran_out_of_memory`: only the second, smaller try went well; the first is not in `gpu_ms`, and neither
    are `written_off_ms`: of what the engine made and did not deliver. `seed` is the one asked for, or the last other
    one with which a piece had to be spoken again."""

    gpu_ms: int
    audio_ms: int
    peak_memory_bytes: int
    seed: int
    ran_out_of_memory: bool = False
    written_off_ms: int = 0
    similarity: float | None = None


def result_of(frame: Frame) -> Chunk | Features | Done | None:
    """What a frame of a request means to its consumer. Raises for the ends that are no `Done`."""
    header = frame.header
    if frame.op == "progress":
        return None
    if frame.op == "chunk":
        return Chunk(sequence=int(header["sequence"]), pcm=frame.payload, gpu_ms=int(header.get("gpu_ms", 0)))
    if frame.op == "features":
        return Features(content=frame.payload)
    if frame.op == "done":
        return Done(
            gpu_ms=int(header["gpu_ms"]),
            audio_ms=int(header["audio_ms"]),
            peak_memory_bytes=int(header["peak_memory_bytes"]),
            seed=int(header["seed"]),
            ran_out_of_memory=bool(header.get("ran_out_of_memory", False)),
            written_off_ms=int(header.get("written_off_ms", 0)),
            similarity=None if header.get("similarity") is None else float(header["similarity"]),
        )
    if frame.op == "canceled":
        raise EngineCanceled(gpu_ms=int(header["gpu_ms"]), audio_ms=int(header["audio_ms"]))
    if frame.op == "budget_exhausted":
        raise BudgetExhausted(gpu_ms=int(header["gpu_ms"]), audio_ms=int(header["audio_ms"]))
    if frame.op == "error":
        raise error_of(frame)
    raise EngineError("unknown_operation", "The engine process said something unknown.")


def error_of(frame: Frame) -> EngineError:
    header = frame.header
    return EngineError(
        code=str(header["code"]),
        message=str(header["message"]),
        blame="user" if header.get("blame") == "user" else "platform",
        gpu_ms=int(header.get("gpu_ms", 0)),
    )
