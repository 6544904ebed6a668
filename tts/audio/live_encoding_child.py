"""The child process that encodes one live stream: `python -m tts.audio.live_encoding_child PARENT_PID`.

It reads one line of JSON (format, rate, label), then pieces of 16-bit PCM, each behind its length in four bytes; a
length of 0 is the end. It answers the line and each piece with what can be sent by now, in the same manner. It imports
no Django and dies with its parent.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, BinaryIO, Final

import av
import av.logging

from tts.audio.aigc import KEY, LabelMissing
from tts.audio.child_limits import limit_itself
from tts.audio.formats import FORMATS, AudioFormat, codec_options
from tts.audio.live_encoding import CHILD_CPU_SECONDS, CHILD_WORKING_MEMORY_BYTES, MAX_PIECE_BYTES

# Somebody listens, but what engines and pages need comes first.
_NICE: Final = 5
_MUXER_OPTIONS: Final = {
    # Each packet leaves at once. Where the sound ends nobody knows yet, so nothing is said of its length.
    "mp3": {"write_xing": "0", "flush_packets": "1"},
    "ogg": {"page_duration": "20000", "flush_packets": "1"},
}
# A fixed rate: players that are not told a length reckon it from the first frames. LAME begins with 1105 samples that
# are nothing but its delay, and there is no place to say so: the first frame of 576 is left out, for which each frame
# has to stand for itself.
_CODEC_OPTIONS: Final = {"mp3": {"b": "64000", "reservoir": "0"}}
_FRAMES_LEFT_OUT: Final = {"mp3": 1}


class _Pending:
    """What the container has written and nobody has taken. It cannot be wound back, as the stream cannot."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


def main() -> int:
    """Encode until the end, or until nobody sends any more; 0 where the end was told."""
    limit_itself(
        parent_pid=int(sys.argv[1]),
        memory_bytes=CHILD_WORKING_MEMORY_BYTES,
        cpu_seconds=CHILD_CPU_SECONDS,
        nice=_NICE,
    )
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a library prints is no sound
    wanted: dict[str, Any] = json.loads(source.readline())
    av.logging.set_level(None)
    sounds = _encoded(
        _pieces(source), FORMATS[wanted["format"]], wanted["sample_rate_hz"], label=wanted["label"]
    )
    for encoded in sounds:
        target.write(struct.pack(">I", len(encoded)) + encoded)
    return 0


def _pieces(source: BinaryIO) -> Iterator[bytes]:
    while True:
        (length,) = struct.unpack(">I", _exactly(source, 4))
        if length == 0:
            return
        if length > MAX_PIECE_BYTES or length % 2:
            raise ValueError("no piece has such a length")
        yield _exactly(source, length)


def _exactly(source: BinaryIO, count: int) -> bytes:
    data = source.read(count)
    if len(data) != count:
        raise EOFError
    return data


def _encoded(
    pieces: Iterator[bytes], audio_format: AudioFormat, rate_hz: int, *, label: str
) -> Iterator[bytes]:
    """The beginning of the container, then what each piece makes, then its end."""
    pending = _Pending()
    name = audio_format.container
    container: Any = av.open(pending, "w", format=name, options=_MUXER_OPTIONS[name])
    container.metadata[KEY] = label
    options = _CODEC_OPTIONS.get(name) or codec_options(audio_format, sample_rate_hz=rate_hz)
    stream = container.add_stream(audio_format.codec, rate=rate_hz, layout="mono", options=options)
    stream.codec_context.thread_count = 1
    container.start_encoding()
    head = pending.take()
    if KEY.encode() not in head or label.encode("ascii") not in head:
        raise LabelMissing(audio_format.code)
    yield head
    skipped, at = _FRAMES_LEFT_OUT.get(name, 0), 0
    for pcm in pieces:
        frame = _frame(pcm, rate_hz, at)
        at += frame.samples
        packets = stream.encode(frame)
        container.mux(packets[skipped:])
        skipped -= min(skipped, len(packets))
        yield pending.take()
    container.mux(stream.encode(None)[skipped:])
    container.close()
    yield pending.take()


def _frame(pcm: bytes, rate_hz: int, at: int) -> Any:
    frame: Any = av.AudioFrame(format="s16", layout="mono", samples=len(pcm) // 2)
    plane = frame.planes[0]
    plane.update(pcm + bytes(plane.buffer_size - len(pcm)))
    frame.sample_rate, frame.pts, frame.time_base = rate_hz, at, Fraction(1, rate_hz)
    return frame


if __name__ == "__main__":
    sys.exit(main())
