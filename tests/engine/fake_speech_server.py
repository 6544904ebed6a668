"""A double of a speech server with OpenAI's API, for what a real one cannot be made to do: hang, break off, be busy.

What it does is said by the text that it is given. Its audio is a tone whose length goes by the text, with
`silence_ms` before and after it. What it was asked
is kept in `requests`, and which connections were broken off by the other side in `gone`.
"""

from __future__ import annotations

import json
import math
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RATE_HZ = 24_000
MS_PER_CHARACTER = 100
KEY = "secret-of-the-speech-server"


def tone(duration_ms: int, *, rate_hz: int = RATE_HZ, channels: int = 1) -> bytes:
    """PCM of 440 Hz."""
    samples = (
        round(9000 * math.sin(2 * math.pi * 440 * n / rate_hz)) for n in range(rate_hz * duration_ms // 1000)
    )
    return b"".join(struct.pack("<h", sample) * channels for sample in samples)


def wav(pcm: bytes, *, rate_hz: int = RATE_HZ, channels: int = 1, size: int | None = None) -> bytes:
    """A WAV file; `size` is what its header says instead of the truth. With a chunk of notes before the samples."""
    known = len(pcm) if size is None else size
    notes = b"LIST" + struct.pack("<I", 6) + b"INFOxx"
    form = struct.pack("<HHIIHH", 1, channels, rate_hz, rate_hz * channels * 2, channels * 2, 16)
    head = b"WAVEfmt " + struct.pack("<I", 16) + form + notes + b"data" + struct.pack("<I", known)
    return b"RIFF" + struct.pack("<I", min(0xFFFFFFFF, len(head) + known)) + head + pcm


class FakeSpeechServer:
    """Runs on a free port of this machine from `start` to `stop`."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.authorizations: list[str | None] = []
        self.gone = threading.Event()
        self.busy_answers_left = 0
        self.key = ""
        self.voices: list[str] = ["anna", "bert"]
        self.silence_ms = 0
        self._stopping = threading.Event()
        fake = self

        class Handler(_Handler):
            server_double = fake

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()

    def stop(self) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def hang(self, is_over: Callable[[], bool]) -> None:
        """Do nothing until the other side has gone, or the test is over."""
        while not (self._stopping.is_set() or is_over()):
            time.sleep(0.02)  # what is waited for is the other side's end, which nothing announces


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_double: FakeSpeechServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if not self._has_key():
            return self._json(401, {"error": "no"})
        if self.path == "/v1/models":
            return self._json(200, {"data": [{"id": "fake-1"}]})
        if self.path == "/v1/audio/voices":
            return self._json(200, {"voices": self.server_double.voices})
        return self._json(404, {})

    def do_POST(self) -> None:
        fake = self.server_double
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fake.requests.append(body)
        if not self._has_key():
            return self._json(401, {"error": "no"})
        if fake.busy_answers_left:
            fake.busy_answers_left -= 1
            return self._json(429, {}, {"Retry-After": "0.1"})
        text = body["input"]
        if text.startswith("status "):
            return self._json(int(text.split()[1]), {"error": {"message": text}})
        if text == "hang":
            return self._hang()
        if text == "json":
            return self._json(200, {"error": "no audio, but fine"})
        return self._speak(text, body)

    def _speak(self, text: str, body: dict[str, Any]) -> None:
        silence = bytes(2 * RATE_HZ * self.server_double.silence_ms // 1000)
        pcm = silence + tone(round(len(text) * MS_PER_CHARACTER / body.get("speed", 1))) + silence
        content = wav(pcm, size=0xFFFFFFFF) if body["response_format"] == "wav" else pcm
        self.send_response(200)
        self.send_header("Content-Type", "audio/wav" if body["response_format"] == "wav" else "audio/pcm")
        if text == "cut off":
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:1000])
            self.close_connection = True
            return None
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if text == "endless":
            return self._endless(content)
        for at in range(0, len(content), 4801):  # not a whole number of samples
            self._chunk(content[at : at + 4801])
            if text == "stops in the middle" and at:
                return self._hang()
        if text == "broken chunks":
            self.close_connection = True
            return None
        return self._chunk(b"")

    def _endless(self, content: bytes) -> None:
        try:
            while not self.server_double._stopping.is_set():
                self._chunk(content * 20)
        except OSError:
            self.server_double.gone.set()
            self.close_connection = True

    def _hang(self) -> None:
        self.connection.setblocking(False)

        def is_over() -> bool:
            try:
                return self.connection.recv(1) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True

        self.server_double.hang(is_over)
        self.server_double.gone.set()
        self.close_connection = True

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _has_key(self) -> bool:
        self.server_double.authorizations.append(self.headers["Authorization"])
        return (
            not self.server_double.key or self.headers["Authorization"] == f"Bearer {self.server_double.key}"
        )

    def _json(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
