from __future__ import annotations

import io
import json

import pytest

from tts.engine.protocol import (
    LENGTHS,
    MAX_HEADER_BYTES,
    MAX_PAYLOAD_BYTES,
    Frame,
    FrameMalformed,
    FrameTooLarge,
    FrameTruncated,
    SpeakRequest,
    VoiceReference,
    encode_frame,
    read_frame,
    write_frame,
)

REQUEST = SpeakRequest(
    request_id="a-1",
    text="你好，hello",
    language="zh",
    voice=VoiceReference(kind="clone", reference_sha256="ab" * 32, transcript="念一句", language="zh"),
    seed=2**31 - 1,
    speed=1.25,
    max_gpu_ms=9_000,
    reference_wav=b"RIFF\x00\xff",
)


class Dripping(io.RawIOBase):
    """Gives one byte at a time, as a pipe may."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, size: int = -1, /) -> bytes:
        part, self._data = self._data[:1], self._data[1:]
        return part


def test_a_frame_comes_back_as_it_was_written():
    stream = io.BytesIO()
    write_frame(stream, {"op": "chunk", "request_id": "a", "sequence": 3}, b"\x00\x01\xff")
    write_frame(stream, {"op": "done", "note": "声池"})
    stream.seek(0)
    assert read_frame(stream) == Frame({"op": "chunk", "request_id": "a", "sequence": 3}, b"\x00\x01\xff")
    assert read_frame(stream) == Frame({"op": "done", "note": "声池"})
    assert read_frame(stream) is None


def test_a_frame_that_arrives_byte_by_byte_is_put_together():
    stream = Dripping(encode_frame({"op": "chunk"}, b"pcm"))
    assert read_frame(stream) == Frame({"op": "chunk"}, b"pcm")
    assert read_frame(stream) is None


@pytest.mark.parametrize("cut", [1, 7, 8, 12, -1])
def test_a_frame_that_is_cut_anywhere_is_an_error(cut: int):
    with pytest.raises(FrameTruncated):
        read_frame(io.BytesIO(encode_frame({"op": "chunk"}, b"pcm")[:cut]))


@pytest.mark.parametrize(
    "lengths", [(MAX_HEADER_BYTES + 1, 0), (10, MAX_PAYLOAD_BYTES + 1), (0xFFFFFFFF, 0xFFFFFFFF)]
)
def test_a_length_over_its_limit_is_refused_before_anything_is_read(lengths: tuple[int, int]):
    stream = io.BytesIO(LENGTHS.pack(*lengths) + b"x" * 100)
    with pytest.raises(FrameTooLarge):
        read_frame(stream)
    assert stream.tell() == LENGTHS.size


def test_a_frame_over_the_limits_is_not_written():
    stream = io.BytesIO()
    with pytest.raises(FrameTooLarge):
        write_frame(stream, {"op": "load", "settings": "x" * MAX_HEADER_BYTES})
    with pytest.raises(FrameTooLarge):
        write_frame(stream, {"op": "chunk"}, bytes(MAX_PAYLOAD_BYTES + 1))
    assert stream.getvalue() == b""


@pytest.mark.parametrize("header", [b"[]", b'"op"', b"{}", b'{"op": 3}', b"{op}", b"\xff\xfe", b""])
def test_a_header_that_is_no_object_with_an_op_is_refused(header: bytes):
    with pytest.raises(FrameMalformed):
        read_frame(io.BytesIO(LENGTHS.pack(len(header), 0) + header))


def test_what_a_library_prints_is_not_taken_for_a_frame():
    with pytest.raises((FrameTooLarge, FrameMalformed, FrameTruncated)):
        read_frame(io.BytesIO(b"Loading checkpoint shards: 100%\n"))


def test_a_request_travels_whole():
    frame = read_frame(io.BytesIO(encode_frame(REQUEST.to_header(), REQUEST.reference_wav)))
    assert frame is not None
    assert SpeakRequest.from_frame(frame) == REQUEST


@pytest.mark.parametrize(
    "change",
    [
        {"seed": "7"},
        {"text": None},
        {"unknown": 1},
        {"voice": []},
        {"voice": {"kind": "x", "y": 1}},
        {"max_gpu_ms": 1.5},
    ],
)
def test_a_request_with_a_wrong_field_is_refused(change: dict[str, object]):
    header = json.loads(json.dumps(REQUEST.to_header()))
    header["request"].update(change)
    with pytest.raises(FrameMalformed):
        SpeakRequest.from_frame(Frame(header))


def test_a_request_without_a_field_is_refused():
    header = REQUEST.to_header()
    del header["request"]["text"]
    with pytest.raises(FrameMalformed):
        SpeakRequest.from_frame(Frame(header))


def test_a_request_does_not_show_the_customers_text():
    assert "hello" not in repr(REQUEST)
    assert "念一句" not in repr(REQUEST)
