"""Speech encoded while it is made, piece by piece, in a child process of its own.

PyAV loads in no process that serves pages: a codec that crashes would take every listener with it. One child per stream
ends with it, and is bounded in memory and processor time. It answers each piece before it gets the next one, so nothing
piles up on either side, and what it has not answered in time is not waited for.
"""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import sys
import time
from types import TracebackType
from typing import IO, Final, Self

from portal.lib.confinement import ENVIRONMENT, PROJECT_ROOT

_CHILD_MODULE: Final = "tts.audio.live_encoding_child"

LIVE_CODECS: Final = ("mp3", "opus")
"""Formats that a child encodes; the other live ones are the samples themselves."""

# What it works with beyond what its libraries take: a piece, and what is made of it.
CHILD_WORKING_MEMORY_BYTES: Final = 64 * 1024 * 1024
# Measured: 0.011 s of processor for a second of speech (mp3). A job may have 18 hours by its estimate, and speech lasts
# a third longer at most: 1,000 s, and as much again for a slower machine.
CHILD_CPU_SECONDS: Final = 2_000
MAX_PIECE_BYTES: Final = 128 * 1024
# Starting takes 0.2 s of processor and a piece milliseconds: whoever is slower by so much is stuck.
ANSWER_SECONDS: Final = 30.0


class LiveEncodingFailed(Exception):
    """The child ended or did not answer. The stream cannot go on."""


class LiveEncoder:
    """One stream's encoder: mono 16-bit PCM in, a container's bytes out. Close it, whatever happens."""

    def __init__(self, *, format_code: str, sample_rate_hz: int, label: str) -> None:
        """Start the child; `head` waits for it.

        `label` stands at the beginning of the container: text of printable ASCII.
        """
        self._child = subprocess.Popen(
            [sys.executable, "-s", "-m", _CHILD_MODULE, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=PROJECT_ROOT,
            env=ENVIRONMENT,
            start_new_session=True,
            bufsize=0,
        )
        self._wanted = {"format": format_code, "sample_rate_hz": sample_rate_hz, "label": label}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The child's."""
        return self._child.pid

    def head(self) -> bytes:
        """What stands before all sound, the label among it. Once, and before anything else.

        Raises LiveEncodingFailed, as all that follows.
        """
        return self._asked(json.dumps(self._wanted).encode() + b"\n")

    def encode(self, pcm: bytes) -> bytes:
        """What can be sent once this is said too: whole samples, whatever their number."""
        encoded = []
        for start in range(0, len(pcm), MAX_PIECE_BYTES):
            piece = pcm[start : start + MAX_PIECE_BYTES]
            encoded.append(self._asked(struct.pack(">I", len(piece)) + piece))
        return b"".join(encoded)

    def finish(self) -> bytes:
        """The rest: what the codec held back, and the container's end."""
        return self._asked(struct.pack(">I", 0))

    def close(self) -> None:
        """End the child. May be called twice."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()

    def _asked(self, question: bytes) -> bytes:
        until = time.monotonic() + ANSWER_SECONDS
        try:
            self._send(question, until)
            (length,) = struct.unpack(">I", self._received(4, until))
            return self._received(length, until)
        except (OSError, ValueError) as error:
            raise LiveEncodingFailed(type(error).__name__) from error

    def _send(self, data: bytes, until: float) -> None:
        pipe = _open(self._child.stdin)
        rest = memoryview(data)
        while rest:
            _wait(until, writable=pipe)
            # A pipe takes so much at once without making anybody wait.
            rest = rest[os.write(pipe, rest[: select.PIPE_BUF]) :]

    def _received(self, count: int, until: float) -> bytes:
        pipe = _open(self._child.stdout)
        data = bytearray()
        while len(data) < count:
            _wait(until, readable=pipe)
            part = os.read(pipe, count - len(data))
            if not part:
                raise BrokenPipeError
            data += part
        return bytes(data)


def _open(pipe: IO[bytes] | None) -> int:
    if pipe is None:
        raise ValueError("there is no pipe")
    return pipe.fileno()


def _wait(until: float, *, readable: int | None = None, writable: int | None = None) -> None:
    poller = select.poll()
    if readable is not None:
        poller.register(readable, select.POLLIN)
    if writable is not None:
        poller.register(writable, select.POLLOUT)
    if not poller.poll(max(0.0, until - time.monotonic()) * 1000):
        raise TimeoutError
