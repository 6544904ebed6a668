"""Frames between a worker and its engine process.

A frame is two big-endian 32-bit lengths (header, payload), the header (a JSON object in UTF-8 with the key
"op") and the payload (raw bytes: a reference clip on the way in, PCM on the way out).

Host to engine: load, warm_up, speak, cancel, stats, stop. Engine to host: loaded, warmed, progress, features, chunk,
done, canceled, budget_exhausted, error, stats, stopped.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

# A speak header holds a segment of 300 characters and a clip's transcript; a payload at most 30 s of 24 kHz
# PCM (1.4 MB) or a chunk of speech. The limits stand far above that, and far below what would hurt a worker.
MAX_HEADER_BYTES = 256 * 1024
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
LENGTHS = struct.Struct(">II")
# Names the process that an engine ends with.
PARENT_VARIABLE = "VOICEPOOL_ENGINE_PARENT"


class ByteReader(Protocol):
    def read(self, size: int, /) -> bytes | None: ...


class ByteWriter(Protocol):
    def write(self, data: bytes, /) -> Any: ...
    def flush(self) -> Any: ...


class ProtocolError(Exception):
    """The other side did not speak this protocol. Nothing after it can be trusted."""


class FrameTruncated(ProtocolError):
    """The stream ended inside a frame."""


class FrameTooLarge(ProtocolError):
    """A length is over its limit."""


class FrameMalformed(ProtocolError):
    """The header is not a JSON object with an "op"."""


@dataclass(frozen=True)
class Frame:
    header: dict[str, Any]
    payload: bytes = b""

    @property
    def op(self) -> str:
        return str(self.header["op"])


@dataclass(frozen=True)
class VoiceReference:
    """Whose voice: a preset of the catalogue, or a clone of a clip.

    `reference_sha256` is that of the clip's WAV bytes, the key of the engine's cache of features.
    """

    kind: str  # "preset" | "clone"
    preset_key: str = ""
    reference_sha256: str = ""
    transcript: str = ""
    language: str = ""
    tenant: str = ""
    """Whose voice it is: what is kept of one tenant's clips serves no other."""


@dataclass(frozen=True)
class SpeakRequest:
    """One segment to speak.

    `text` is a validated segment (at most 300 characters as they were written) as it is spoken: numbers in words,
    annotations as they are (see tts.text.engine_forms). `language` may be "" (detect). `speed` is 0.5 to 2.0.
    The engine stops as `budget_exhausted` once `max_gpu_ms` are used up. `reference_wav` is the canonical
    clip (24 kHz mono 16-bit WAV), empty for presets. `features` are what this engine reported of that clip before
    (a "features" frame); then the clip does not travel. `instruction` is a sentence that says how to read, for engines
    that take one; "" for none. `mode` is how the engine is to use the voice: "" leaves it to the engine.
    """

    request_id: str
    text: str = field(repr=False)  # customers' texts never reach a log
    language: str
    voice: VoiceReference = field(repr=False)
    seed: int
    speed: float
    max_gpu_ms: int
    reference_wav: bytes = field(default=b"", repr=False)
    features: bytes = field(default=b"", repr=False)
    instruction: str = field(default="", repr=False)
    mode: str = ""

    def to_header(self) -> dict[str, Any]:
        """The request as a header; the clip, or its features, travel as the payload."""
        fields = asdict(self)
        del fields["reference_wav"], fields["features"]
        held = "features" if self.features else "clip"
        return {"op": "speak", "request_id": self.request_id, "request": fields, "payload": held}

    @property
    def payload(self) -> bytes:
        """What travels beside the header."""
        return self.features or self.reference_wav

    @classmethod
    def from_frame(cls, frame: Frame) -> SpeakRequest:
        """The request of a speak frame.

        Raises:
            FrameMalformed: a field is missing, unknown or of another type.
        """
        try:
            fields = dict(frame.header["request"])
            voice = VoiceReference(**{key: str(value) for key, value in dict(fields.pop("voice")).items()})
            clip, features = frame.payload, b""
            if frame.header.get("payload") == "features":
                clip, features = features, clip
            request = cls(voice=voice, reference_wav=clip, features=features, **fields)
        except (KeyError, TypeError, ValueError) as error:
            raise FrameMalformed("a speak frame without a whole request") from error
        texts = (request.request_id, request.text, request.language, request.instruction, request.mode)
        numbers = (request.seed, request.max_gpu_ms)
        if not all(isinstance(text, str) for text in texts) or not all(
            type(number) is int for number in numbers
        ):
            raise FrameMalformed("a speak frame with a field of the wrong type")
        return request


def encode_frame(header: dict[str, Any], payload: bytes = b"") -> bytes:
    """The bytes of a frame.

    Raises:
        FrameTooLarge: header or payload are over their limit.
    """
    encoded = json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode()
    _check_lengths(len(encoded), len(payload))
    return LENGTHS.pack(len(encoded), len(payload)) + encoded + payload


def write_frame(stream: ByteWriter, header: dict[str, Any], payload: bytes = b"") -> None:
    """Write one frame and flush. One writer at a time."""
    stream.write(encode_frame(header, payload))
    stream.flush()


def read_frame(stream: ByteReader) -> Frame | None:
    """The next frame, or None when the stream ended between two frames. Blocks.

    Raises:
        ProtocolError: see its subclasses.
    """
    lengths = _read_exactly(stream, LENGTHS.size, may_end=True)
    if not lengths:
        return None
    header_length, payload_length = LENGTHS.unpack(lengths)
    _check_lengths(header_length, payload_length)
    header = _decode_header(_read_exactly(stream, header_length))
    return Frame(header=header, payload=_read_exactly(stream, payload_length))


def _check_lengths(header_length: int, payload_length: int) -> None:
    if header_length > MAX_HEADER_BYTES or payload_length > MAX_PAYLOAD_BYTES:
        raise FrameTooLarge(f"a frame of {header_length} and {payload_length} bytes")


def _decode_header(encoded: bytes) -> dict[str, Any]:
    try:
        header = json.loads(encoded)
    except ValueError as error:
        raise FrameMalformed("the header is not JSON") from error
    if not isinstance(header, dict) or not isinstance(header.get("op"), str):
        raise FrameMalformed('the header is not an object with an "op"')
    return header


def _read_exactly(stream: ByteReader, size: int, *, may_end: bool = False) -> bytes:
    """`size` bytes; b"" where `may_end` and the stream ended before the first of them."""
    parts: list[bytes] = []
    missing = size
    while missing:
        part = stream.read(missing)
        if not part:
            if may_end and missing == size:
                return b""
            raise FrameTruncated(f"the stream ended {missing} bytes before the end of a frame")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
